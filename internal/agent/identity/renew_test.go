package identity

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// issued is an identity whose wall clock can be set, with a loop that renews it, and the log of that.
func issued(t *testing.T) (i *Identity, set func(time.Duration), renewals *atomic.Int64, log *journal) {
	t.Helper()
	return issuedBy(t, agenttest.NewAuthority(t))
}

// issuedBy is that with an authority of the caller's.
func issuedBy(
	t *testing.T, authority *pki.Authority,
) (i *Identity, set func(time.Duration), renewals *atomic.Int64, log *journal) {
	t.Helper()
	log = &journal{}
	options := Options{
		Name: "db-0", Authority: agenttest.Folder(t, authority), Run: t.TempDir(),
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	i, err := New(options, protocol.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var jump atomic.Int64
	renewals = &atomic.Int64{}
	i.now = func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
	i.Renewed = func() { renewals.Add(1) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the loop has failed: %v", err)
		}
	})
	return i, func(by time.Duration) { jump.Add(int64(by)) }, renewals, log
}

// journal is a log that can be read while it is written.
type journal struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.text.String()
}

// A certificate is renewed by the wall clock: after half of its time, and soon after that clock has jumped.
func TestTheCertificateIsRenewedByTheWallClock(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		jump, passes time.Duration
		renewals     int64
	}{
		"half of its time is not over":        {0, 14 * day, 0},
		"half of its time is over":            {0, 15*day + 2*time.Minute, 1},
		"the node was suspended for long":     {16 * day, 2 * time.Minute, 1},
		"the certificate has run out so":      {40 * day, 2 * time.Minute, 1},
		"the node was suspended for a moment": {time.Hour, 2 * time.Minute, 0},
		"the clock was ahead, and is set":     {-2 * day, 2 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				i, set, renewals, _ := issued(t)
				set(c.jump)
				time.Sleep(c.passes)
				synctest.Wait()
				if renewals.Load() != c.renewals {
					t.Errorf("renewed %d times, want %d", renewals.Load(), c.renewals)
				}
				now, leaf := i.now(), i.current()
				if c.renewals > 0 && (now.Before(leaf.NotBefore) || now.After(leaf.RenewAt())) {
					t.Errorf("at %s it is to be renewed at %s", now, leaf.RenewAt())
				}
			})
		})
	}
}

// A renewal that fails is told once and tried again; the certificate there is goes on.
func TestARenewalThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i, _, renewals, log := issued(t)
		before, inTheWay := i.current(), filepath.Join(i.run, "server.key.new")
		if err := os.Mkdir(inTheWay, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15*24*time.Hour + time.Hour)
		synctest.Wait()
		if now := time.Now(); renewals.Load() > 0 || !bytes.Equal(i.current().CertPEM, before.CertPEM) ||
			now.After(before.NotAfter) {
			t.Fatalf("renewed %d times, at %s", renewals.Load(), now)
		}
		if told := strings.Count(log.String(), "could not be renewed"); told != 1 {
			t.Errorf("it is told %d times: %s", told, log)
		}
		if content(i.run, "server.crt") != string(before.CertPEM) ||
			content(i.run, "server.key") != string(before.KeyPEM) {
			t.Error("a server that is started now has half of a certificate")
		}
		if err := os.Remove(inTheWay); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if renewals.Load() != 1 || content(i.run, "server.crt") != string(i.current().CertPEM) ||
			!strings.Contains(log.String(), "is renewed") {
			t.Errorf("renewed %d times: %s", renewals.Load(), log)
		}
	})
}

// content is that of a file, "" where it can't be read.
func content(folder, name string) string {
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return ""
	}
	return string(text)
}
