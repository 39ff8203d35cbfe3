package main

import (
	"fmt"
	"regexp"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// form is how a console shows a kind beyond what its schema and its columns say.
type form struct {
	// fields are those of the spec that a form offers first, each with a name and, where the type does not say it,
	// with a control. Descriptions and other controls come from the schema.
	fields []field
	// resources are the objects that are made for one of the kind.
	resources []olm.APIResourceReference
}

type field struct{ path, name, control string }

const (
	controls   = "urn:alm:descriptor:com.tectonic.ui:"
	conditions = "urn:alm:descriptor:io.kubernetes.conditions"
	secret     = "urn:alm:descriptor:io.kubernetes:Secret" //nolint:gosec // the name of a control
)

// forms are those of all kinds.
func forms() map[string]form {
	return map[string]form{
		"SampleDB": {[]field{
			{"version", "PostgreSQL version", ""}, {"instances", "Instances", controls + "podCount"},
			{"storage.size", "Size of each volume", ""}, {"durability", "Durability", ""},
			{"resources", "CPU and memory", controls + "resourceRequirements"},
			{"backup.schedule", "Schedule of backups", ""}, {"deletionPolicy", "When it is deleted", ""},
			{"pooler.instances", "Poolers", controls + "podCount"}, {"stopped", "Stopped", ""},
		}, made("apps/v1 StatefulSet", "v1 Pod", "v1 PersistentVolumeClaim", "v1 Service", "v1 Secret",
			"batch/v1 Job")},
		"DatabaseBackup": {[]field{
			{"sampleDB", "SampleDB", ""}, {"full", "Full", ""}, {"keep", "Keep", ""}, {"deadline", "Deadline", ""},
		}, made("batch/v1 Job")},
		"DatabaseRestore": {[]field{
			{"sampleDB", "SampleDB", ""}, {"database", "Database", ""}, {"target.time", "As of", ""},
			{"mode", "Mode", ""},
		}, made("batch/v1 Job")},
		"FaultDrill": {[]field{
			{"sampleDB", "SampleDB", ""}, {"fault", "Fault", ""}, {"instance", "Instance", ""},
			{"objectives.maxOutage", "Longest outage", ""},
		}, made("batch/v1 Job")},
		"PostgreSQL": {[]field{
			{"db", "Database", ""}, {"user", "User", ""}, {"password", "Secret with the password", secret},
			{"version", "PostgreSQL version", ""}, {"instances", "Instances", controls + "podCount"},
			{"storage.size", "Size of each volume", ""},
		}, made("toban.dev/v1 SampleDB", "v1 Secret", "batch/v1 Job")},
		"MyApp": {[]field{
			{"image", "Image", ""}, {"replicas", "Replicas", controls + "podCount"}, {"port", "Port", ""},
			{"database.name", "Database", ""},
		}, made("apps/v1 Deployment", "v1 Service", "networking.k8s.io/v1 Ingress", "batch/v1 Job")},
	}
}

// made are objects, each named by its version and kind.
func made(all ...string) []olm.APIResourceReference {
	var out []olm.APIResourceReference
	for _, one := range all {
		version, kind, _ := strings.Cut(one, " ")
		out = append(out, olm.APIResourceReference{Version: version, Kind: kind})
	}
	return out
}

// described is a kind as a console shows it.
func described(kind apiextensionsv1.CustomResourceDefinition) (olm.CRDDescription, error) {
	names, version := kind.Spec.Names, kind.Spec.Versions[0]
	f, known := forms()[names.Kind]
	if !known {
		return olm.CRDDescription{}, fmt.Errorf("forms has no line for the kind %s", names.Kind)
	}
	schema := version.Schema.OpenAPIV3Schema
	d := olm.CRDDescription{
		Name: kind.Name, Version: version.Name, Kind: names.Kind, DisplayName: names.Kind,
		Description: sentence(schema.Description), Resources: f.resources,
	}
	for _, field := range f.fields {
		at, err := find(*schema, "spec."+field.path)
		if err != nil {
			return d, fmt.Errorf("%s: %w", names.Kind, err)
		}
		d.SpecDescriptors = append(d.SpecDescriptors, olm.SpecDescriptor{
			Path: field.path, DisplayName: field.name, Description: sentence(at.Description),
			XDescriptors: control(at, field.control),
		})
	}
	var err error
	d.StatusDescriptors, err = columns(*schema, version.AdditionalPrinterColumns)
	if err != nil {
		err = fmt.Errorf("%s: %w", names.Kind, err)
	}
	return d, err
}

// columns are the fields of the status that kubectl get shows, and the conditions.
func columns(
	schema apiextensionsv1.JSONSchemaProps, all []apiextensionsv1.CustomResourceColumnDefinition,
) ([]olm.StatusDescriptor, error) {
	var out []olm.StatusDescriptor
	plain := regexp.MustCompile(`^\.status\.([A-Za-z.]+)$`) // no condition, which is shown among all of them
	for _, c := range all {
		m := plain.FindStringSubmatch(c.JSONPath)
		if m == nil {
			continue
		}
		at, err := find(schema, "status."+m[1])
		if err != nil {
			return nil, err
		}
		out = append(out, olm.StatusDescriptor{
			Path: m[1], DisplayName: c.Name, Description: sentence(at.Description), XDescriptors: control(at, ""),
		})
	}
	return append(out, olm.StatusDescriptor{
		Path: "conditions", DisplayName: "Conditions", Description: "What is true and why.",
		XDescriptors: []string{conditions},
	}), nil
}

// find is the schema of a field, by its path.
func find(schema apiextensionsv1.JSONSchemaProps, path string) (apiextensionsv1.JSONSchemaProps, error) {
	at := schema
	for _, name := range strings.Split(path, ".") {
		next, found := at.Properties[name]
		if !found {
			return at, fmt.Errorf("there is no field %s: %s has no %s", path, at.Type, name)
		}
		at = next
	}
	return at, nil
}

// control is how a field is entered and shown: as said, or by its type.
func control(at apiextensionsv1.JSONSchemaProps, said string) []string {
	switch {
	case said != "":
		return []string{said}
	case len(at.Enum) > 0:
		var all []string
		for _, value := range at.Enum {
			all = append(all, controls+"select:"+strings.Trim(string(value.Raw), `"`))
		}
		return all
	case at.Type == "integer":
		return []string{controls + "number"}
	case at.Type == "boolean":
		return []string{controls + "booleanSwitch"}
	}
	return []string{controls + "text"}
}

// sentence is a description of Go's comment as one line.
func sentence(description string) string { return strings.Join(strings.Fields(description), " ") }
