package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"toban.dev/internal/database"
	"toban.dev/internal/protocol"
)

// databaseDeadline bounds one request about a database. Copying template0 takes long on a slow disk only.
const databaseDeadline = time.Minute

// handleDatabase makes a database and its roles as the operator declares them. Only the leader does: what
// it commits, the others get, and its commits wait for them as a user's do.
func (a *API) handleDatabase(w http.ResponseWriter, r *http.Request) {
	var request protocol.DatabaseRequest
	if err := readJSON(w, r, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if status := a.Status.Get(); !status.Election.Leading || status.Role != protocol.RolePrimary {
		http.Error(w, "this instance is not the primary", http.StatusConflict)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), databaseDeadline)
	defer cancel()
	work := database.Ensure
	if request.Drop {
		work = database.Drop
	}
	changed, err := work(ctx, a.Connect, request.Declared)
	for _, what := range changed {
		a.Log.Info("a database was changed as declared", "claimant", request.Declared.Claimant, "what", what)
	}
	result := protocol.DatabaseResult{Changed: changed}
	if err != nil && !errors.As(err, &result.Refusal) {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, result)
}
