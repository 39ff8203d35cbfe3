package report

import (
	"encoding/json"
	"regexp"
	"strings"
)

// redacted is what stands in a report where something was that may be secret.
const redacted = "(redacted)"

// A secret that a text may have in it, and what stands there instead. Rather too much is taken out than too little.
var secretForms = []struct {
	form *regexp.Regexp
	into string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), redacted},
	{regexp.MustCompile(`AGE-SECRET-KEY-[0-9A-Z]+`), redacted},
	{regexp.MustCompile(`SCRAM-SHA-256\$[^\s'"\\]+`), redacted},
	{regexp.MustCompile(`\bmd5[0-9a-f]{32}\b`), redacted},
	{regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+\.[\w-]*`), redacted}, // a JSON Web Token
	{regexp.MustCompile(`\bA(KIA|SIA)[0-9A-Z]{16}\b`), redacted},  // the id of a key of AWS
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[\w.~+/=-]+`), "$1 " + redacted},
	// scheme://user:password@host; a password may have @ in it that should be written otherwise.
	{regexp.MustCompile(`([A-Za-z][\w+.-]*://[^\s:/@'"]*):[^\s'"/]+@`), "$1:" + redacted + "@"},
	// SQL: ALTER ROLE … PASSWORD '…', also cut off, and between dollars.
	{regexp.MustCompile(`(?is)\b(password\s+)(u&|e)?'(?:[^'\\]|''|\\.)*('|$)`), "$1'" + redacted + "'"},
	{regexp.MustCompile(`(?is)\b(password\s+)\$(\w*)\$.*?(\$\w*\$|$)`), "$1'" + redacted + "'"},
	// password=…, "password": "…", PGPASSWORD=…, aws_secret_access_key = …
	{regexp.MustCompile(`(?i)(` + secretWords + `(?:\\?["'])?\s*(?:=>|[=:])\s*)` +
		`(?:\\"(?:[^"\\]|\\[^"])*\\"|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s,;&"'\\]+)`), "$1" + redacted},
}

// secretWords are names under which secrets are given.
const secretWords = `[\w.-]*(?:password|passwd|passphrase|secret[_-]?(?:access[_-]?)?key|access[_-]?key|` +
	`account[_-]?key|api[_-]?key|private[_-]?key|token|credentials?)`

// secretKey is the name of a field whose value is secret. Fields such as secretName have names of Secrets.
var secretKey = regexp.MustCompile(`(?i)^` + secretWords + `$`)

// redactText takes out of a text what may be secret.
func redactText(text string) string {
	for _, s := range secretForms {
		text = s.form.ReplaceAllString(text, s.into)
	}
	return text
}

// literals are the constants in a statement, also one that is cut off.
var literals = regexp.MustCompile(`'(?:[^']|'')*('|$)|\$(\w*)\$.*?(\$\w*\$|$)`)

// redactStatement takes the constants out of a statement: they may be anybody's data.
func redactStatement(statement string) string { return literals.ReplaceAllString(statement, "'…'") }

// redactObject takes out of an object of Kubernetes what may be secret: annotations that are not Toban's, values of the
// environment, fields named as secrets are, and what looks like a secret in any text.
func redactObject(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = redactField(key, inner)
		}
	case []any:
		for i := range value {
			value[i] = redactObject(value[i])
		}
	case string:
		return redactString(value)
	}
	return value
}

// redactString takes out of a text what may be secret. One that is an object in JSON, as in a ConfigMap, is redacted as
// an object.
func redactString(text string) string {
	var inner map[string]any
	if json.Unmarshal([]byte(text), &inner) != nil {
		return redactText(text)
	}
	out, err := json.MarshalIndent(redactObject(inner), "", "  ")
	if err != nil {
		return redacted
	}
	return string(out)
}

func redactField(key string, value any) any {
	switch inner := value.(type) {
	case map[string]any:
		if key == "annotations" {
			return redactAnnotations(inner)
		}
	case []any:
		switch key {
		case "managedFields":
			return redacted
		case "env":
			return redactEnvironment(inner)
		}
	case string:
		if secretKey.MatchString(key) {
			return redacted
		}
	}
	return redactObject(value)
}

// redactAnnotations keeps those of Toban. kubectl.kubernetes.io/last-applied-configuration has all that somebody has
// ever put into a manifest.
func redactAnnotations(annotations map[string]any) any {
	for key, value := range annotations {
		text, isText := value.(string)
		if isText && strings.HasPrefix(key, "toban.dev/") {
			annotations[key] = redactText(text)
		} else {
			annotations[key] = redacted
		}
	}
	return annotations
}

// redactEnvironment keeps the names of variables, and where their values come from.
func redactEnvironment(env []any) any {
	for _, one := range env {
		if variable, ok := one.(map[string]any); ok && variable["value"] != nil {
			variable["value"] = redacted
		}
	}
	return env
}
