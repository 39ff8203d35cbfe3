package serve

import (
	"context"
	"net/http"

	"toban.dev/internal/protocol"
)

// Poolers are those that send clients to this instance.
type Poolers interface {
	// Answer answers one of them.
	Answer(ctx context.Context, asks protocol.PoolerAsks) protocol.InstanceTells
	// Hold has them hold their clients until release.
	Hold(ctx context.Context) (release func())
}

// handlePooler tells a pooler how this instance is, when that changes.
func (a *API) handlePooler(w http.ResponseWriter, r *http.Request, asks protocol.PoolerAsks) {
	if a.Poolers == nil {
		http.Error(w, "this agent has no part for poolers", http.StatusNotFound)
		return
	}
	writeJSON(w, a.Poolers.Answer(r.Context(), asks))
}
