package sql

import (
	"maps"
	"slices"
	"strings"
)

// OptionsVariable gives settings to a session of psql, or of another one of PostgreSQL's programs, in its environment
// (PostgreSQL 17 documentation, 34.1.2, "options": spaces separate options, and stand behind a backslash in one).
func OptionsVariable(settings map[string]string) string {
	// Each is set after the one before: session_authorization resets role.
	names := []string{"session_authorization"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != "session_authorization" && name != "role" {
			names = append(names, name)
		}
	}
	escape := strings.NewReplacer(`\`, `\\`, ` `, `\ `)
	var words []string
	for _, name := range append(names, "role") {
		if value, is := settings[name]; is {
			words = append(words, "-c "+name+"="+escape.Replace(value))
		}
	}
	return "PGOPTIONS=" + strings.Join(words, " ")
}
