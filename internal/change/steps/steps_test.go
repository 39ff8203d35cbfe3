package steps

import (
	"testing"
	"time"

	"toban.dev/internal/change/window"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// three are steps of which the second one is begun for itself, and kept.
func three(edit ...func(*Table)) Table {
	done := func() *Work { return &Work{Started: true, Done: true} }
	t := Table{
		Now:  noon,
		Fail: func(why string) Decision { return Decision{Phase: "Failed", Failure: why} },
		Rows: []Row{
			{Phase: "Pulling", Work: done(), Says: "The image is pulled", Heading: "nodes pull", Writes: WritesGoOn},
			{
				Phase: "Closing", Kept: true, Begins: "Clients go", Work: done(), Says: "Clients end", Task: "close",
				Until: noon.Add(time.Minute), Former: "too slow", Heading: "clients go", Writes: WritesDown,
			},
			{Phase: "Open", Waits: []Reason{{Is: true, Why: "Serves", Says: "It serves"}}},
		},
	}
	for _, e := range edit {
		e(&t)
	}
	return t
}

func TestDecide(t *testing.T) {
	pull := func(w Work) func(*Table) { return func(t *Table) { t.Rows[0].Work = &w } }
	closes := func(w Work) func(*Table) { return func(t *Table) { t.Rows[1].Work = &w } }
	fails := func(t *Table) { t.Rows[1].Fails = []Reason{{Says: "no"}, {Is: true, Says: "another leads"}} }
	putOff := func(t *Table) {
		t.Rows[1].Fail = func(why string) Decision { return Decision{Phase: "Pulling", Failure: why, PutOff: true} }
	}
	windowed := func(hour int) func(*Table) {
		return func(t *Table) {
			t.Rows[1].Window = "It opens at %s"
			t.Window = &window.Window{Hour: hour, Length: time.Hour, Location: time.UTC}
		}
	}
	leads := func(t *Table) {
		t.Rows[2].Waits = []Reason{{Is: true, To: "Pulling", Says: "It goes back", At: noon.Add(time.Hour)}}
	}
	over := func(t *Table) { t.Rows[2].Waits = nil }
	anyhow := func(t *Table) { t.Window = nil }
	another := Decision{Phase: "Failed", Failure: "another leads"}
	serves := Decision{Phase: "Open", Why: "Serves", Says: "It serves"}
	minute := noon.Add(time.Minute)
	for name, c := range map[string]struct {
		table Table
		from  Phase
		want  Decision
	}{
		"the first is not done": {three(pull(Work{Says: "30 %"})), "",
			Decision{Phase: "Pulling", Says: "The image is pulled: 30 %"}},
		"it has failed": {three(pull(Work{Failed: "no room"})), "",
			Decision{Phase: "Failed", Failure: "no room"}},
		"the next begins": {three(), "Pulling", Decision{Phase: "Closing", Says: "Clients go", At: minute}},
		"it begins before it ends": {three(closes(Work{})), "",
			Decision{Phase: "Closing", Says: "Clients go", At: minute}},
		"it goes on": {three(closes(Work{})), "Closing",
			Decision{Phase: "Closing", Says: "Clients end", Task: "close", Failure: "too slow", At: minute}},
		"it goes on, though what was before is gone": {three(pull(Work{}), closes(Work{})), "Closing",
			Decision{Phase: "Closing", Says: "Clients end", Task: "close", Failure: "too slow", At: minute}},
		"the first reason counts": {three(fails), "Closing", another},
		"it fails in its own way": {three(fails, putOff), "Closing",
			Decision{Phase: "Pulling", Failure: "another leads", PutOff: true}},
		"a failure is seen before": {three(fails, windowed(3)), "Closing", another},
		"the window is open":       {three(windowed(12)), "Closing", serves},
		"it need not wait for it":  {three(windowed(3), anyhow), "Closing", serves},
		"one that is not kept is not": {three(pull(Work{})), "Open",
			Decision{Phase: "Pulling", Says: "The image is pulled"}},
		"the window is closed": {three(windowed(3)), "Closing", Decision{Phase: "Closing", Why: WhyOutsideWindow,
			Says: "It opens at 2026-11-29T03:00:00Z", Failure: "too slow", At: noon.Add(15 * time.Hour)}},
		"a reason leads elsewhere": {three(leads), "Closing",
			Decision{Phase: "Pulling", Says: "It goes back", At: noon.Add(time.Hour)}},
		"all are done": {three(over), "Closing", Decision{Phase: "Open"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.table.Decide(c.from); got != c.want {
				t.Errorf("it is %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestWhatIsToldBefore(t *testing.T) {
	table := three()
	if all := table.Headings(); len(all) != 2 || all[0] != "nodes pull" || all[1] != "clients go" {
		t.Errorf("the headings are %q", all)
	}
	if got := table.Writes(); got != WritesDown {
		t.Errorf("the worst is %s", got)
	}
	if got := (Table{Rows: []Row{{Phase: "Open"}}}).Writes(); got != WritesGoOn {
		t.Errorf("where nothing is said, the worst is %s", got)
	}
}
