package major

import "testing"

func TestWhichWayBackThereWillBe(t *testing.T) {
	for want, w := range map[string]WayBack{
		"once PostgreSQL 18 has started, the way back is a restore from the archive into another SampleDB, without " +
			"what is written from then on": {Archive: true, Backup: true},
		"once PostgreSQL 18 has started, the way back is the former data, which stays whole on the volume until the " +
			"upgrade is accepted, or a restore from the archive into another SampleDB, both without what is written " +
			"from then on": {Method: "Clone", Archive: true, Backup: true},
		"once PostgreSQL 18 has started, the way back is the former data, which stays whole on the volume until the " +
			"upgrade is accepted, without what is written from then on": {Method: "Copy"},
		"once PostgreSQL 18 has started, there is no way back: there is no archive (spec.backup), and with the " +
			"method Link the former data is of no use then": {Method: "Link"},
		"once PostgreSQL 18 has started, there is no way back: there is no archive (spec.backup), and the former " +
			"data is of use then only if the volume can clone (XFS, Btrfs)": {},
		"once PostgreSQL 18 has started, there is no way back: no backup is taken before (spec.upgrade.backup is " +
			"None), and whether an earlier one is there is not looked at, and with the method Link the former " +
			"data is of no use then": {Method: "Link", Archive: true},
	} {
		w.To = 18
		if got := w.Sentence(); got != want {
			t.Errorf("it says\n%s\nwant\n%s", got, want)
		}
	}
}
