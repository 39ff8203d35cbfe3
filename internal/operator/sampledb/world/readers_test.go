package world

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"toban.dev/internal/protocol"
)

// A reader is ready by its agent's own word, as long as its Pod is to stay.
func TestWhenAReaderIsReady(t *testing.T) {
	good := protocol.Status{Name: "db-readers-0", Role: protocol.RoleStandby, Ready: true, Streaming: true}
	for name, c := range map[string]struct {
		change func(*readers, *protocol.Status)
		want   bool
	}{
		"it streams":                   {func(*readers, *protocol.Status) {}, true},
		"its stream begins anew":       {func(_ *readers, s *protocol.Status) { s.Streaming = false }, true},
		"it has not streamed for long": {func(_ *readers, s *protocol.Status) { s.Ready = false }, false},
		"it does not answer":           {func(_ *readers, s *protocol.Status) { s.Name = "db-readers-1" }, false},
		"it copies":                    {func(_ *readers, s *protocol.Status) { s.Ready, s.Role = false, "" }, false},
		"it has no Pod":                {func(x *readers, _ *protocol.Status) { x.Pods = nil }, false},
		"its Pod is to be gone": {func(x *readers, _ *protocol.Status) {
			now := metav1.Now()
			x.Pods[0].DeletionTimestamp = &now
		}, false},
	} {
		said := good
		x := &readers{Pods: map[int]*corev1.Pod{0: {ObjectMeta: metav1.ObjectMeta{Name: "db-readers-0"}}}}
		c.change(x, &said)
		x.Answers = map[string]protocol.Status{said.Name: said}
		if got := x.Ready(0); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
