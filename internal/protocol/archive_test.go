package protocol_test

import (
	"encoding/json"
	"testing"

	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

func TestWhereAGapEnds(t *testing.T) {
	for name, c := range map[string]struct {
		said  string
		want  wal.LSN
		known bool
	}{
		"it is said":             {`{"gap": "WAL of a morning", "gapEnd": "0/6000000"}`, 0x6000000, true},
		"by an agent of 0.1.0":   {`{"gap": "from 0/5000000 to 0/6000000"}`, 0x6000000, true},
		"it can't be understood": {`{"gap": "from here to there", "gapEnd": "somewhere"}`, 0, false},
		"there is none":          {`{}`, 0, false},
	} {
		var s protocol.ArchiveStatus
		if err := json.Unmarshal([]byte(c.said), &s); err != nil {
			t.Fatal(err)
		}
		if got, known := s.GapEndsAt(); got != c.want || known != c.known {
			t.Errorf("%s: %s, %v", name, got, known)
		}
	}
}
