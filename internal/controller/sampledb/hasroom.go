package sampledb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/room"
)

const (
	// nearlyFull is how much of a volume may be used, in hundredths, before it is told. It is no more told when it is
	// nearlyFullNoMore or less: what changes with each checkpoint is no news.
	nearlyFull, nearlyFullNoMore = 90, 85
	// fillsSoon is in how many days a volume may be full, likewise. What was measured for less than measuredWell counts
	// where halfUsed of the volume is used.
	fillsSoon, fillsSoonNoMore = 7, 10
	measuredWell               = 24 * time.Hour
	halfUsed                   = 50
	// limitNoMore is how much may be used at the limit of growth when that is no more told.
	limitNoMore = 75
	// leastWAL is what a server needs to write WAL: one segment, in bytes.
	leastWAL = 16 << 20
	// growthPatience is how long the storage may take to enlarge a volume before it is told.
	growthPatience = 10 * time.Minute
	// longest is for how many days it is said when a volume is full.
	longest = 3 * 365
	// finely is from how many hundredths on it is told more exactly how much is used.
	finely = 75
)

// volumeStatus is how full the volume of an instance is, nil where that was never known. What the status has stays as
// long as it is about right.
func (s *scope) volumeStatus(instance string) *v1.VolumeStatus {
	old := s.instanceBefore(instance).Volume
	seen := s.seen.answers[instance].Room
	if seen == nil || seen.Size <= 0 {
		return old
	}
	now := asStatus(*seen)
	if old != nil && aboutSame(*old, now) {
		return old
	}
	return &now
}

// asStatus is what an agent says of its volume, rounded for people.
func asStatus(r protocol.Room) v1.VolumeStatus {
	used := 100 * float64(min(r.Used, r.Size)) / float64(r.Size)
	out := v1.VolumeStatus{Size: room.Amount(r.Size), UsedPercent: int32(used)}
	if r.PerDay == nil {
		return out
	}
	out.FillsPerDay = room.Amount(*r.PerDay)
	in, never := room.FullIn(r.Size-r.Used, *r.PerDay)
	if !never && out.FillsPerDay != "0" && in <= longest*room.Day {
		days := int32(in.Hours() / 24)
		out.FullInDays = &days
	}
	return out
}

// aboutSame says that what the status has of a volume is not to be written again.
func aboutSame(old, now v1.VolumeStatus) bool {
	tolerated := int32(5)
	if max(old.UsedPercent, now.UsedPercent) > finely {
		tolerated = 2
	}
	return old.Size == now.Size && distance(old.UsedPercent, now.UsedPercent) < tolerated &&
		(old.FillsPerDay == "") == (now.FillsPerDay == "") && sameDays(old.FullInDays, now.FullInDays)
}

// sameDays says that two forecasts hardly differ. That a volume is full soon is always something new.
func sameDays(old, now *int32) bool {
	if old == nil || now == nil {
		return old == now
	}
	if *now < fillsSoon && *old >= fillsSoon {
		return false
	}
	return distance(*old, *now) <= max(*old, *now)/4
}

func distance(a, b int32) int32 { return max(a-b, b-a) }

// hasRoom is true when no volume is nearly full, or will be soon, those that are to grow by themselves can, and no slot
// keeps much WAL. There is no verdict where nothing is known.
func (s *scope) hasRoom(instances []v1.InstanceStatus) verdict {
	known := slices.DeleteFunc(slices.Clone(instances), func(i v1.InstanceStatus) bool { return i.Volume == nil })
	if len(known) == 0 {
		return verdict{}
	}
	was, before := "", meta.FindStatusCondition(s.db.Status.Conditions, v1.ConditionHasRoom)
	if before != nil {
		was = before.Reason
	}
	fullest := slices.MaxFunc(known, func(a, b v1.InstanceStatus) int {
		return cmp.Compare(a.Volume.UsedPercent, b.Volume.UsedPercent)
	})
	kept := s.keptWAL(before)
	if refused := s.writesRefused(); refused != nil {
		return refused.adding(kept)
	}
	if words := s.filledByDrill(); words != "" {
		return no(v1.ReasonNearlyFull, words)
	}
	rooms := s.rooms()
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		if rooms[name].Size-rooms[name].Used < leastWAL {
			return no(v1.ReasonVolumeFull, fmt.Sprintf(
				"volume %s has no room for WAL: a primary there takes no writes. %s",
				naming.ClaimOf(name), s.moreRoom())).adding(kept)
		}
	}
	if v := s.cannotGrow(fullest, was); v.reason != "" {
		return v.adding(kept)
	}
	if fullest.Volume.UsedPercent >= nearlyFull ||
		was == v1.ReasonNearlyFull && fullest.Volume.UsedPercent > nearlyFullNoMore {
		return no(v1.ReasonNearlyFull, sentence(fullest)+". "+s.moreRoom()).adding(kept)
	}
	if kept != "" {
		return no(v1.ReasonWALKept, kept)
	}
	soonest := slices.MinFunc(known, func(a, b v1.InstanceStatus) int { return cmp.Compare(days(a), days(b)) })
	if within := days(soonest); s.rateCounts(soonest) &&
		(within < fillsSoon || was == v1.ReasonFillsSoon && within < fillsSoonNoMore) {
		return no(v1.ReasonFillsSoon, sentence(soonest)+". "+s.moreRoom())
	}
	return yes(v1.ReasonRoomEnough, "no volume is nearly full: "+sentence(fullest))
}

// writesRefused is there while the primary takes no writes because its volume gets full.
func (s *scope) writesRefused() *verdict {
	primary := s.primary()
	answer := s.seen.answers[primary]
	if !answer.ReadOnly || answer.Room == nil {
		return nil
	}
	if words := s.filledByDrill(); words != "" {
		v := no(v1.ReasonWritesRefused, fmt.Sprintf("%s takes no writes: %s", primary, words))
		return &v
	}
	bounds := room.BoundsOf(answer.Room.Size)
	v := no(v1.ReasonWritesRefused, fmt.Sprintf("%s takes no writes, before its volume %s is full. %s. It takes "+
		"writes again by itself when %s are free, with what WAL has. To delete rows until then, use "+
		"kubectl toban psql %s, and begin with SET default_transaction_read_only = off",
		primary, naming.ClaimOf(primary), s.moreRoom(), room.Amount(bounds.Opens), s.db.Name))
	return &v
}

// filledByDrill says that a FaultDrill has filled a volume, "" where none has.
func (s *scope) filledByDrill() string {
	rooms := s.rooms()
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		if rooms[name].Drill > 0 {
			return fmt.Sprintf("a FaultDrill has filled volume %s, and empties it by itself when it ends",
				naming.ClaimOf(name))
		}
	}
	return ""
}

// cannotGrow says why volumes that are to grow by themselves do not, nothing where they do or need not.
func (s *scope) cannotGrow(fullest v1.InstanceStatus, was string) verdict {
	stays := was == v1.ReasonGrowthLimitReached && s.growth.Answer == room.Enough &&
		fullest.Volume.UsedPercent >= limitNoMore && s.atLimit()
	switch {
	case s.growthRefused != "":
		return no(v1.ReasonGrowthRefused, sentence(fullest)+", and can't grow by itself: "+s.growthRefused)
	case s.growth.Answer == room.Fixed:
		return no(v1.ReasonGrowthRefused, s.growth.Message)
	case s.growth.Answer == room.LimitReached || stays:
		return no(v1.ReasonGrowthLimitReached, fmt.Sprintf(
			"%s. It has grown as far as storage.grow.limit (%s) lets it: raise that, or delete what is not needed",
			sentence(fullest), s.db.Spec.Storage.Grow.Limit))
	case s.growth.Answer == room.Useless:
		return no(v1.ReasonGrowthUseless, s.growth.Message)
	case s.growth.Answer == room.Pending && (s.grownAt == nil || s.now.Sub(s.grownAt.Time) > growthPatience):
		return no(v1.ReasonGrowthPending, fmt.Sprintf("%s, and %s: see kubectl describe pvc; some clouds change a "+
			"volume only once in six hours", sentence(fullest), s.growth.Message))
	}
	return verdict{}
}

// rateCounts says that the rate at which a volume fills is more than a beginning. That of one that is silent counts.
func (s *scope) rateCounts(i v1.InstanceStatus) bool {
	seen := s.seen.answers[i.Name].Room
	return seen == nil || seen.Over >= measuredWell || i.Volume.UsedPercent >= halfUsed
}

// moreRoom is what to do about a volume without room.
func (s *scope) moreRoom() string {
	switch {
	case s.growth.Answer == room.Grows || s.growth.Answer == room.Pending:
		return "It is being enlarged to " + s.db.Spec.Storage.Size
	case s.db.Spec.Storage.Grow != nil:
		return "It grows by itself when it gets short"
	}
	return "Raise storage.size, set storage.grow, or delete what is not needed"
}

// sentence says how full the volume of an instance is.
func sentence(i v1.InstanceStatus) string {
	v := i.Volume
	out := fmt.Sprintf("volume %s (%s) is %d %% used", naming.ClaimOf(i.Name), v.Size, v.UsedPercent)
	switch {
	case v.FillsPerDay == "":
		return out + "; how fast it fills is not known yet"
	case v.FullInDays == nil:
		return out + " and hardly fills"
	}
	return out + fmt.Sprintf(", fills by %s a day, and is full in %s at that rate", v.FillsPerDay,
		inDays(*v.FullInDays))
}

func inDays(n int32) string {
	switch n {
	case 0:
		return "less than a day"
	case 1:
		return "a day"
	}
	return fmt.Sprintf("%d days", n)
}

// days is in how many days the volume of an instance is full, many where that is not known or never.
func days(i v1.InstanceStatus) int32 {
	if i.Volume.FullInDays == nil {
		return longest + 1
	}
	return *i.Volume.FullInDays
}

// atLimit says that the volumes have the size up to which they may grow.
func (s *scope) atLimit() bool {
	limit, grows := desired.GrowthLimit(s.db.Spec.Storage)
	size, err := desired.Size(s.db)
	return grows && err == nil && size.Cmp(limit) >= 0
}
