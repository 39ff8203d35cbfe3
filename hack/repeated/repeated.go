// Package repeated says which fields of our kinds have a type that another field has too. A CRD describes what is
// inside of such a type once, where it is first read about: a CRD that kubectl apply can install has little room. The
// reference has the descriptions of all.
package repeated

import (
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensions.JSONSchemaProps

// fields are the paths of the fields, each with the one that has the descriptions.
var fields = map[string]string{
	"spec.backup.secondStore":             "spec.backup.store",
	"spec.restoreFrom.archive.store":      "spec.backup.store",
	"spec.restoreFrom.archive.encryption": "spec.backup.encryption",
	"spec.restore.target":                 "spec.restoreFrom.target",
	"spec.metrics.from":                   "spec.network.from",
	"spec.update.window":                  "spec.stopWindows",
	"status.upgrade.rehearsal":            "status.rehearsal",
	"status.backup.former.windows":        "status.backup.windows",
}

// Strip takes out of the schema of a kind what is described elsewhere, and says where.
func Strip(kind *schema) {
	each(kind, func(s, like *schema, path string) {
		strip(s, like)
		s.Description = strings.TrimSpace(s.Description + " Its fields are as in " + path + ".")
	})
}

// Restore puts back what Strip has taken out.
func Restore(kind *schema) { each(kind, func(s, like *schema, _ string) { restore(s, like) }) }

// each calls change for each field that the kind has, with the one that has its descriptions, and the path of that.
func each(kind *schema, change func(s, like *schema, path string)) {
	for path, like := range fields {
		described := at(kind, like)
		if described == nil {
			continue
		}
		if s := at(kind, path); s != nil && s.Items == nil && described.Items != nil {
			described = described.Items.Schema // it is like one of a list
		}
		with(kind, strings.Split(path, "."), func(s *schema) { change(s, described, like) })
	}
}

// at is the schema of a path, nil where there is none.
func at(kind *schema, path string) (found *schema) {
	with(kind, strings.Split(path, "."), func(s *schema) { found = s })
	return found
}

// with changes the schema of a path, where there is one. Items have the path of their list.
func with(s *schema, path []string, change func(*schema)) {
	if len(path) == 0 {
		change(s)
		return
	}
	if s.Items != nil && s.Items.Schema != nil {
		s = s.Items.Schema
	}
	if field, ok := s.Properties[path[0]]; ok {
		with(&field, path[1:], change)
		s.Properties[path[0]] = field
	}
}

// strip takes out the descriptions below a schema that the other one has too.
func strip(s, like *schema) {
	below(s, like, func(s, like *schema) {
		if s.Description == like.Description {
			s.Description = ""
		}
	})
}

// restore puts the descriptions below another schema into the places where there is none.
func restore(s, like *schema) {
	below(s, like, func(s, like *schema) {
		if s.Description == "" {
			s.Description = like.Description
		}
	})
}

// below calls change for all that is inside of two schemas in the same place.
func below(s, like *schema, change func(s, like *schema)) {
	for name, field := range s.Properties {
		if other, ok := like.Properties[name]; ok {
			change(&field, &other)
			below(&field, &other, change)
			s.Properties[name] = field
		}
	}
	if s.Items != nil && s.Items.Schema != nil && like.Items != nil && like.Items.Schema != nil {
		change(s.Items.Schema, like.Items.Schema)
		below(s.Items.Schema, like.Items.Schema, change)
	}
}
