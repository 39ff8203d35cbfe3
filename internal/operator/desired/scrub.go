package desired

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// scrub is how a verification reads the rest of the archive again, nil where it does not.
func scrub(db *v1.SampleDB) *protocol.Scrub {
	spec := Backup(db).Verification.Scrub
	if spec.None {
		return nil
	}
	out := &protocol.Scrub{Days: int(spec.Days)}
	if size, err := resource.ParseQuantity(spec.Budget); err == nil { // the CRD refuses what is none
		out.Budget = max(size.Value(), 0)
	}
	if db.Status.Backup != nil && db.Status.Backup.Scrub != nil {
		out.Last = ScrubState(*db.Status.Backup.Scrub)
	}
	return out
}

// ScrubState is what the next verification has to know of a status.
func ScrubState(s v1.ScrubStatus) protocol.ScrubState {
	position, _ := strconv.ParseUint(s.Position, 16, 64) // from the beginning, where somebody has written another
	out := protocol.ScrubState{
		Position: position, Objects: int(s.Objects), Bytes: s.Bytes, Total: s.TotalBytes, More: int(s.More),
	}
	if s.At != nil {
		out.At = s.At.UTC()
	}
	if s.RoundStartedAt != nil {
		out.Round = s.RoundStartedAt.UTC()
	}
	if s.WholeSince != nil {
		out.Whole = s.WholeSince.UTC()
	}
	for _, o := range s.Broken {
		out.Broken = append(out.Broken, protocol.BrokenObject(o))
	}
	return out
}

// ScrubStatus is the opposite of ScrubState.
func ScrubStatus(s protocol.ScrubState) *v1.ScrubStatus {
	out := &v1.ScrubStatus{
		Position: strconv.FormatUint(s.Position, 16), Percent: int32(s.Position >> 32 * 100 >> 32),
		Objects: int64(s.Objects), Bytes: s.Bytes, TotalBytes: s.Total, More: int64(s.More), Error: s.Error,
	}
	if !s.At.IsZero() {
		at := metav1.NewTime(s.At).Rfc3339Copy()
		out.At = &at
	}
	if !s.Round.IsZero() {
		round := metav1.NewTime(s.Round).Rfc3339Copy()
		out.RoundStartedAt = &round
	}
	if !s.Whole.IsZero() {
		whole := metav1.NewTime(s.Whole).Rfc3339Copy()
		out.WholeSince = &whole
	}
	for _, o := range s.Broken {
		out.Broken = append(out.Broken, v1.BrokenObject(o))
	}
	return out
}
