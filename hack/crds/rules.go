package main

import (
	"regexp"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Rules that can be said in another way. In JSON as kubectl keeps it, each of & < > takes six bytes.
var (
	between  = regexp.MustCompile(`^([a-z.]+|duration\(self\)) >= ([^ ]+) && ([a-z.]+|duration\(self\)) <= ([^ ]+)$`)
	quantity = regexp.MustCompile(`^!(self\.matches\('[^']+'\)) && (isQuantity\(self\))$`)
)

// turnRules has rules say the same in fewer bytes.
func turnRules(_ string, s *apiextensions.JSONSchemaProps) {
	for i := range s.XValidations {
		s.XValidations[i].Rule = turned(s.XValidations[i].Rule)
	}
}

func turned(rule string) string {
	if m := between.FindStringSubmatch(rule); m != nil && m[1] == m[3] {
		return "!(" + m[1] + " < " + m[2] + " || " + m[1] + " > " + m[4] + ")"
	}
	return quantity.ReplaceAllString(rule, "!($1 || !$2)")
}
