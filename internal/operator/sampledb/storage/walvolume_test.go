package storage

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/space"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// walScope is that of two instances with data volumes and WAL volumes of 100 GiB.
func walScope(was string, data, wal []*protocol.Room) *Topics {
	s := roomScope(was, data...)
	s.DB.Spec.Storage.WAL = &v1.WALSpec{Size: "100Gi"}
	for i, r := range wal {
		name := []string{"x-0", "x-1"}[i]
		answer := s.Seen.Answers[name]
		answer.WALRoom = r
		s.Seen.Answers[name] = answer
	}
	return s
}

func rooms(all ...*protocol.Room) []*protocol.Room { return all }

func TestWhetherWALVolumesHaveRoom(t *testing.T) {
	refuses := func(s *Topics, wal bool) *Topics {
		answer := s.Seen.Answers["x-0"]
		answer.Role, answer.Ready, answer.ReadOnly, answer.SparesWAL = protocol.RolePrimary, true, true, wal
		s.Seen.Answers["x-0"] = answer
		return s
	}
	grows := func(s *Topics, answer string) *Topics {
		s.DB.Spec.Storage.Grow = &v1.GrowSpec{Limit: "100Gi"}
		s.walGrowth.Decision = space.Decision{Answer: answer, Message: "volume wal-x-0 is still being enlarged"}
		return s
	}
	well := rooms(volumeOf(40, 0), volumeOf(40, 0))
	for name, c := range map[string]struct {
		scope  *Topics
		reason string
		says   []string
	}{
		"both have room": {walScope("", well, rooms(volumeOf(10, 0))), v1.ReasonRoomEnough, []string{"data-x-0"}},
		"the WAL volume is fuller": {walScope("", well, rooms(volumeOf(50, 0))), v1.ReasonRoomEnough,
			[]string{"wal-x-0 (100Gi) is 50 % used"}},
		"it is nearly full": {walScope("", well, rooms(volumeOf(10, 0), volumeOf(92, 0))), v1.ReasonNearlyFull,
			[]string{"wal-x-1 (100Gi) is 92 % used", "Raise storage.wal.size, or set storage.grow"}},
		"it is full": {walScope("", well, rooms(volumeOf(100, 0))), v1.ReasonVolumeFull,
			[]string{"wal-x-0 has no room for WAL", "storage.wal.size"}},
		"it is full soon": {walScope("", well, rooms(volumeOf(60, 9))), v1.ReasonFillsSoon, []string{"wal-x-0"}},
		"writes are refused for it": {refuses(walScope("", well, rooms(volumeOf(99, 0))), true), v1.ReasonWritesRefused,
			[]string{"before its volume wal-x-0 is full", "Raise storage.wal.size", "when 10.0Gi are free"}},
		"writes are refused for the data": {refuses(walScope("", rooms(volumeOf(99, 0)), rooms(volumeOf(9, 0))), false),
			v1.ReasonWritesRefused, []string{"before its volume data-x-0 is full", "Raise storage.size"}},
		"it grows": {refuses(grows(walScope("", well, rooms(volumeOf(99, 0))), space.Grows), true),
			v1.ReasonWritesRefused, []string{"It is being enlarged to 100Gi"}},
		"it can't": {grows(walScope("", well, rooms(volumeOf(82, 0))), space.LimitReached),
			v1.ReasonGrowthLimitReached, []string{"wal-x-0 (100Gi) is 82 % used"}},
	} {
		v := c.scope.judge()
		for _, words := range append(c.says, "") {
			if v.Reason != c.reason || !strings.Contains(v.Message, words) {
				t.Errorf("%s: it is %s (%s), want %s with %q", name, v.Reason, v.Message, c.reason, words)
			}
		}
	}
}

// What the status says of a WAL volume is about right, and gone where there is none.
func TestTheStatusOfAWALVolume(t *testing.T) {
	for name, c := range map[string]struct {
		old  string
		now  *protocol.Room
		want string
	}{
		"the first time":    {"", volumeOf(40, 0), "40 % of 100Gi"},
		"about the same":    {"40 % of 100Gi", volumeOf(43, 1), "40 % of 100Gi"},
		"more":              {"40 % of 100Gi", volumeOf(45, 0), "45 % of 100Gi"},
		"larger":            {"40 % of 50Gi", volumeOf(40, 0), "40 % of 100Gi"},
		"full soon":         {"60 % of 100Gi", volumeOf(60, 20), "60 % of 100Gi; full in 2 days"},
		"still":             {"60 % of 100Gi; full in 2 days", volumeOf(60, 15), "60 % of 100Gi; full in 2 days"},
		"no more":           {"60 % of 100Gi; full in 2 days", volumeOf(60, 0), "60 % of 100Gi"},
		"silent":            {"40 % of 100Gi", nil, "40 % of 100Gi"},
		"of another format": {"much", volumeOf(40, 0), "40 % of 100Gi"},
	} {
		s := walScope("", rooms(volumeOf(1, 0)), rooms(c.now))
		s.DB.Status.InstanceStatuses = []v1.InstanceStatus{{Name: "x-0", WAL: c.old}}
		if got := s.WalStatus("x-0"); got != c.want {
			t.Errorf("%s: it says %q, want %q", name, got, c.want)
		}
		if s.DB.Spec.Storage.WAL = nil; s.WalStatus("x-0") != "" {
			t.Errorf("%s: it says something without a WAL volume", name)
		}
	}
}

// The size in force is the largest of the spec and of the WAL volumes; a new instance gets it.
func TestTheSizeInForceOfWALVolumes(t *testing.T) {
	for name, c := range map[string]struct{ size, claims, want string }{
		"as ever":         {"10Gi", "10Gi 10Gi", "10Gi"},
		"raised":          {"20Gi", "10Gi 10Gi", "20Gi"},
		"one has grown":   {"10Gi", "10Gi 16Gi", "16Gi"},
		"none is there":   {"10Gi", "", "10Gi"},
		"of a former one": {"10Gi", "10Gi 10Gi 40Gi", "10Gi"},
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "1"}}
		db.Spec.Instances, db.Spec.Storage = 2, v1.StorageSpec{Size: "50Gi", WAL: &v1.WALSpec{Size: c.size}}
		s := topicsOf(world.Core{DB: db, Seen: world.Observed{WALs: map[int]*corev1.PersistentVolumeClaim{}}})
		for n, has := range strings.Fields(c.claims) {
			s.Seen.WALs[n] = claimOf(has, "")
		}
		s.TakeWALSizeInForce()
		size, err := desired.WALVolume.Size(s.DB)
		if err != nil || size.Cmp(resource.MustParse(c.want)) != 0 || db.Spec.Storage.WAL.Size != c.size {
			t.Errorf("%s: %s is in force, want %s: %v", name, size.String(), c.want, err)
		}
		if s.DB.Spec.Storage.Size != "50Gi" {
			t.Errorf("%s: the data volumes get %s", name, s.DB.Spec.Storage.Size)
		}
	}
}

// All volumes of an instance have to be there.
func TestVolumesAreBoundWhenBothAre(t *testing.T) {
	bind := func(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
		claim.Status.Phase = corev1.ClaimBound
		return claim
	}
	s := walScope("", rooms(volumeOf(1, 0)), nil)
	s.DB.Spec.Instances = 1
	s.Seen.Claims = map[int]*corev1.PersistentVolumeClaim{0: bind(claimOf("100Gi", ""))}
	if v := s.bound(); v.Reason != v1.ReasonProvisioning || !strings.Contains(v.Message, "wal-x-0") {
		t.Errorf("without the WAL volume it is %+v", v)
	}
	s.Seen.WALs = map[int]*corev1.PersistentVolumeClaim{0: bind(claimOf("100Gi", ""))}
	if v := s.bound(); v.Reason != v1.ReasonBound {
		t.Errorf("with both it is %+v", v)
	}
	s.Seen.WALs[0].Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("50Gi")}
	if v := s.bound(); v.Reason != v1.ReasonResizing {
		t.Errorf("while the WAL volume grows it is %+v", v)
	}
}
