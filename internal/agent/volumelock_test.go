package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/agent/running"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/work/major"
)

const (
	// waitsAt is where an agent answers that waits for its volume.
	waitsAt = "127.99.0.2"
	// longDeadline is for what must come true.
	longDeadline = 30 * time.Second
)

// waiting is an agent that begins to make a volume its own, and what comes of that.
func waiting(t *testing.T, ours, operators *pki.Authority, folder string) (a *Agent, owned chan error, stop func()) {
	t.Helper()
	options := Options{
		Name: "db-0", Authority: agenttest.Folder(t, ours), Volume: folder, Run: t.TempDir(), Listen: waitsAt,
		Log: slog.New(slog.DiscardHandler),
	}
	config := protocol.Config{Cluster: "x", Major: 17, Operator: string(operators.CertPEM())}.Revise()
	a, err := newAgent(options, config,
		running.Real{Server: &postgres.Server{Data: postgres.DataDirectory{Volume: options.Volume}}}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*longDeadline)
	owned = make(chan error, 1)
	go func() { owned <- a.lockVolume(ctx) }()
	t.Cleanup(cancel)
	return a, owned, cancel
}

// awaitUnready waits until the readiness probe says something.
func awaitUnready(t *testing.T, words string) {
	t.Helper()
	for limit := time.Now().Add(longDeadline); ; time.Sleep(time.Millisecond) {
		response, err := http.Get(fmt.Sprintf("http://%s:%d/readyz", //nolint:noctx // it ends with the test
			waitsAt, naming.PortProbe))
		if err == nil {
			body := make([]byte, 1000)
			n, _ := response.Body.Read(body)
			_ = response.Body.Close() // it was read
			if response.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body[:n]), words) {
				return
			}
		}
		if time.Now().After(limit) {
			t.Fatalf("the readiness probe does not say %q", words)
		}
	}
}

// awaitListening waits until the agent takes connections: it begins at the same time as its probes do.
func awaitListening(t *testing.T) {
	t.Helper()
	address := net.JoinHostPort(waitsAt, strconv.Itoa(naming.PortAgent))
	for limit := time.Now().Add(longDeadline); ; time.Sleep(time.Millisecond) {
		connection, err := net.Dial("tcp", address) //nolint:noctx // it ends with the test
		if err == nil {
			_ = connection.Close() // nothing was said on it
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("nothing listens at %s: %v", address, err)
		}
	}
}

// An agent whose volume is another's touches nothing there and is alive, says so to kubelet and operator, and
// goes on when it is free.
func TestAnAgentWaitsForItsVolume(t *testing.T) {
	ours, operators := agenttest.NewAuthority(t), agenttest.NewAuthority(t)
	folder := t.TempDir()
	lock, err := volume.Own(t.Context(), folder, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	hardState := filepath.Join(volume.StateFolder(folder), "memory.json")
	a, owned, _ := waiting(t, ours, operators, folder)
	awaitUnready(t, reasonVolumeInUse+": another agent")
	awaitListening(t)
	response, err := http.Get(fmt.Sprintf("http://%s:%d/livez", //nolint:noctx // it ends with the test
		waitsAt, naming.PortProbe))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("it is not alive: %s", response.Status)
	}
	operator, peer := agenttest.Client(t, operators, ours, naming.IdentityOperator), agenttest.Client(t, ours, ours,
		naming.IdentityInstance)
	for name, ask := range map[string]func() (protocol.Status, error){
		"status": func() (protocol.Status, error) { return operator.Status(t.Context(), waitsAt) },
		"sync":   func() (protocol.Status, error) { return operator.Sync(t.Context(), waitsAt, a.configs.get()) },
	} {
		if status, err := ask(); err != nil || status.Reason != reasonVolumeInUse ||
			status.Role != protocol.RoleNone || status.Ready {
			t.Errorf("%s: the operator hears %+v, %v", name, status, err)
		}
	}
	if status, err := peer.Status(t.Context(), waitsAt); err == nil {
		t.Errorf("a peer hears %+v", status)
	}
	if exists(hardState) || len(owned) > 0 {
		t.Error("it has begun")
	}
	lock.Release()
	if err := <-owned; err != nil || !exists(hardState) || a.Status().Reason != reasonStarting {
		t.Errorf("it has not begun: %v, %+v", err, a.Status())
	}
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if second, err := volume.Own(soon, folder, func(string) {}); err == nil {
		t.Errorf("it has no lock: %v", second)
	}
	a.lock.Release()
}

// An agent that is stopped while it waits ends.
func TestAnAgentThatWaitsForItsVolumeCanBeStopped(t *testing.T) {
	folder := t.TempDir()
	lock, err := volume.Own(t.Context(), folder, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	_, owned, stop := waiting(t, agenttest.NewAuthority(t), agenttest.NewAuthority(t), folder)
	awaitUnready(t, reasonVolumeInUse)
	stop()
	if err := <-owned; err == nil {
		t.Error("it has got the volume of another")
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// An agent takes over the upgraded data that the config names. What an earlier try of the same upgrade has left on its
// volume is removed, and its own data stays, to be replaced by a copy.
func TestAnAgentTakesOverTheUpgradeThatCounts(t *testing.T) {
	operators := agenttest.NewAuthority(t)
	for name, c := range map[string]struct{ system, want string }{
		"it is the one":   {"75", "18"},
		"it is not":       {"74", "17"},
		"it is half done": {"", "17"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range map[string]string{
				"data/PG_VERSION": "17", "data/pg_tblspc/none": "", "restore/data/PG_VERSION": "18",
				"upgrade.json": `{"id":"18-abc","to":18}`,
			} {
				file = filepath.Join(folder, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
					os.WriteFile(file, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			note := volume.Prepared{
				InPlace: "18-abc", Begins: ha.TermStart{LSN: 500, Timeline: 1},
				Upgrade: &protocol.UpgradeResult{SystemIdentifier: c.system},
			}
			if c.system != "" {
				if err := note.Write(folder); err != nil {
					t.Fatal(err)
				}
			}
			options := Options{
				Name: "db-0", Authority: agenttest.Folder(t, agenttest.NewAuthority(t)), Volume: folder,
				Run: t.TempDir(), Listen: waitsAt, Log: slog.New(slog.DiscardHandler), Upgraded: "18-abc",
				GiveUp: major.GiveUp, GiveUpOthers: major.GiveUpOthers,
			}
			config := protocol.Config{
				Cluster: "x", Major: 18, Operator: string(operators.CertPEM()), Upgraded: "18-abc",
				SystemIdentifier: "75",
			}.Revise()
			a, err := newAgent(options, config,
				running.Real{Server: &postgres.Server{Data: postgres.DataDirectory{Volume: folder}}}, "", nil)
			if err == nil {
				err = a.lockVolume(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			defer a.lock.Release()
			got, err := os.ReadFile(filepath.Join(folder, "data/PG_VERSION"))
			if string(got) != c.want || exists(filepath.Join(folder, "restore/data")) ||
				exists(filepath.Join(folder, "upgrade.json")) {
				t.Errorf("its data is of %q, %v, and there is more", got, err)
			}
		})
	}
}
