package faultdrill

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// archiveView is how far the archive is, as the primary's agent says when an ArchiveAway is over.
type archiveView struct {
	// written is up to where the WAL goes, archived up to where the archive has it; "" where that is not known.
	written, archived string
}

// observeArchive asks the primary how far it and its archive are, once an ArchiveAway is over. Of one that can't be
// asked it is not known.
func (s *scope) observeArchive(ctx context.Context) error {
	struck := moment(s.Object.Status.StruckAt)
	if !s.Object.Spec.Has(v1.FaultArchiveAway) || struck.IsZero() ||
		s.At.Before(struck.Add(s.Object.Spec.Duration.Duration)) {
		return nil
	}
	var primary target
	part := v1.FaultDrillPart{Instance: v1.DrillPrimary}
	if err := s.observeInstances(ctx, &primary, fitting(s.seen.db, part, "")); err != nil || len(primary.pods) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patienceFault)
	defer cancel()
	status, err := s.Breaker.Status(ctx, s.seen.db.UID, primary.pods[0].Status.PodIP, s.seen.config)
	if err != nil || status.Role != protocol.RolePrimary || status.Archive == nil {
		return nil //nolint:nilerr // unknown is not whole, and it is asked again
	}
	s.seen.archive = archiveView{written: status.LSN, archived: status.Archive.LSN}
	return nil
}

// walAtEnd is up to where the WAL went when an ArchiveAway was over, "" where that is not known yet.
func (s *scope) walAtEnd() string {
	if at := s.Object.Status.WALAtEnd; at != "" {
		return at
	}
	return s.seen.archive.written
}

// lacks is what the SampleDB lacks after the fault, "" where it is whole.
func (s *scope) lacks() string {
	is := func(condition string) bool {
		return meta.IsStatusConditionTrue(s.seen.db.Status.Conditions, condition)
	}
	has := s.Object.Spec.Has
	switch {
	case !is(v1.ConditionReady) || !is(v1.ConditionDurable):
		return "the SampleDB is not Ready and Durable again yet"
	case has(v1.FaultPoolersKilled) && !is(v1.ConditionPoolerReady):
		return "its poolers are not ready again yet"
	case has(v1.FaultArchiveAway) && (!is(v1.ConditionArchiving) || !s.caughtUp()):
		return "its archive has not caught up yet"
	case has(v1.FaultLeaderKilled):
		return s.leaderless()
	}
	return ""
}

// caughtUp says that the archive has all WAL that there was when it was no longer away.
func (s *scope) caughtUp() bool {
	want, err := wal.ParseLSN(s.walAtEnd())
	have, failed := wal.ParseLSN(s.seen.archive.archived)
	return err == nil && failed == nil && have >= want
}

// leaderless is which MyApp has no other leader yet than the one that was killed, "" where all have.
func (s *scope) leaderless() string {
	killed := strings.Split(s.broken(), between)
	for _, app := range s.seen.apps {
		if leader := app.Status.Leader; leader == "" || slices.Contains(killed, leader) {
			return fmt.Sprintf("no other Pod leads MyApp %s yet", app.Name)
		}
	}
	return ""
}

// besides is what else must be so again for a drill to be over, as the verdict says it.
func besides(spec v1.FaultDrillSpec) string {
	var all []string
	if spec.Has(v1.FaultArchiveAway) {
		all = append(all, "with an archive that has caught up")
	}
	if spec.Has(v1.FaultLeaderKilled) {
		all = append(all, "with another leader")
	}
	if len(all) == 0 {
		return ""
	}
	return ", " + strings.Join(all, " and ") + ","
}
