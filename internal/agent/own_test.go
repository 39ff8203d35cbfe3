package agent

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// waitsAt is where an agent answers that waits for its volume.
const waitsAt = "127.99.0.2"

// waiting is an agent that begins to make a volume its own, and what comes of that.
func waiting(t *testing.T, ours, operators *pki.Authority, volume, restored string) (a *Agent, owned chan error, stop func()) {
	t.Helper()
	a = serverless(t, ours, operators)
	a.memory, a.Name, a.Listen, a.Volume, a.Restored = nil, "db-0", waitsAt, volume, restored
	a.server, a.status = realServer{&postgres.Server{Volume: volume}}, protocol.Status{Name: a.Name, Reason: reasonStarting}
	ctx, cancel := context.WithTimeout(t.Context(), 2*longDeadline)
	owned = make(chan error, 1)
	go func() { owned <- a.own(ctx) }()
	t.Cleanup(cancel)
	return a, owned, cancel
}

// awaitUnready waits until the readiness probe says something.
func awaitUnready(t *testing.T, words string) {
	t.Helper()
	for limit := time.Now().Add(longDeadline); ; time.Sleep(time.Millisecond) {
		response, err := http.Get(fmt.Sprintf("http://%s:%d/readyz", waitsAt, naming.PortProbe)) //nolint:noctx // it ends with the test
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

// An agent whose volume is another's touches nothing there and is alive, says so to kubelet and operator, and goes on when it is free.
func TestAnAgentWaitsForItsVolume(t *testing.T) {
	ours, operators := newAuthority(t), newAuthority(t)
	volume := volume(t, false)
	lock, err := tryLock(volume, lockOwner)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(volume, folderState, memoryFile)); err != nil {
		t.Fatal(err) // one that begins makes it anew
	}
	a, owned, _ := waiting(t, ours, operators, volume, "")
	awaitUnready(t, reasonVolumeInUse+": another agent")
	if code, body := get(t, fmt.Sprintf("http://%s:%d/livez", waitsAt, naming.PortProbe)); code != http.StatusOK {
		t.Errorf("it is not alive: %s", body)
	}
	operator, peer := clientOf(t, operators, ours, naming.IdentityOperator), clientOf(t, ours, ours, naming.IdentityInstance)
	for name, ask := range map[string]func() (protocol.Status, error){
		"status": func() (protocol.Status, error) { return operator.Status(t.Context(), a.Listen) },
		"sync":   func() (protocol.Status, error) { return operator.Sync(t.Context(), a.Listen, a.currentConfig()) },
	} {
		if status, err := ask(); err != nil || status.Reason != reasonVolumeInUse || status.Role != protocol.RoleNone || status.Ready {
			t.Errorf("%s: the operator hears %+v, %v", name, status, err)
		}
	}
	if status, err := peer.Status(t.Context(), a.Listen); err == nil {
		t.Errorf("a peer hears %+v", status)
	}
	if content(volume, folderState, memoryFile) != "" || len(owned) > 0 {
		t.Error("it has begun")
	}
	lock.release()
	if err := <-owned; err != nil || content(volume, folderState, memoryFile) == "" || a.Status().Reason != reasonStarting {
		t.Errorf("it has not begun: %v, %+v", err, a.Status())
	}
	if second, err := tryLock(volume, lockOwner); err == nil {
		t.Errorf("it has no lock: %v", second)
	}
	a.volume.release()
}

// An agent that is stopped while it waits ends.
func TestAnAgentThatWaitsForItsVolumeCanBeStopped(t *testing.T) {
	volume := volume(t, false)
	lock, err := tryLock(volume, lockOwner)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.release()
	_, owned, stop := waiting(t, newAuthority(t), newAuthority(t), volume, "")
	awaitUnready(t, reasonVolumeInUse)
	stop()
	if err := <-owned; err == nil {
		t.Error("it has got the volume of another")
	}
}

// A restore in place is taken over when no restore works on the volume any more. Later ones delay no start.
func TestAnAgentTakesARestoreOverThatHasEnded(t *testing.T) {
	volume := volume(t, true)
	for _, due := range []bool{true, false} {
		t.Run(fmt.Sprintf("due: %t", due), func(t *testing.T) {
			restore, err := tryLock(volume, lockRestore)
			if err != nil {
				t.Fatal(err)
			}
			defer restore.release()
			a, owned, _ := waiting(t, newAuthority(t), newAuthority(t), volume, "oops")
			if due {
				awaitUnready(t, reasonVolumeInUse+": a restore")
				if content(volume, "data/PG_VERSION") != "old" {
					t.Error("it was taken over before it had ended")
				}
				restore.release()
			}
			if err := <-owned; err != nil {
				t.Fatal(err)
			}
			checkTakenOver(t, volume)
			a.volume.release()
		})
	}
}
