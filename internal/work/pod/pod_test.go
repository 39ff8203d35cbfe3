package pod

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// The kubelet cuts at 4096 bytes, and JSON that was cut says nothing.
func TestAResultStaysWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for name, text := range map[string]string{
		"short": "no", "long": strings.Repeat("long ", 4000), "quoted": strings.Repeat("\x01\"日", 3000),
	} {
		result := protocol.BackupResult{Error: text, Warning: text, ID: "20261120T031500Z-3f2a"}
		if err := Leave(file, &result, &result.Error, &result.Warning); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var back protocol.BackupResult
		if err := json.Unmarshal(raw, &back); err != nil || len(raw) > MaxTermination ||
			back.ID == "" || back.Error == "" {
			t.Errorf("%s: %d bytes, %+v, %v", name, len(raw), back, err)
		}
	}
}

// The operator, and nobody else, may ask a backup how far it is.
func TestTheOperatorAsksABackupHowFarItIs(t *testing.T) {
	own, err := NewIssuer(agenttest.Folder(t, agenttest.NewAuthority(t)), naming.IdentityBackup, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := pki.NewAuthority(bytes.Repeat([]byte{9}, 32), naming.IdentityOperator, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var p Progress
	p.Set(protocol.BackupProgress{Step: "copies", Done: 5, Total: 10})
	stop, port, err := p.serve(t.Context(), own, string(operator.CertPEM()), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	leaf, err := operator.Issue(naming.IdentityOperator, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	asks := protocol.NewClient(pki.ClientTLSBy(leaf.TLS, own.Roots, naming.IdentityBackup), port)
	if got, err := asks.Backup(t.Context(), "127.0.0.1"); err != nil || got.Done != 5 || got.Step != "copies" {
		t.Errorf("it says %+v, %v", got, err)
	}
	other := protocol.NewClient(pki.ClientTLSBy(own.Certificate, own.Roots, naming.IdentityBackup), port)
	if _, err := other.Backup(t.Context(), "127.0.0.1"); err == nil {
		t.Error("another backup was answered")
	}
}
