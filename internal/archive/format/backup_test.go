package format

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// What a version of Toban from before says of a backup that it can't read, and what this one says of a later layout.
func TestABackupInALayoutThatIsNotKnown(t *testing.T) {
	text, err := json.Marshal(Backup{ID: "20261120T031500Z-3f2a", Layout: LayoutLists})
	if err != nil {
		t.Fatal(err)
	}
	var former struct { // as it was read in the layout before
		ID     string   `json:"id"`
		Pieces []Object `json:"pieces"`
	}
	if err := json.Unmarshal(text, &former); err != nil {
		t.Fatal(err)
	}
	// A backup whose id is not that of its folder is "it is that of …", and nothing is deleted then.
	if want := "20261120T031500Z-3f2a, in layout 2: a newer version of Toban can read it"; former.ID != want {
		t.Errorf("it is that of %q", former.ID)
	}
	var b Backup
	if err := json.Unmarshal(text, &b); err != nil || b.ID != "20261120T031500Z-3f2a" {
		t.Errorf("%q, %v", b.ID, err)
	}
	if err := json.Unmarshal([]byte(`{"id": "x", "layout": 3}`), &b); err == nil ||
		!strings.Contains(err.Error(), "take a newer version of Toban") {
		t.Errorf("layout 3: %v", err)
	}
}

func TestBackupJSON(t *testing.T) {
	b := Backup{
		ID: "x", Type: TypeFull, StartLSN: 0x1A1F00028, StopLSN: 0x1A2000000, Term: 42, Started: time.Unix(1, 0).UTC(),
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil || raw["startLSN"] != "1/A1F00028" || raw["type"] != "full" {
		t.Errorf("%s: %v", text, err)
	}
	var back Backup
	if err := json.Unmarshal(text, &back); err != nil || back.StartLSN != b.StartLSN ||
		back.StopLSN != b.StopLSN || back.Term != 42 {
		t.Errorf("%+v: %v", back, err)
	}
}
