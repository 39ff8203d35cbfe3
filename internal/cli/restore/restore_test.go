package restore

import (
	"strings"
	"testing"

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
