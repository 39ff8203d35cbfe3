package desired

import (
	"testing"
	"time"

	v1 "toban.dev/api/v1"
)

// The schedule takes the instance that the spec names, but for what only a standby does.
func TestWhichInstanceADrillOfTheScheduleBreaks(t *testing.T) {
	db := &v1.SampleDB{Spec: v1.SampleDBSpec{Drills: &v1.DrillsSpec{Instance: v1.DrillPrimary}}}
	for fault, want := range map[v1.FaultDrillFault]v1.FaultDrillInstance{
		v1.FaultDiskFull: v1.DrillPrimary, v1.FaultReplayPaused: v1.DrillStandby,
	} {
		if got := ScheduledDrill(db, time.Unix(0, 0), fault).Spec.Instance; got != want {
			t.Errorf("%s is of a %s, want %s", fault, got, want)
		}
	}
}
