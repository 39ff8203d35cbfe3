package take

import (
	"testing"
)

func TestTheTimelineOfABackupLabel(t *testing.T) {
	label := "START WAL LOCATION: 0/2000028 (file 000000030000000000000002)\nCHECKPOINT LOCATION: 0/2000060\n" +
		"BACKUP METHOD: streamed\nBACKUP FROM: primary\nSTART TIME: 2026-11-20 03:00:00 UTC\nLABEL: toban x\n" +
		"START TIMELINE: 3\n"
	if timeline, err := timelineOfLabel(label); err != nil || timeline != 3 {
		t.Errorf("it is %d, %v", timeline, err)
	}
	if timeline, err := timelineOfLabel("LABEL: x\n"); err == nil {
		t.Errorf("of nothing it is %d", timeline)
	}
}
