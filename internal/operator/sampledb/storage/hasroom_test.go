package storage

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/space"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

const testGiB = int64(1) << 30

// volumeOf is what an agent says of a volume of 100 GiB of which so many hundredths are used and that fills by so many
// GiB a day, measured for a week; a negative rate is not known.
func volumeOf(used, perDay int64) *protocol.Room {
	r := &protocol.Room{Size: 100 * testGiB, Used: used * testGiB}
	if perDay >= 0 {
		rate := perDay * testGiB
		r.PerDay, r.Over = &rate, 7*space.Day
	}
	return r
}

// roomScope is that of a SampleDB of two instances of which the agents say so much.
func roomScope(was string, rooms ...*protocol.Room) *Topics {
	s := topicsOf(world.Core{DB: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, Now: time.Unix(1e9, 0)})
	s.DB.Spec.Storage.Size = "100Gi"
	if was != "" {
		s.DB.Status.Conditions = []metav1.Condition{{Type: v1.ConditionHasRoom, Reason: was}}
	}
	s.Seen.Answers = map[string]protocol.Status{}
	for i, r := range rooms {
		name := []string{"x-0", "x-1"}[i]
		s.Seen.Answers[name] = protocol.Status{Name: name, Room: r}
		s.Config.Members = append(s.Config.Members, protocol.Member{Name: name})
	}
	return s
}

func (s *Topics) judge() world.Verdict {
	var instances []v1.InstanceStatus
	for _, m := range s.Config.Members {
		instances = append(instances, v1.InstanceStatus{Name: m.Name, Volume: s.VolumeStatus(m.Name)})
	}
	return s.HasRoom(instances)
}

func TestWhetherVolumesHaveRoom(t *testing.T) {
	grows := func(s *Topics, answer string) *Topics {
		s.DB.Spec.Storage.Grow = &v1.GrowSpec{Limit: "100Gi"}
		s.growth.Decision = space.Decision{Answer: answer, Message: "volume data-x-0 is still being enlarged"}
		return s
	}
	since := func(s *Topics, ago time.Duration) *Topics {
		at := metav1.NewTime(s.Now.Add(-ago))
		s.GrownAt = &at
		return s
	}
	refuses := func(s *Topics) *Topics {
		answer := s.Seen.Answers["x-0"]
		answer.Role, answer.Ready, answer.ReadOnly = protocol.RolePrimary, true, true
		s.Seen.Answers["x-0"] = answer
		return s
	}
	young := volumeOf(20, 40)
	young.Over = 5 * time.Hour
	youngHalf := volumeOf(60, 40)
	youngHalf.Over = 5 * time.Hour
	for name, c := range map[string]struct {
		scope  *Topics
		reason string
		says   string
	}{
		"nothing is known": {roomScope("", nil, nil), "", ""},
		"one says nothing": {roomScope("", nil, volumeOf(40, 0)),
			v1.ReasonRoomEnough, "data-x-1 (100Gi) is 40 % used"},
		"the rate is not known": {roomScope("", volumeOf(40, -1)),
			v1.ReasonRoomEnough, "how fast it fills is not known yet"},
		"it does not fill": {roomScope("", volumeOf(40, 0)), v1.ReasonRoomEnough, "hardly fills"},
		"it fills for weeks": {roomScope("", volumeOf(40, 2)),
			v1.ReasonRoomEnough, "fills by 2.0Gi a day, and is full in 30 days"},
		"it is full in six days": {roomScope("", volumeOf(40, 9)),
			v1.ReasonFillsSoon, "is full in 6 days at that rate. Raise storage.size"},
		"the other is":             {roomScope("", volumeOf(50, 0), volumeOf(40, 9)), v1.ReasonFillsSoon, "data-x-1"},
		"it was, and is in nine":   {roomScope(v1.ReasonFillsSoon, volumeOf(55, 5)), v1.ReasonFillsSoon, "9 days"},
		"it was, and is in ten":    {roomScope(v1.ReasonFillsSoon, volumeOf(50, 5)), v1.ReasonRoomEnough, "10 days"},
		"a young rate, half empty": {roomScope("", young), v1.ReasonRoomEnough, "full in 2 days"},
		"a young rate, half full":  {roomScope("", youngHalf), v1.ReasonFillsSoon, "full in a day"},
		"a tenth is free":          {roomScope("", volumeOf(90, 0)), v1.ReasonNearlyFull, "90 % used"},
		"a bit more":               {roomScope("", volumeOf(89, 0)), v1.ReasonRoomEnough, "89 %"},
		"a bit more again":         {roomScope(v1.ReasonNearlyFull, volumeOf(87, 0)), v1.ReasonNearlyFull, "87 %"},
		"nothing is free": {roomScope("", volumeOf(10, 0), volumeOf(100, 0)),
			v1.ReasonVolumeFull, "data-x-1 has no room for WAL"},
		"the primary takes no writes": {refuses(roomScope("", volumeOf(99, 0), volumeOf(99, 0))),
			v1.ReasonWritesRefused, "before its volume data-x-0 is full. Raise storage.size, set storage.grow, or " +
				"delete what is not needed. It takes writes again by itself when 10.0Gi are free"},
		"it takes none until there is room": {refuses(grows(roomScope("", volumeOf(99, 0)), space.Grows)),
			v1.ReasonWritesRefused, "It is being enlarged to 100Gi"},
		"it is being enlarged": {grows(roomScope("", volumeOf(91, 0)), space.Grows), v1.ReasonNearlyFull,
			"It is being enlarged to 100Gi"},
		"the class can't grow": {grows(roomScope("", volumeOf(10, 0)), space.Fixed), v1.ReasonGrowthRefused, ""},
		"at the limit": {grows(roomScope("", volumeOf(82, 0)), space.LimitReached),
			v1.ReasonGrowthLimitReached, "raise that"},
		"at the limit, and a bit less than short": {grows(roomScope(v1.ReasonGrowthLimitReached, volumeOf(78, 0)),
			space.Enough),
			v1.ReasonGrowthLimitReached, "(100Gi)"},
		"at the limit, and emptied": {grows(roomScope(v1.ReasonGrowthLimitReached, volumeOf(70, 0)), space.Enough),
			v1.ReasonRoomEnough, ""},
		"the storage is slow": {since(grows(roomScope("", volumeOf(82, 0)), space.Pending), time.Hour),
			v1.ReasonGrowthPending,
			"still being enlarged"},
		"the storage works on it": {since(grows(roomScope("", volumeOf(82, 0)), space.Pending), time.Minute),
			v1.ReasonRoomEnough, "82 %"},
		"it is a folder of the node": {grows(roomScope("", volumeOf(82, 0)), space.Useless),
			v1.ReasonGrowthUseless, ""},
	} {
		if v := c.scope.judge(); v.Reason != c.reason || !strings.Contains(v.Message, c.says) {
			t.Errorf("%s: it is %s (%s), want %s with %q", name, v.Reason, v.Message, c.reason, c.says)
		}
	}
}

// The status is not written again for what changes all the time.
func TestTheStatusOfAVolumeIsAboutRight(t *testing.T) {
	for name, c := range map[string]struct {
		old, now *protocol.Room
		written  bool
	}{
		"nothing":                         {volumeOf(40, 1), volumeOf(40, 1), false},
		"a bit more is used":              {volumeOf(40, 0), volumeOf(44, 0), false},
		"more is used":                    {volumeOf(40, 0), volumeOf(45, 0), true},
		"a bit more when it is full":      {volumeOf(80, 0), volumeOf(81, 0), false},
		"more when it is full":            {volumeOf(80, 0), volumeOf(82, 0), true},
		"the rate is known":               {volumeOf(40, -1), volumeOf(40, 0), true},
		"it fills a bit faster":           {volumeOf(40, 4), volumeOf(40, 5), false},
		"it fills faster":                 {volumeOf(40, 1), volumeOf(40, 2), true},
		"it does not fill any more":       {volumeOf(40, 1), volumeOf(40, 0), true},
		"it is full within a week":        {volumeOf(58, 6), volumeOf(59, 6), true},
		"nothing is known any more of it": {volumeOf(40, 1), nil, false},
		"it is larger": {volumeOf(40, 0), &protocol.Room{Size: 200 * testGiB, Used: 80 * testGiB,
			PerDay: new(int64)}, true},
	} {
		s := roomScope("", c.now)
		before := asStatus(*c.old)
		s.DB.Status.InstanceStatuses = []v1.InstanceStatus{{Name: "x-0", Volume: &before}}
		if got := s.VolumeStatus("x-0"); (got != &before) != c.written && (*got != before) != c.written {
			t.Errorf("%s: it has %+v, then %+v", name, before, *got)
		}
	}
}
