package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"toban.dev/internal/postgres/database"
	"toban.dev/internal/protocol"
)

// databaseDeadline bounds one request about a database. Copying template0 takes long on a slow disk only.
const databaseDeadline = time.Minute

// handleDatabase makes a database and its roles as the operator declares them. Only the leader does: what
// it commits, the others get, and its commits wait for them as a user's do.
func (a *API) handleDatabase(w http.ResponseWriter, r *http.Request, request protocol.DatabaseRequest) {
	if !a.leads(w) {
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

// handlePassword gives an application's role another password. As above, only the leader does.
func (a *API) handlePassword(w http.ResponseWriter, r *http.Request, request protocol.PasswordRequest) {
	if !a.leads(w) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), databaseDeadline)
	defer cancel()
	var result protocol.PasswordResult
	err := database.SetPassword(ctx, a.Connect, request.Role, request.Verifier)
	if err != nil && !errors.As(err, &result.Refusal) {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if err == nil && request.Verifier != "" {
		a.Log.Info("a role has another password, as the operator asked for", "role", request.Role)
	}
	writeJSON(w, result)
}

// leads says that this instance is the primary, and answers where it is not.
func (a *API) leads(w http.ResponseWriter) bool {
	status := a.Status.Get()
	if status.Election.Leading && status.Role == protocol.RolePrimary {
		return true
	}
	http.Error(w, "this instance is not the primary", http.StatusConflict)
	return false
}
