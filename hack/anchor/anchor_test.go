package anchor

import "testing"

func TestNamesOfHeadings(t *testing.T) {
	var names Names
	for _, c := range [][2]string{
		{"What is lost, and what is not", "what-is-lost-and-what-is-not"},
		{"`spec.postgresql.hba`", "specpostgresqlhba"},
		{"snake_case and kebab-case", "snake_case-and-kebab-case"},
		{"フェイルオーバー", "フェイルオーバー"},
		{"Results", "results"}, {"Results", "results-1"}, {"Results", "results-2"},
	} {
		if got := names.Next(c[0]); got != c[1] {
			t.Errorf("%q is called %q, want %q", c[0], got, c[1])
		}
	}
}
