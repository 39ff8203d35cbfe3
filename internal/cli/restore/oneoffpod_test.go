package restore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// refusing is an API that refuses Pods with the words given, once for each.
func refusing(words ...string) client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(
			ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption,
		) error {
			if len(words) == 0 {
				return api.Create(ctx, object, options...)
			}
			said := words[0]
			words = words[1:]
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), errors.New(said))
		},
	}).Build()
}

// A namespace that was made a moment ago has no ServiceAccount yet: that is waited for, and no other refusal is.
func TestAnErrandWaitsForTheServiceAccountOfANewNamespace(t *testing.T) {
	const soon = `error looking up service account shop/default: serviceaccount "default" not found`
	for name, c := range map[string]struct {
		refusals []string
		words    string
	}{
		"at once":               {nil, ""},
		"with the next attempt": {[]string{soon}, ""},
		"a quota":               {[]string{"exceeded quota: none"}, "exceeded quota"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "toban-find"}}
		err := (&oneOffPod{api: refusing(c.refusals...), pod: pod}).create(t.Context())
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&oneOffPod{api: refusing(soon), pod: &corev1.Pod{}}).create(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "service account") {
		t.Errorf("ended while it waits: %v", err)
	}
}

// The last lines of a log may come after the Pod is said to have ended.
func TestALogIsReadUntilItIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		read := func(context.Context) ([]byte, error) {
			reads++
			return []byte("line "[:min(reads, 4)]), nil
		}
		is := func(want string) func([]byte) bool { return func(text []byte) bool { return string(text) == want } }
		if text, err := readWhole(t.Context(), read, is("line")); err != nil || string(text) != "line" || reads != 4 {
			t.Errorf("read %d times: %q, %v", reads, text, err)
		}
		began := time.Now()
		if text, err := readWhole(t.Context(), read, is("lines")); err != nil || string(text) != "line" ||
			time.Since(began) > 2*logPatience {
			t.Errorf("one that stays cut, after %s: %q, %v", time.Since(began), text, err)
		}
	})
}
