package serve

import (
	"net/http"

	"toban.dev/internal/protocol"
)

// handlePooler tells a pooler how this instance is, when that changes.
func (a *API) handlePooler(w http.ResponseWriter, r *http.Request) {
	var asks protocol.PoolerAsks
	if err := readJSON(w, r, &asks); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	writeJSON(w, a.Pooler(r.Context(), asks))
}
