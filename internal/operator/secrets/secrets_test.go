package secrets

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// What a real API server says is tested with one: test/api. This is about when the follower asks, and what it tells.

// api is an API server that lets Secrets be watched, or says why not.
type api struct {
	kubernetes.Interface
	corev1client.CoreV1Interface
	corev1client.SecretInterface
	mu      sync.Mutex
	refuses error
	asked   []time.Time
	streams []*stream
}

// stream is a watch.
type stream struct {
	*watch.FakeWatcher
	of string
}

func (a *api) CoreV1() corev1client.CoreV1Interface        { return a }
func (a *api) Secrets(string) corev1client.SecretInterface { return a }
func (a *api) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, time.Now())
	if a.refuses != nil {
		return nil, a.refuses
	}
	s := &stream{watch.NewFakeWithChanSize(10, false), o.FieldSelector}
	a.streams = append(a.streams, s)
	return s, nil
}

// last is the newest watch.
func (a *api) last() *stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams[len(a.streams)-1]
}

var user = types.NamespacedName{Namespace: "n", Name: "foo"}

// follow is a follower in a bubble, for one object and one Secret, and the objects of which it has told.
func follow(t *testing.T, a *api) (f *Follower, told func() []string) {
	t.Helper()
	f = New(a, func(content []byte) string { return string(content) })
	var mu sync.Mutex
	var names []string
	done := make(chan struct{})
	go func() {
		for {
			select {
			case e := <-f.Changed():
				mu.Lock()
				names = append(names, e.Object.GetNamespace()+"/"+e.Object.GetName())
				mu.Unlock()
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() {
		f.Follow(user)
		close(done)
		synctest.Wait()
	})
	f.Follow(user, "s")
	return f, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(names)
	}
}

func secret(text string, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: annotations},
		Data: map[string][]byte{"k": []byte(text)}}
}

// wantVersion checks what is known of the one Secret.
func wantVersion(t *testing.T, f *Follower, version string, settled bool) {
	t.Helper()
	synctest.Wait()
	versions, so := f.Versions(user)
	if versions["s"] != version || so != settled {
		t.Errorf("the version is %q, settled: %v; want %q, %v", versions["s"], so, version, settled)
	}
}

func TestASecretThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		f, told := follow(t, a)
		wantVersion(t, f, "", false)
		if got := a.last().of; got != "metadata.name=s" {
			t.Errorf("it watches %q", got)
		}
		a.last().Add(secret("one", nil))
		wantVersion(t, f, `{"k":"b25l"}`, true)
		a.last().Modify(secret("one", map[string]string{"somebody's": "note"}))
		if got := told(); len(got) != 1 || got[0] != "n/foo" {
			t.Errorf("told of %q: one Secret has come, and an annotation is no change", got)
		}
		a.last().Modify(secret("two", nil))
		wantVersion(t, f, `{"k":"dHdv"}`, true)
		a.last().Delete(secret("two", nil))
		wantVersion(t, f, absent, true)
		if got := told(); len(got) != 3 {
			t.Errorf("told of %q", got)
		}
	})
}

// A watch tells nothing of a Secret that is not there: that is known when it has said nothing for a moment.
func TestASecretThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, told := follow(t, &api{})
		time.Sleep(settling - time.Millisecond)
		wantVersion(t, f, "", false)
		time.Sleep(2 * time.Millisecond)
		wantVersion(t, f, absent, true)
		if got := told(); len(got) != 1 {
			t.Errorf("told of %q", got)
		}
	})
}

// Whether it may watch is asked for less and less often, with an hour of it costing a few requests; and no version is
// known, which is settled.
func TestASecretThatItMayNotWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{refuses: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New("no"))}
		f, told := follow(t, a)
		wantVersion(t, f, "", true)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		for i := 1; i < len(a.asked); i++ {
			least := min(firstForbidden<<(i-1), lastForbidden)
			if pause := a.asked[i].Sub(a.asked[i-1]); pause < least || pause > 2*least {
				t.Errorf("pause %d is %s, want %s to %s", i, pause, least, 2*least)
			}
		}
		if n := len(a.asked); n < 15 || n > 30 {
			t.Errorf("it has asked %d times in three hours", n)
		}
		if got := told(); len(got) != 1 {
			t.Errorf("told of %q, and nothing has changed", got)
		}
		a.mu.Lock()
		a.refuses = nil
		a.mu.Unlock()
		time.Sleep(2*lastForbidden + time.Second)
		wantVersion(t, f, absent, true)
	})
}

// A watch that breaks off is begun anew in a second, and what is known stays known.
func TestAWatchThatBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		f, told := follow(t, a)
		synctest.Wait()
		for _, end := range []func(*stream){
			func(s *stream) { s.Stop() },
			func(s *stream) { s.Error(&metav1.Status{Reason: metav1.StatusReasonExpired}) },
		} {
			a.last().Add(secret("one", nil))
			synctest.Wait()
			n := len(a.streams)
			end(a.last())
			time.Sleep(pauseBroken + time.Millisecond)
			wantVersion(t, f, `{"k":"b25l"}`, true)
			if len(a.streams) != n+1 {
				t.Errorf("%d watches after %d", len(a.streams), n)
			}
		}
		time.Sleep(settling + time.Millisecond) // the new watch says nothing, and that is no news of one that is known
		wantVersion(t, f, `{"k":"b25l"}`, true)
		if got := told(); len(got) != 1 {
			t.Errorf("told of %q", got)
		}
	})
}

// One watch for all who follow a Secret; it ends with the last of them.
func TestWhoFollowsASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		f, told := follow(t, a)
		other := types.NamespacedName{Namespace: "n", Name: "bar"}
		foreign := types.NamespacedName{Namespace: "m", Name: "foo"}
		f.Follow(other, "s")
		f.Follow(foreign, "s")
		synctest.Wait()
		if len(a.streams) != 2 {
			t.Fatalf("there are %d watches for the Secrets n/s and m/s", len(a.streams))
		}
		for _, s := range a.streams {
			s.Add(secret("one", nil))
		}
		got := told()
		slices.Sort(got)
		if !slices.Equal(got, []string{"m/foo", "n/bar", "n/foo"}) {
			t.Errorf("told of %q", got)
		}
		f.Follow(foreign)
		f.Follow(other, "t")
		synctest.Wait()
		if versions, _ := f.Versions(other); len(versions) != 1 || versions["t"] != "" {
			t.Errorf("the other one knows %q", versions)
		}
		wantVersion(t, f, `{"k":"b25l"}`, true)
		f.Follow(other)
		f.Follow(user)
		synctest.Wait()
		for i, s := range a.streams {
			if !s.IsStopped() {
				t.Errorf("watch %d goes on, and nobody follows", i)
			}
		}
		if versions, settled := f.Versions(user); len(versions) != 0 || !settled {
			t.Errorf("who follows nothing knows %q, settled: %v", versions, settled)
		}
	})
}
