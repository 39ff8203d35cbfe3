package major

import (
	"slices"
	"strings"
	"testing"
)

// sound is a database system that can be upgraded, in which nothing is to be known before.
func sound() Facts {
	return Facts{
		From: 17, To: 18, Extensions: map[string]string{"hstore": "1.8", "plpgsql": "1.0"},
		Libraries: []string{"hstore", "mine"}, Locales: []string{"C.utf8", "en_US.utf8"},
		Former: []string{"C.utf8", "en_US.utf8"}, CLibraries: [2]string{"glibc 2.36", "glibc 2.41"},
		Databases: []DatabaseFacts{
			{Name: "shop", Provider: "c", Collate: "C.UTF-8", CType: "C.UTF-8",
				Extensions: map[string]string{"hstore": "1.8"}, Libraries: []string{"$libdir/mine"}},
			{Name: "template0", Closed: true, Provider: "c", Collate: "C", CType: "POSIX"},
		},
	}
}

func TestCheck(t *testing.T) {
	shop := func(change func(*DatabaseFacts)) func(*Facts) {
		return func(f *Facts) { change(&f.Databases[0]) }
	}
	for name, c := range map[string]struct {
		change   func(*Facts)
		refusals []string
		warnings []string
		object   string
	}{
		"nothing": {change: func(*Facts) {}},
		"a prepared transaction": {
			func(f *Facts) { f.Prepared = []string{"x"} }, []string{PreparedTransactions}, nil, "x",
		},
		"a slot that comes along": {
			func(f *Facts) { f.Slots = []string{"s"} }, nil, []string{SlotsMustBeRead}, "s",
		},
		"a slot that does not": {
			func(f *Facts) { f.From, f.Slots = 16, []string{"s"} }, []string{LogicalSlots}, nil, "s",
		},
		"a database that is half gone": {
			shop(func(d *DatabaseFacts) { d.Invalid, d.Closed, d.Collate = true, true, "xx" }),
			[]string{InvalidDatabases}, nil, "shop",
		},
		"a database that nobody may use": {
			shop(func(d *DatabaseFacts) { d.Closed = true }), []string{ClosedDatabases}, nil, "shop",
		},
		"a column with numbers": {
			shop(func(d *DatabaseFacts) { d.References = []string{"public.t.c"} }),
			[]string{ReferenceColumns}, nil, "shop: public.t.c",
		},
		"a column with an option": {
			shop(func(d *DatabaseFacts) { d.Options = []string{"public.t.c (x=1)"} }),
			[]string{ColumnOptions}, nil, "shop: public.t.c (x=1)",
		},
		"a partition that is detached in part": {
			shop(func(d *DatabaseFacts) { d.Detaching = []string{"public.p_1"} }), []string{DetachPending}, nil,
			"shop: public.p_1",
		},
		"a table in the information schema": {
			shop(func(d *DatabaseFacts) { d.System = []string{"table information_schema.t"} }),
			[]string{SystemSchemas}, nil, "shop: table information_schema.t",
		},
		"a membership that would be lost": {
			func(f *Facts) { f.Lost = []string{"membership of pg_monitor in pg_signal_backend"} },
			[]string{SystemRights}, nil, "membership of pg_monitor in pg_signal_backend",
		},
		"a right that would be lost": {
			shop(func(d *DatabaseFacts) { d.Lost = []string{"rights to information_schema.tables"} }),
			[]string{SystemRights}, nil, "shop: rights to information_schema.tables",
		},
		"an option that would be lost": {
			func(f *Facts) { f.Resets = []string{"tablespace pg_default (random_page_cost=1.1)"} },
			nil, []string{SystemSettings}, "tablespace pg_default (random_page_cost=1.1)",
		},
		"a right to read that would be lost": {
			shop(func(d *DatabaseFacts) { d.Resets = []string{"rights to information_schema.sql_parts"} }),
			nil, []string{SystemSettings}, "shop: rights to information_schema.sql_parts",
		},
		"an extension that is missing": {
			func(f *Facts) { delete(f.Extensions, "hstore") }, []string{ExtensionMissing}, nil, "shop: hstore",
		},
		"extensions that are not known": {change: func(f *Facts) { f.Extensions = nil }},
		"an extension of another version": {
			func(f *Facts) { f.Extensions["hstore"] = "1.9" }, nil, []string{ExtensionUpdates},
			"shop: hstore 1.8, then 1.9",
		},
		"an extension that the new image does not know": {
			func(f *Facts) {
				f.Extensions["hstore"], f.Scripts = "1.7", map[string][]string{"hstore": {"1.6", "1.6--1.7"}}
			}, []string{ExtensionOlder}, nil, "shop: hstore 1.8, then 1.7",
		},
		"an extension without a way to the other version": {
			func(f *Facts) { f.Extensions["hstore"], f.Scripts = "1.9", map[string][]string{"hstore": {"1.9"}} },
			nil, []string{ExtensionStays}, "shop: hstore 1.8, then 1.9",
		},
		"a library that is missing": {
			func(f *Facts) { f.Libraries = []string{} }, []string{LibraryMissing}, nil, "shop: $libdir/mine",
		},
		"libraries that are not known": {change: func(f *Facts) { f.Libraries = nil }},
		"a locale that the new image lacks": {
			func(f *Facts) {
				f.Databases[0].Provider, f.Databases[0].Collate = "i", "de_DE.UTF-8"
				f.Former = []string{"de_DE.utf8", "C.utf8"}
			}, []string{LocaleMissing}, nil, "shop: de_DE.UTF-8",
		},
		"a locale that the old image has elsewhere": {
			func(f *Facts) { f.Databases[0].Provider, f.Former = "i", []string{} },
			[]string{LocaleMissing}, nil, "shop: C.UTF-8",
		},
		"locales that are not known": {change: func(f *Facts) { f.Locales, f.Former = nil, nil }},
		"another C library that sorts": {
			shop(func(d *DatabaseFacts) { d.Collate = "en_US.UTF-8" }), nil, []string{SortingMayDiffer}, "shop",
		},
		"a C library that is not known": {
			change: func(f *Facts) { f.Databases[0].Collate, f.CLibraries[1] = "en_US.UTF-8", "" },
		},
		"a role with PostgreSQL's name": {
			func(f *Facts) { f.Roles = []string{"pg_mine"} }, []string{RoleNames}, nil, "pg_mine",
		},
		"a tablespace elsewhere": {
			func(f *Facts) { f.Outside = []string{"fast: /mnt"} }, []string{TablespaceOutside}, nil, "fast: /mnt",
		},
		"a parameter that is gone": {
			func(f *Facts) { f.Rejected = "unrecognized" }, []string{ParameterRejected}, nil, "unrecognized",
		},
		"a trial that has failed": {func(f *Facts) { f.Trial = "no" }, []string{TrialFailed}, nil, "no"},
		"a trial of a part":       {func(f *Facts) { f.Skipped = "no" }, nil, []string{TrialIncomplete}, "no"},
		"no statistics":           {func(f *Facts) { f.To = 17; f.From = 16 }, nil, []string{NoStatistics}, ""},
		"very many tables":        {func(f *Facts) { f.Relations = 200_000 }, nil, []string{ManyRelations}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			facts := sound()
			c.change(&facts)
			refusals, warnings := Check(facts)
			var objects []string
			reasons := func(all []Finding) (out []string) {
				for _, f := range all {
					out, objects = append(out, f.Reason), append(objects, f.Objects...)
				}
				return out
			}
			if got := reasons(refusals); !slices.Equal(got, c.refusals) {
				t.Errorf("refuses %q, want %q", got, c.refusals)
			}
			if got := reasons(warnings); !slices.Equal(got, c.warnings) {
				t.Errorf("warns %q, want %q", got, c.warnings)
			}
			if c.object != "" && !slices.Equal(objects, []string{c.object}) {
				t.Errorf("names %q, want %q", objects, c.object)
			}
		})
	}
}

// A warning asks nobody to do what Toban does by itself, and says so where it does not.
func TestWhatIsDoneAfterAnUpgradeIsNoAdvice(t *testing.T) {
	facts := sound()
	facts.From, facts.To, facts.Extensions["hstore"] = 16, 17, "1.9"
	facts.Databases[0].Collate = "en_US.UTF-8"
	for name, c := range map[string]struct {
		onRequest, update bool
		want, never       []string
	}{
		"by itself": {false, false, []string{"rebuilt by themselves", "made by themselves", "ALTER EXTENSION"},
			[]string{"REINDEX", "ANALYZE", "toban.dev/reindex"}},
		"extensions too": {false, true, []string{"updated by themselves"},
			[]string{"ALTER EXTENSION", "stay as they are"}},
		"on request": {true, true, []string{"rebuilt when you ask", "made when you ask", "updated when you ask"},
			[]string{"by themselves"}},
	} {
		f := facts
		f.OnRequest, f.UpdateExtensions = c.onRequest, c.update
		_, warnings := Check(f)
		var words string
		for _, w := range warnings {
			words += w.Message + "\n"
		}
		for _, want := range c.want {
			if !strings.Contains(words, want) {
				t.Errorf("%s: it does not say %q:\n%s", name, want, words)
			}
		}
		for _, never := range c.never {
			if strings.Contains(words, never) {
				t.Errorf("%s: it says %q:\n%s", name, never, words)
			}
		}
	}
}
