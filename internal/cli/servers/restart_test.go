package servers

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster/clustertest"
	"toban.dev/internal/operator/scheme"
)

// The request is gone before the status says how it has ended: only if that does not come, the restart was given up.
func TestTheStatusOfARestartMayComeAfterItsRequestIsGone(t *testing.T) {
	for words, after := range map[string]time.Duration{
		"the restart is refused: no": await.StatusPatience / 2, "the restart was given up": 2 * await.StatusPatience,
	} {
		synctest.Test(t, func(t *testing.T) {
			known, err := scheme.New()
			if err != nil {
				t.Fatal(err)
			}
			db := clustertest.ThreeReady()
			api := fake.NewClientBuilder().WithScheme(known).WithObjects(db).WithStatusSubresource(db).Build()
			go func() {
				time.Sleep(after)
				later := &v1.SampleDB{}
				if api.Get(t.Context(), client.ObjectKeyFromObject(db), later) == nil {
					later.Status.Restart = &v1.RestartStatus{Step: v1.RestartRefused, Message: "no"}
					_ = api.Status().Update(t.Context(), later)
				}
			}()
			o := &restartOptions{}
			o.Namespace, o.Timeout = db.Namespace, time.Minute
			if err := o.await(t.Context(), io.Discard, api, db); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("it says %v, want %q", err, words)
			}
			time.Sleep(after)
		})
	}
}
