package v1_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// crdFiles are the CRDs of all kinds, those of the other groups too.
func crdFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("the CRDs are %v, %v", files, err)
	}
	return files
}

// A kube-apiserver refuses a CRD whose CEL rules do not compile or may cost too
// much; so does this test, with the same code and without a server.
func TestRulesAreAcceptedByTheAPIServer(t *testing.T) {
	for _, file := range crdFiles(t) {
		crd := readCRD(t, file)
		for _, e := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Errorf("%s: %v", file, e)
		}
		forgetLengths(crd.Spec.Validation.OpenAPIV3Schema) // where the only version has its schema
		for _, e := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Errorf("%s, in Kubernetes 1.32: %v", file, e)
		}
	}
}

// forgetLengths takes maxLength from what is an integer or a string. Kubernetes 1.32 does the same when it
// estimates the cost of a rule.
func forgetLengths(s *apiextensions.JSONSchemaProps) {
	if s.XIntOrString {
		s.MaxLength = nil
	}
	for name, field := range s.Properties {
		forgetLengths(&field)
		s.Properties[name] = field
	}
	if s.Items != nil && s.Items.Schema != nil {
		forgetLengths(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		forgetLengths(s.AdditionalProperties.Schema)
	}
}

// Others' CRDs of 400 KB and more can't be installed with plain kubectl apply,
// which keeps a copy as JSON in an annotation of at most 256 KB.
func TestCRDFitsIntoAnAnnotation(t *testing.T) {
	for _, file := range crdFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) > 128<<10 {
			t.Errorf("%s has %d bytes as JSON, wanted at most 128 KiB", file, len(stored))
		}
	}
}

func readCRD(t *testing.T, crdFile string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, external); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	external.Status.StoredVersions = []string{"v1"}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external,
		internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}

// "kubectl delete all --all" is how people tidy a namespace: it deletes what is in the category all, and a database is
// not to be deleted by a command that does not name it.
func TestNoKindIsInTheCategoryAll(t *testing.T) {
	for _, file := range crdFiles(t) {
		if names := readCRD(t, file).Spec.Names; len(names.Categories) > 0 {
			t.Errorf("%s is in the categories %q", names.Kind, names.Categories)
		}
	}
}
