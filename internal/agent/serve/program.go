package serve

import (
	"encoding/json"
	"net/http"
	"strconv"

	"toban.dev/internal/protocol"
)

// handleProgram takes a program that the agent is to go on as. The whole answer is sent before it does: its connections
// end then.
func (a *API) handleProgram(w http.ResponseWriter, r *http.Request) {
	is := protocol.Program{
		SHA256: r.Header.Get(protocol.HeaderProgram), Architecture: r.Header.Get(protocol.HeaderArchitecture),
	}
	a.Log.Info("a program is given", "sha256", is.SHA256, "bytes", r.ContentLength)
	begin, err := a.GoOnAs(r.Context(), is, http.MaxBytesReader(w, r.Body, protocol.MaxProgram))
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	defer begin()
	text, err := json.Marshal(a.Status.Get())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)                      // who hung up asks again
	_ = http.NewResponseController(w).Flush() // likewise
}
