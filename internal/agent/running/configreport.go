package running

import (
	"errors"
	"log/slog"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// configReport says in the status with which configuration the server runs, and why not with the wanted one.
type configReport struct {
	status *status.Board
	log    *slog.Logger
}

// remember reports which configuration runs, and why not the wanted one.
func (r *configReport) remember(running candidate, wanted string, refused error) {
	r.status.Change(func(s *protocol.Status) {
		s.ConfigRevision, s.ConfigError, s.RejectedRevision, s.PendingRestart = running.Revision, "", "", nil
		if refused != nil && isRefusal(refused) { // else it is asked about again
			s.ConfigError, s.RejectedRevision = words(refused), wanted
		}
	})
}

// refuse reports why the wanted configuration does not run.
func (r *configReport) refuse(revision string, rejected *postgres.RejectedError) {
	r.log.Warn("the configuration is refused", "revision", revision, "error", rejected.Words)
	r.status.Change(func(s *protocol.Status) { s.ConfigError, s.RejectedRevision = rejected.Words, revision })
}

// accept reports the configuration that runs; an earlier refusal is history
// when it is the one that is wanted.
func (r *configReport) accept(runs, wanted string) {
	r.status.Change(func(s *protocol.Status) {
		s.ConfigRevision = runs
		if runs == wanted {
			s.ConfigError, s.RejectedRevision = "", ""
		}
	})
}

// pending reports what of the configuration that runs waits for a restart.
func (r *configReport) pending(parameters []string) {
	r.status.Change(func(s *protocol.Status) { s.PendingRestart = parameters })
}

// rejected says whether the status has the configuration of a revision as refused.
func (r *configReport) rejected(revision string) bool {
	return r.status.Get().RejectedRevision == revision
}

// words are PostgreSQL's, where it said why.
func words(err error) string {
	var rejected *postgres.RejectedError
	if errors.As(err, &rejected) {
		return rejected.Words
	}
	return err.Error()
}
