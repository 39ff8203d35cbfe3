//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"toban.dev/test/outside"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// The operator's root secret is replaced as docs/rotation.md says, under load: a second root, both rotations, and the
// former one is taken out. The session that is open stays, no server restarts, and nothing acknowledged is lost.
func TestLongTheRootIsReplaced(t *testing.T) {
	var before corev1.Secret
	must(t, system.Get(t.Context(), "secret/toban-operator", &before))
	// After the namespace has gone, stories that count epochs find the operator as it was.
	t.Cleanup(func() {
		data, err := json.Marshal(before.Data)
		must(t, err)
		setRoots(t, "--type=json", "-p", fmt.Sprintf(`[{"op":"replace","path":"/data","value":%s}]`, data))
	})
	s := beginAlone(t)
	s.apply(sampleDB("shop", 3))
	s.ready("shop")
	access := s.access("shop", naming.ReadWriteService("shop"))
	writer, err := outside.StartWriter(s.ctx, access)
	must(t, err)
	defer writer.Stop()
	s.rowsAtLeast("shop", 50)
	session, err := access.Patient().Connect(s.ctx)
	must(t, err)
	defer session.Close(s.ctx)
	backend, started := backendOf(s, session), s.startedAt("shop")

	newest, random := fmt.Sprintf("root-%d", time.Now().Unix()), make([]byte, 32)
	_, err = rand.Read(random)
	must(t, err)
	setRoots(t, "-p", fmt.Sprintf(`{"data":{%q:%q}}`, newest, base64.StdEncoding.EncodeToString(random)))
	s.condition("shop", v1.ConditionRootReplaced, "False", v1.ReasonFormerRoot)
	s.run("annotate", "sampledb", "shop", naming.AnnotationRotatePassword+"=now",
		naming.AnnotationRotateAuthority+"=0s")
	must(t, outside.Until(s.ctx, patienceAuthority, func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "shop")
		if err != nil {
			return err
		}
		return outside.Condition(db, v1.ConditionRootReplaced, "True", v1.ReasonNewestRoot)
	}))
	// NAME-app is made anew with each step.
	s.condition("shop", v1.ConditionPasswordRotated, "True", "")
	s.condition("shop", v1.ConditionAuthorityRotated, "True", "")
	setRoots(t, "-p", `{"data":{"root":null}}`)
	s.patch("shop", `{"postgresql":{"parameters":{"work_mem":"5MB"}}}`)
	s.ready("shop")
	if got := s.ask("shop", "SHOW work_mem"); got != "5MB" {
		t.Errorf("work_mem is %s, want 5MB: the operator reaches no agent", got)
	}
	if now := backendOf(s, session); now != backend {
		t.Errorf("the session had the process %d and has %d", backend, now)
	}
	if now := s.startedAt("shop"); now != started {
		t.Errorf("the servers started at %s, and before at %s", now, started)
	}
	s.rowsAtLeast("shop", s.count("shop")+50)
	writer.Stop()
	writer.Use(s.access("shop", naming.ReadWriteService("shop")))
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), writer.Acknowledged(), lost[0])
	}
	s.inTime(writer, outside.Undisturbed)
}

// setRoots changes the operator's Secret by kubectl patch, and has the operator read it.
func setRoots(t *testing.T, patch ...string) {
	t.Helper()
	for _, args := range [][]string{
		append([]string{"patch", "secret", "toban-operator"}, patch...),
		{"rollout", "restart", operator},
		{"rollout", "status", operator, "--timeout=" + patience.String()},
	} {
		_, err := system.Kubectl(context.WithoutCancel(t.Context()), args...)
		must(t, err)
	}
}
