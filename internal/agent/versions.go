package agent

import (
	"encoding/json"
	"fmt"
	"net/http"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// limits are the times that this instance goes by: they fit with those of all others, as each has said them last.
func (a *Agent) limits() ha.Limits {
	limits := ha.OwnLimits()
	for _, name := range a.peers.names() {
		status, _, _ := a.peers.last(name)
		limits = limits.With(status.Election.Limits)
	}
	return limits
}

// readKnown reads a request that binds whoever grants it. One with something in it that is not known here is refused:
// of what a newer release asks, a part must not be taken for the whole.
func readKnown(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConfig))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("understand the request by version %d of the protocol: %w", protocol.Version, err)
	}
	return nil
}
