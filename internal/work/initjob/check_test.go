package initjob

import (
	"strings"
	"testing"
)

func TestCheckPlan(t *testing.T) {
	good := Plan{Hosts: []string{"db"}, Database: "app", Owner: "app"}
	cases := map[string]struct {
		edit     func(*Plan)
		password string
		want     string // in the message; empty: taken
	}{
		"as usual":              {func(*Plan) {}, "x", ""},
		"no hosts":              {func(p *Plan) { p.Hosts = nil }, "x", "no host"},
		"the superuser":         {func(p *Plan) { p.Owner = "postgres" }, "x", "role of the operator"},
		"the link's role":       {func(p *Plan) { p.Owner = "toban_link" }, "x", "role of the operator"},
		"our own role":          {func(p *Plan) { p.Owner = "toban_replication" }, "x", "role of the operator"},
		"an empty password":     {func(*Plan) {}, "", "is empty"},
		"too long in bytes":     {func(p *Plan) { p.Database = strings.Repeat("名", 22) }, "x", "66 bytes long"},
		"as long as can be":     {func(p *Plan) { p.Database = strings.Repeat("名", 21) }, "x", ""},
		"an extension, no name": {func(p *Plan) { p.Extensions = []string{""} }, "x", "is empty"},
		"a name with a NUL":     {func(p *Plan) { p.Owner = "a\x00b" }, "x", "control character"},
		"a name to be quoted":   {func(p *Plan) { p.Owner = `a"; DROP` }, "x", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := good
			c.edit(&plan)
			err := checkPlan(plan, c.password)
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}
