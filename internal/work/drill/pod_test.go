package drill

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// The Pod becomes ready when its clients write steadily, and not before: then the operator breaks something.
func TestThePodOfADrillIsReadyWhenItsClientsWrite(t *testing.T) {
	probe := agenttest.FreeAddress(t)
	var steady atomic.Bool
	stop, err := serveSteady(t.Context(), probe, steady.Load)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		response, err := http.Get("http://" + probe + "/readyz") //nolint:noctx // it ends with the test
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("it answers %s, want %d", response.Status, want)
		}
		steady.Store(true)
	}
}

// What is missing is told where the operator finds it.
func TestADrillThatCannotBeginSaysWhy(t *testing.T) {
	app, left := t.TempDir(), filepath.Join(t.TempDir(), "left")
	o := PodOptions{App: app, Hosts: "x-0", Schema: "s", Probe: "127.0.0.1:0", Termination: left}
	write := func(key, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(app, key), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(words string) {
		t.Helper()
		if err := RunPod(t.Context(), o); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("it says %v, want %q", err, words)
		}
		var result protocol.DrillResult
		if text, err := os.ReadFile(left); err != nil || json.Unmarshal(text, &result) != nil ||
			!strings.Contains(result.Error, words) {
			t.Errorf("it leaves %s, %v", text, err)
		}
	}
	expect("how applications connect")
	for key, text := range map[string]string{
		naming.KeyHost: "x.shop.svc", naming.KeyPort: "none", naming.KeyUsername: "app", naming.KeyPassword: "secret",
		naming.KeyDatabase: "app", naming.KeyCA: string(agenttest.NewAuthority(t).CertPEM()),
	} {
		write(key, text)
	}
	expect("understand the port")
}

// A primary that takes no writes refuses those of a drill's clients, too: they do not ask for other than its default.
func TestTheClientsOfADrillWriteByTheServersDefault(t *testing.T) {
	got := (&application{user: "app"}).settings(map[string]string{"application_name": "drill"})
	if _, asks := got["default_transaction_read_only"]; asks {
		t.Error("they write though the primary takes none")
	}
	if got["application_name"] != "drill" || got["role"] != "none" {
		t.Errorf("the settings are %v", got)
	}
}
