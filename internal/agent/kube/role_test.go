package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"toban.dev/internal/agent/publish"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// pods is a Kubernetes API with Pods, which patches them as the real one does. It keeps what it was sent.
type pods struct {
	*testing.T
	url  string
	mu   sync.Mutex
	all  map[string]*corev1.Pod
	sent []sent
	// lose has a patch be done and not answered.
	lose bool
}

// sent is a patch, which may be sent once more.
type sent struct {
	pod  string
	body []byte
}

func newPods(t *testing.T, names ...string) *pods {
	p := &pods{T: t, all: map[string]*corev1.Pod{}}
	for _, name := range names {
		p.all[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "1", Labels: map[string]string{"app": "db"},
		}}
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *pods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := path.Base(r.URL.Path)
	if r.Method == http.MethodPatch {
		p.sent = append(p.sent, sent{name, body})
	}
	code, object := p.answer(name, r.Method == http.MethodPatch, body)
	if p.lose && r.Method == http.MethodPatch {
		p.lose = false
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		p.Error(err)
	}
}

func (p *pods) answer(name string, patches bool, body []byte) (int, any) {
	pod := p.all[name]
	if pod == nil {
		return http.StatusNotFound, &metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404}
	}
	if !patches {
		return http.StatusOK, pod
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		p.Error(err)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		p.Error(err)
	}
	if text, err = patch.Apply(text); err != nil {
		return http.StatusUnprocessableEntity,
			&metav1.Status{Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: 422}
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(text, next); err != nil {
		p.Error(err)
	}
	version, _ := strconv.Atoi(next.ResourceVersion)
	next.ResourceVersion = strconv.Itoa(version + 1)
	p.all[name] = next
	return http.StatusOK, next
}

// of is the Kubernetes of an instance.
func (p *pods) of(name string) *Cluster {
	k, err := New(&rest.Config{Host: p.url}, "test", name, "db")
	if err != nil {
		p.Fatal(err)
	}
	return k
}

// publishes has an instance publish its role in a term.
func (p *pods) publishes(k *Cluster, role protocol.Role, term uint64) error {
	var others []string
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		if name != k.pod {
			others = append(others, name)
		}
	}
	return k.Publish(p.Context(), publish.Wish{Role: role, Term: term}, others)
}

func (p *pods) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// are says which roles the Pods have, and of which terms they are on record.
func (p *pods) are(want string) {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var got []string
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		if pod := p.all[name]; pod != nil {
			term, _, _ := strings.Cut(pod.Annotations[naming.AnnotationRole], ".")
			got = append(got, pod.Labels[naming.LabelRole]+"@"+term)
		}
	}
	if now := strings.Join(got, " "); now != want {
		p.Errorf("the Pods are %q, and not %q", now, want)
	}
}

// sendAgain sends once more all patches that were sent, as a network does that has held them up.
func (p *pods) sendAgain() {
	p.Helper()
	p.mu.Lock()
	all := p.sent
	p.mu.Unlock()
	for _, s := range all {
		r, err := http.NewRequestWithContext(p.Context(), http.MethodPatch,
			p.url+"/api/v1/namespaces/test/pods/"+s.pod, strings.NewReader(string(s.body)))
		p.must(err)
		r.Header.Set("Content-Type", "application/json-patch+json")
		answer, err := http.DefaultClient.Do(r)
		p.must(err)
		p.must(answer.Body.Close())
	}
}

// What a former leader sends, and what comes late, takes the label neither from the present leader nor to another Pod.
func TestARoleIsFencedByItsTerm(t *testing.T) {
	p := newPods(t, "db-0", "db-1", "db-2")
	former, present, other := p.of("db-0"), p.of("db-1"), p.of("db-2")
	p.must(p.publishes(former, protocol.RolePrimary, 7))
	p.must(p.publishes(present, protocol.RoleStandby, 7))
	p.must(p.publishes(other, protocol.RoleStandby, 7))
	p.are("primary@7 standby@7 standby@7")

	p.must(p.publishes(present, protocol.RolePrimary, 8))
	p.are("@8 primary@8 standby@8")
	p.sendAgain()
	p.are("@8 primary@8 standby@8")
	if err := p.publishes(former, protocol.RolePrimary, 7); !errors.Is(err, publish.ErrLaterTerm) {
		t.Errorf("a former leader publishes itself: %v", err)
	}
	p.are("@8 primary@8 standby@8")
	p.must(p.publishes(former, protocol.RoleStandby, 7)) // it has not heard of the later term yet
	p.are("standby@8 primary@8 standby@8")
	p.sendAgain()
	p.are("standby@8 primary@8 standby@8")

	p.must(p.publishes(present, protocol.RoleNone, 8))
	p.sendAgain()
	p.are("standby@8 @8 standby@8")
	p.must(p.publishes(former, protocol.RolePrimary, 9))
	p.are("primary@9 @9 standby@9")
}

// Somebody may have written a term by hand that no instance knows.
func TestALaterTermThatIsWrongIsWrittenOver(t *testing.T) {
	p := newPods(t, "db-0", "db-1")
	p.all["db-0"].Annotations = map[string]string{naming.AnnotationRole: "99.x"}
	p.all["db-1"].Annotations = map[string]string{naming.AnnotationRole: "no term"}
	k := p.of("db-0")
	if err := p.publishes(k, protocol.RolePrimary, 2); !errors.Is(err, publish.ErrLaterTerm) {
		t.Errorf("a later term is on record: %v", err)
	}
	p.are("@99 @no term")
	p.must(k.Publish(t.Context(), publish.Wish{Role: protocol.RolePrimary, Term: 2, Anyway: true}, []string{"db-1"}))
	p.are("primary@99 @2")
}

// A Pod that was changed by somebody else meanwhile is read again, and an answer that is lost counts for nothing.
func TestARoleIsWrittenAgainWhereThePodIsAnotherWay(t *testing.T) {
	p := newPods(t, "db-0", "db-1")
	k := p.of("db-0")
	p.must(p.publishes(k, protocol.RoleStandby, 3))
	p.all["db-0"].Annotations[naming.AnnotationRole] = "3.another"
	p.must(p.publishes(k, protocol.RolePrimary, 4))
	p.are("primary@4 @4")
	p.lose = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := k.Publish(ctx, publish.Wish{Role: protocol.RoleStandby, Term: 4}, nil); err == nil {
		t.Error("nobody has answered, and it is published")
	}
	p.must(p.publishes(k, protocol.RolePrimary, 5))
	p.are("primary@5 @5")
	delete(p.all, "db-0")
	if err := p.publishes(k, protocol.RolePrimary, 6); err == nil {
		t.Error("the Pod is not there, and has a role")
	}
}

// A Pod may have no label at all, and a JSON patch adds nothing to a map that isn't there (RFC 6902, section 4.1).
func TestAPodWithoutLabelsGetsItsRole(t *testing.T) {
	p := newPods(t, "db-0", "db-1")
	k := p.of("db-0")
	for name, annotations := range map[string]map[string]string{
		"none": nil, "another": {"a": "b"}, "of a role": {naming.AnnotationRole: "3.x"},
	} {
		p.all["db-0"].Labels, p.all["db-0"].Annotations = nil, annotations
		k.written.Store(nil)
		if err := p.publishes(k, protocol.RolePrimary, 4); err != nil {
			t.Errorf("annotations: %s: %v", name, err)
		}
		p.are("primary@4 @4")
	}
}
