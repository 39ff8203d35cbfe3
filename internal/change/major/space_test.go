package major

import (
	"testing"

	"toban.dev/internal/change/space"
)

func TestNoRoom(t *testing.T) {
	const mib, gib = int64(1) << 20, int64(1) << 30
	volume := func(size, free int64) space.Volume { return space.Volume{Known: true, Size: size, Used: size - free} }
	small := Room{Instance: "shop-0", Databases: 3 * gib, Catalogs: 20 * mib, Relations: 2560}
	for name, c := range map[string]struct {
		copies bool
		data   space.Volume
		wal    *space.Volume
		want   string
	}{
		"there is room":               {data: volume(10*gib, 5*gib)},
		"there is room for a copy":    {copies: true, data: volume(10*gib, 5*gib)},
		"small, with few databases":   {data: volume(512*mib, 190*mib)},
		"it is not known":             {copies: true},
		"a size that nobody has told": {copies: true, data: space.Volume{Known: true}},
		"no room for catalogs": {data: volume(10*gib, 450*mib), want: "the volume of shop-0 has no room: 450Mi are " +
			"free, and 488Mi are needed for the new version's catalogs and WAL, and for writes afterwards. Raise " +
			"spec.storage.size"},
		"no room for a copy": {copies: true, data: volume(10*gib, 2*gib), want: "the volume of shop-0 has no room: " +
			"2.0Gi are free, and 3.5Gi are needed for a copy of the databases (3.0Gi), the new version's catalogs " +
			"and WAL, and for writes afterwards. Raise spec.storage.size, or set spec.upgrade.method to Link, which " +
			"needs 488Mi"},
		"no room for WAL": {data: volume(10*gib, 5*gib), wal: &space.Volume{WAL: true, Known: true, Size: gib,
			Used: gib - 130*mib}, want: "the WAL volume of shop-0 has no room: 130Mi are free, and 140Mi are needed " +
			"for the new version's WAL, and for writes afterwards. Raise spec.storage.wal.size"},
		"a WAL volume of which nothing is known": {data: volume(10*gib, 5*gib), wal: &space.Volume{WAL: true}},
		"no room for either": {copies: true, data: volume(10*gib, 400*mib), want: "the volume of shop-0 has no room: " +
			"400Mi are free, and 3.5Gi are needed for a copy of the databases (3.0Gi), the new version's catalogs " +
			"and WAL, and for writes afterwards. Raise spec.storage.size"},
	} {
		t.Run(name, func(t *testing.T) {
			r := small
			r.Copies, r.Data, r.WAL = c.copies, c.data, c.wal
			if c.data.Size < gib {
				r.Count = 4
			}
			if got := NoRoom(r); got != c.want {
				t.Errorf("it says\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
