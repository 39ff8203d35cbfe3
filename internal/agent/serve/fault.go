package serve

import (
	"net/http"
	"time"

	"toban.dev/internal/protocol"
)

// handleFault breaks this instance, for a FaultDrill.
func (a *API) handleFault(w http.ResponseWriter, _ *http.Request, order protocol.FaultOrder) {
	at := time.Now()
	if err := a.Break(order); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	writeJSON(w, protocol.FaultResult{At: at})
}
