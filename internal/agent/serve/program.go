package serve

import (
	"net/http"

	"toban.dev/internal/protocol"
)

// handleProgram takes a program that the agent is to go on as. The answer comes before it does.
func (a *API) handleProgram(w http.ResponseWriter, r *http.Request) {
	is := protocol.Program{
		SHA256: r.Header.Get(protocol.HeaderProgram), Architecture: r.Header.Get(protocol.HeaderArchitecture),
	}
	a.Log.Info("a program is given", "sha256", is.SHA256, "bytes", r.ContentLength)
	if err := a.GoOnAs(r.Context(), is, http.MaxBytesReader(w, r.Body, protocol.MaxProgram)); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	writeJSON(w, a.Status.Get())
}
