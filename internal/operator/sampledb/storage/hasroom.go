package storage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/space"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// spaceTopic says how full the volumes are, and what keeps WAL on them.
type spaceTopic struct{ base }

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

// VolumeStatus is how full the data volume of an instance is, nil where that was never known. What the status has stays
// as long as it is about right.
func (s *spaceTopic) VolumeStatus(instance string) *v1.VolumeStatus {
	old := s.InstanceBefore(instance).Volume
	seen := s.RoomOf(desired.DataVolume, instance)
	if seen == nil {
		return old
	}
	now := asStatus(*seen)
	if old != nil && aboutSame(*old, now) {
		return old
	}
	return &now
}

// WalStatus is the same of its WAL volume, in words; "" where it has none.
func (s *spaceTopic) WalStatus(instance string) string {
	old := s.InstanceBefore(instance).WAL
	seen := s.RoomOf(desired.WALVolume, instance)
	switch {
	case s.DB.Spec.Storage.WAL == nil:
		return ""
	case seen == nil:
		return old
	}
	now := asStatus(*seen)
	var before v1.VolumeStatus
	_, err := fmt.Sscanf(old, "%d %% of %s", &before.UsedPercent, &before.Size)
	// How fast it fills is about right as long as the rest is: WAL comes and goes.
	before.Size = strings.TrimSuffix(before.Size, ";")
	before.FillsPerDay, before.FullInDays = now.FillsPerDay, now.FullInDays
	soon := now.FullInDays != nil && *now.FullInDays < fillsSoon
	if err == nil && aboutSame(before, now) && soon == strings.Contains(old, "full in") {
		return old
	}
	out := fmt.Sprintf("%d %% of %s", now.UsedPercent, now.Size)
	if soon {
		out += "; full in " + inDays(*now.FullInDays)
	}
	return out
}

// volumeSeen is a volume of an instance, by its claim.
type volumeSeen struct {
	*v1.VolumeStatus

	claim, instance string
	of              desired.Volume
}

// volumesSeen are those of which is known how full they are.
func (s *spaceTopic) volumesSeen(instances []v1.InstanceStatus) (out []volumeSeen) {
	for _, i := range instances {
		if i.Volume != nil {
			out = append(out, volumeSeen{i.Volume, naming.ClaimOf(i.Name), i.Name, desired.DataVolume})
		}
		if seen := s.RoomOf(desired.WALVolume, i.Name); seen != nil {
			status := asStatus(*seen)
			out = append(out, volumeSeen{&status, naming.WALClaimOf(i.Name), i.Name, desired.WALVolume})
		}
	}
	return out
}

// asStatus is what an agent says of its volume, rounded for people.
func asStatus(r protocol.Room) v1.VolumeStatus {
	used := 100 * float64(min(r.Used, r.Size)) / float64(r.Size)
	out := v1.VolumeStatus{Size: space.Amount(r.Size), UsedPercent: int32(used)}
	if r.PerDay == nil {
		return out
	}
	out.FillsPerDay = space.Amount(*r.PerDay)
	in, never := space.FullIn(r.Size-r.Used, *r.PerDay)
	if !never && out.FillsPerDay != "0" && in <= longest*space.Day {
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

// HasRoom is true when no volume is nearly full, or will be soon, those that are to grow by themselves can, and no slot
// keeps much WAL. There is no verdict where nothing is known.
func (s *spaceTopic) HasRoom(instances []v1.InstanceStatus) world.Verdict {
	known := s.volumesSeen(instances)
	if len(known) == 0 {
		return world.Verdict{}
	}
	was, before := "", meta.FindStatusCondition(s.DB.Status.Conditions, v1.ConditionHasRoom)
	if before != nil {
		was = before.Reason
	}
	fullest := slices.MaxFunc(known, func(a, b volumeSeen) int { return cmp.Compare(a.UsedPercent, b.UsedPercent) })
	kept := s.keptWAL(before)
	if refused := s.WritesRefused(); refused != nil {
		return refused.Adding(kept)
	}
	if words := s.filledByDrill(); words != "" {
		return world.No(v1.ReasonNearlyFull, words)
	}
	if v := s.volumeFull(); v.Reason != "" {
		return v.Adding(kept)
	}
	for _, of := range desired.VolumesOf(s.DB) {
		if v := s.cannotGrow(of, known, was); v.Reason != "" {
			return v.Adding(kept)
		}
	}
	if fullest.UsedPercent >= nearlyFull || was == v1.ReasonNearlyFull && fullest.UsedPercent > nearlyFullNoMore {
		return world.No(v1.ReasonNearlyFull, sentence(fullest)+". "+s.moreRoom(fullest.of)).Adding(kept)
	}
	if kept != "" {
		return world.No(v1.ReasonWALKept, kept)
	}
	soonest := slices.MinFunc(known, func(a, b volumeSeen) int { return cmp.Compare(days(a), days(b)) })
	if within := days(soonest); s.rateCounts(soonest) &&
		(within < fillsSoon || was == v1.ReasonFillsSoon && within < fillsSoonNoMore) {
		return world.No(v1.ReasonFillsSoon, sentence(soonest)+". "+s.moreRoom(soonest.of))
	}
	return world.Yes(v1.ReasonRoomEnough, "no volume is nearly full: "+sentence(fullest))
}

// volumeFull says that a server can't write WAL, nothing where none is known to.
func (s *spaceTopic) volumeFull() world.Verdict {
	for _, of := range desired.VolumesOf(s.DB) {
		rooms := s.Rooms(of)
		for _, name := range slices.Sorted(maps.Keys(rooms)) {
			if rooms[name].Size-rooms[name].Used < leastWAL {
				ordinal, _ := naming.Ordinal(name)
				return world.No(v1.ReasonVolumeFull, fmt.Sprintf(
					"volume %s has no room for WAL: a primary there takes no writes. %s",
					of.ClaimName(naming.ClusterOf(name), ordinal), s.moreRoom(of)))
			}
		}
	}
	return world.Verdict{}
}

// WritesRefused is there while the primary takes no writes because its volume gets full.
func (s *spaceTopic) WritesRefused() *world.Verdict {
	primary := s.Primary()
	answer := s.Seen.Answers[primary]
	if !answer.ReadOnly || answer.Room == nil {
		return nil
	}
	if words := s.filledByDrill(); words != "" {
		v := world.No(v1.ReasonWritesRefused, fmt.Sprintf("%s takes no writes: %s", primary, words))
		return &v
	}
	of, claim, bounds := desired.DataVolume, naming.ClaimOf(primary), space.BoundsOf(answer.Room.Size)
	if answer.SparesWAL && answer.WALRoom != nil {
		of, claim, bounds = desired.WALVolume, naming.WALClaimOf(primary), space.BoundsOfWAL(answer.WALRoom.Size)
	}
	v := world.No(v1.ReasonWritesRefused, fmt.Sprintf("%s takes no writes, before its volume %s is full. %s. It takes "+
		"writes again by itself when %s are free, with what WAL has. To delete rows until then, use "+
		"kubectl toban psql %s, and begin with SET default_transaction_read_only = off",
		primary, claim, s.moreRoom(of), space.Amount(bounds.Opens), s.DB.Name))
	return &v
}

// filledByDrill says that a FaultDrill has filled a volume, "" where none has.
func (s *spaceTopic) filledByDrill() string {
	rooms := s.Rooms(desired.DataVolume)
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		if rooms[name].Drill > 0 {
			return fmt.Sprintf("a FaultDrill has filled volume %s, and empties it by itself when it ends",
				naming.ClaimOf(name))
		}
	}
	return ""
}

// cannotGrow says why data volumes, or WAL volumes, that are to grow by themselves do not, nothing where they do or
// need not.
func (s *spaceTopic) cannotGrow(of desired.Volume, known []volumeSeen, was string) world.Verdict {
	known = slices.DeleteFunc(slices.Clone(known), func(v volumeSeen) bool { return v.of != of })
	if len(known) == 0 {
		return world.Verdict{}
	}
	fullest := slices.MaxFunc(known, func(a, b volumeSeen) int { return cmp.Compare(a.UsedPercent, b.UsedPercent) })
	g := s.All.growthOf(of)
	stays := was == v1.ReasonGrowthLimitReached && g.Answer == space.Enough &&
		fullest.UsedPercent >= limitNoMore && s.atLimit(of)
	switch {
	case g.refused != "":
		return world.No(v1.ReasonGrowthRefused, sentence(fullest)+", and can't grow by itself: "+g.refused)
	case g.Answer == space.Fixed:
		return world.No(v1.ReasonGrowthRefused, g.Message)
	case g.Answer == space.LimitReached || stays:
		return world.No(v1.ReasonGrowthLimitReached, fmt.Sprintf(
			"%s. It has grown as far as storage.grow.limit (%s) lets it: raise that, or delete what is not needed",
			sentence(fullest), s.DB.Spec.Storage.Grow.Limit))
	case g.Answer == space.Useless:
		return world.No(v1.ReasonGrowthUseless, g.Message)
	case g.Answer == space.Pending && (s.GrownAt == nil || s.Now.Sub(s.GrownAt.Time) > growthPatience):
		return world.No(v1.ReasonGrowthPending,
			fmt.Sprintf("%s, and %s: see kubectl describe pvc; some clouds change a "+
				"volume only once in six hours", sentence(fullest), g.Message))
	}
	return world.Verdict{}
}

// rateCounts says that the rate at which a volume fills is more than a beginning. That of one that is silent counts.
func (s *spaceTopic) rateCounts(v volumeSeen) bool {
	seen := s.RoomOf(v.of, v.instance)
	return seen == nil || seen.Over >= measuredWell || v.UsedPercent >= halfUsed
}

// moreRoom is what to do about a volume without room.
func (s *spaceTopic) moreRoom(of desired.Volume) string {
	g := s.All.growthOf(of)
	switch {
	case g.Answer == space.Grows || g.Answer == space.Pending:
		return "It is being enlarged to " + s.All.sizeOf(of)
	case s.DB.Spec.Storage.Grow != nil:
		return "It grows by itself when it gets short"
	case of == desired.WALVolume:
		return "Raise storage.wal.size, or set storage.grow"
	}
	return "Raise storage.size, set storage.grow, or delete what is not needed"
}

// sentence says how full a volume is.
func sentence(v volumeSeen) string {
	out := fmt.Sprintf("volume %s (%s) is %d %% used", v.claim, v.Size, v.UsedPercent)
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

// days is in how many days a volume is full, many where that is not known or never.
func days(v volumeSeen) int32 {
	if v.FullInDays == nil {
		return longest + 1
	}
	return *v.FullInDays
}

// atLimit says that the volumes have the size up to which they may grow.
func (s *spaceTopic) atLimit(of desired.Volume) bool {
	limit, grows := desired.GrowthLimit(s.DB.Spec.Storage)
	size, err := of.Size(s.DB)
	return grows && err == nil && size.Cmp(limit) >= 0
}
