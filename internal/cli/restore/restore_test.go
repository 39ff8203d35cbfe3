package restore

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

func TestTheMomentOfARestore(t *testing.T) {
	for text, want := range map[string]v1.RestoreTarget{
		"2026-11-20T03:15:00+09:00":  {Time: "2026-11-20T03:15:00+09:00"},
		"2026-11-20 03:15:00.25Z":    {Time: "2026-11-20T03:15:00.25Z"},
		"0/3000060":                  {LSN: "0/3000060"},
		"1A/F":                       {LSN: "1A/F"},
		"transaction:4711":           {Transaction: "4711"},
		"name:before the release: 7": {Name: "before the release: 7"},
	} {
		got, err := parseMoment(text, false)
		if err != nil || got == nil || *got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
		if got, err := parseMoment(text, true); err != nil || !got.Exclusive {
			t.Errorf("right before %q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "latest"} {
		if got, err := parseMoment(text, false); got != nil || err != nil {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
		if _, err := parseMoment(text, true); err == nil {
			t.Errorf("there is a moment right before %q", text)
		}
	}
	// What could be meant in two ways is asked for, and not taken for a name that the WAL is searched for.
	for _, text := range []string{
		"2026-11-20", "2026-11-20 03:15", "2026-11-20T03:15:00", "yesterday", "4711", "transaction:x",
		"name:", "0/", "Latest",
	} {
		if got, err := parseMoment(text, false); err == nil || !strings.Contains(err.Error(), "time with its zone") {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}

// What is refused is known to be in no window; what a status can't tell is left to who reads the archive.
func TestWhichMomentsMayBeRestored(t *testing.T) {
	at := func(clock string) *metav1.Time {
		out, err := time.Parse(time.RFC3339Nano, "2026-11-20T"+clock+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return &metav1.Time{Time: out}
	}
	two := &v1.BackupStatus{Earliest: at("01:00:00"), Windows: []v1.RestoreWindow{
		{Branch: 7, Earliest: at("05:00:00")}, {Branch: 1, Earliest: at("01:00:00"), Latest: at("03:00:00")},
	}}
	many := &v1.BackupStatus{Earliest: at("01:00:00"), Windows: slices.Repeat(two.Windows, 2)}
	for name, c := range map[string]struct {
		status *v1.BackupStatus
		clock  string
		former *v1.FormerArchive
		want   bool
	}{
		"nothing is known":                   {nil, "00:00:00", nil, true},
		"no backup is complete":              {&v1.BackupStatus{}, "00:00:00", nil, true},
		"before the only window":             {&v1.BackupStatus{Earliest: at("01:00:00")}, "00:59:58", nil, false},
		"within the second of its begin":     {&v1.BackupStatus{Earliest: at("01:00:00")}, "00:59:59.5", nil, true},
		"before all windows":                 {two, "00:59:00", nil, false},
		"in the older one":                   {two, "02:00:00", nil, true},
		"within the second of its end":       {two, "03:00:00.5", nil, true},
		"between them":                       {two, "04:00:00", nil, false},
		"in the newer one":                   {two, "05:00:00", nil, true},
		"now":                                {two, "22:00:30", nil, true},
		"in the future":                      {two, "22:01:01", nil, false},
		"in the future of nothing known":     {nil, "23:00:00", nil, false},
		"ahead of the clock, and archived":   {&v1.BackupStatus{Latest: at("23:00:00")}, "23:00:30", nil, true},
		"in a window that may not be listed": {many, "00:45:00", nil, true},
		"of a former archive":                {two, "00:10:00", &v1.FormerArchive{Version: 17}, true},
	} {
		from := origin{name: "x", db: &v1.SampleDB{Status: v1.SampleDBStatus{Backup: c.status}}}
		if got := from.mayHave(at(c.clock).Time, at("22:00:00").Time, c.former); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A moment has come or not by the API server's clock, whatever that of the person's machine says.
func TestAMomentHasComeByTheClockOfTheCluster(t *testing.T) {
	now := time.Now().Add(3 * time.Hour) // this machine is behind
	for name, c := range map[string]struct {
		at time.Time
		ok bool
	}{
		"it has come": {now.Add(-time.Hour), true},
		"it has not":  {now.Add(time.Hour), false},
	} {
		r := restoreTo{restoreToOptions: &restoreToOptions{}, from: origin{name: "x", db: &v1.SampleDB{}, now: now},
			target: &v1.RestoreTarget{Time: c.at.Format(time.RFC3339)}}
		if err := r.mayReach(nil); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
