package serve

import (
	"encoding/json"
	"fmt"
	"net/http"

	"toban.dev/internal/protocol"
)

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
