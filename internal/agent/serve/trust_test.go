package serve

import (
	"log/slog"
	"testing"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/agent/identity"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// A connection that was opened while its authority was trusted is of no use when that has ended.
func TestAConnectionEndsWithItsAuthority(t *testing.T) {
	former, ours := agenttest.NewAuthority(t), agenttest.NewAuthority(t)
	who, err := identity.New(identity.Options{
		Name: "x-0", Authority: agenttest.Folder(t, ours), Run: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	}, protocol.Config{Authority: string(former.CertPEM()) + string(ours.CertPEM())})
	if err != nil {
		t.Fatal(err)
	}
	servingAs(t, who, agenttest.NewAuthority(t))
	thief, peer := agenttest.Client(t, former, ours, naming.IdentityInstance),
		agenttest.Client(t, ours, ours, naming.IdentityInstance)
	for _, client := range []*protocol.Client{thief, peer} {
		if _, err := client.Status(t.Context(), loopback); err != nil {
			t.Fatalf("with both trusted: %v", err)
		}
	}
	who.Trust(string(ours.CertPEM()))
	if _, err := thief.Status(t.Context(), loopback); err == nil {
		t.Error("it goes on by a connection that was opened before")
	}
	if _, err := peer.Status(t.Context(), loopback); err != nil {
		t.Errorf("an instance: %v", err)
	}
}
