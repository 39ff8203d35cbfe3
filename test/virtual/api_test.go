package virtual

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"toban.dev/internal/agent"
	"toban.dev/internal/agent/kube"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// leaseUID is the identity of the Lease that is the witness of two instances.
const leaseUID = "uid-of-the-lease"

// api is a Kubernetes API with what agents ask of it: a Lease, and the Pods' labels. The agents'
// client of it is the real one.
type api struct {
	w     *world
	mutex sync.Mutex
	lease *coordinationv1.Lease
	pods  map[string]*corev1.Pod
	// late is after how long patches of an instance reach it that the instance has given up by then.
	// slow is how much longer each call takes, troubled when somebody has last waited for it in vain, taken when a
	// read lease was last in the Lease, by its term.
	slow     time.Duration
	late     map[string]time.Duration
	troubled map[string]time.Time
	taken    map[uint64]time.Time
}

func newAPI(w *world) *api {
	lease := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "test", UID: types.UID(leaseUID), ResourceVersion: "1"},
	}
	return &api{w: w, lease: lease, pods: map[string]*corev1.Pod{}, troubled: map[string]time.Time{},
		taken: map[uint64]time.Time{}, late: map[string]time.Duration{}}
}

// cluster is the agent's own code for the API, as an instance reaches it.
func (a *api) cluster(name string) agent.Cluster {
	cluster, err := kube.New(&rest.Config{
		Host: "http://api", Transport: &way{a, name}, QPS: 50, Burst: 100,
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON,
		},
	}, "test", name, "db")
	a.w.check.must(err)
	return cluster
}

// way is an instance's way to the API.
type way struct {
	api  *api
	from string
}

// RoundTrip is http.RoundTripper's. The call is made also when its answer is lost.
func (y *way) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		defer r.Body.Close()
	}
	begun, network := time.Now(), y.api.w.net
	response, err := y.call(r, body)
	if err == nil {
		err = network.travel(r.Context(), link{"api", y.from})
	}
	if err != nil || time.Since(begun) > 250*time.Millisecond {
		y.api.mutex.Lock()
		y.api.troubled[y.from] = time.Now()
		y.api.mutex.Unlock()
	}
	if err != nil {
		return nil, &net.OpError{Op: "call", Net: "virtual", Err: err}
	}
	response.Request = r
	return response, nil
}

func (y *way) call(r *http.Request, body []byte) (*http.Response, error) {
	if err := y.api.w.net.travel(r.Context(), link{y.from, "api"}); err != nil {
		return nil, err
	}
	_, pod, _ := strings.Cut(r.URL.Path, "/pods/")
	y.api.mutex.Lock()
	slow, late := y.api.slow, y.api.late[y.from]
	y.api.mutex.Unlock()
	if late > 0 && r.Method == http.MethodPatch {
		time.AfterFunc(late, func() {
			y.api.mutex.Lock()
			defer y.api.mutex.Unlock()
			_ = y.api.callPod(r, pod, body).Body.Close()
		})
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err := pause(r.Context(), slow); err != nil {
		return nil, err
	}
	y.api.mutex.Lock()
	defer y.api.mutex.Unlock()
	if strings.Contains(r.URL.Path, "/leases/") {
		return y.api.callLease(r.Method, body), nil
	}
	return y.api.callPod(r, pod, body), nil
}

// beSlow has each call take longer.
func (a *api) beSlow(by time.Duration) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.slow = by
}

// beLate has patches of an instance come later, after it has given them up.
func (a *api) beLate(name string, by time.Duration) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.late[name] = by
}

// takeRole takes the label from a Pod, as somebody does by hand.
func (a *api) takeRole(name string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.pods[name].Labels, naming.LabelRole)
}

// hasTrouble says that an instance could not rely on the API a moment ago.
func (a *api) hasTrouble(name string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	at, ok := a.troubled[name]
	return ok && time.Since(at) < 10*time.Second || a.slow > 0 || !a.w.net.works(name, "api")
}

// holds says that the leader of a term has the read lease, or had it until a moment ago: who leads a later term by then
// takes it out of the Lease, and the one who has it sees that when it reads the Lease again.
func (a *api) holds(term uint64) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.readLease() == term || time.Since(a.taken[term]) < time.Second
}

// holding is the term of the leader that has the read lease.
func (a *api) holding() uint64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.readLease()
}

// readLease is that of the Lease.
func (a *api) readLease() uint64 {
	var m ha.HardState
	_ = json.Unmarshal([]byte(a.lease.Annotations[naming.AnnotationElection]), &m) // it has none yet
	return m.ReadLease
}

// callLease reads the Lease, or replaces the one that was read.
func (a *api) callLease(method string, body []byte) *http.Response {
	if method != http.MethodPut {
		return answer(http.StatusOK, a.lease)
	}
	var next coordinationv1.Lease
	if err := json.Unmarshal(body, &next); err != nil {
		return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	if next.ResourceVersion != a.lease.ResourceVersion {
		return failure(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	}
	version, _ := strconv.Atoi(next.ResourceVersion)
	next.ResourceVersion, next.TypeMeta = strconv.Itoa(version+1), a.lease.TypeMeta
	a.taken[a.readLease()] = time.Now()
	a.lease = &next
	return answer(http.StatusOK, a.lease)
}

// callPod reads a Pod, or changes it, as the API server does.
func (a *api) callPod(r *http.Request, name string, body []byte) *http.Response {
	pod := a.pods[name]
	if pod == nil {
		pod = &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "test", ResourceVersion: "1", Labels: map[string]string{"is": "there"},
			},
		}
		a.pods[name] = pod
	}
	if r.Method == http.MethodGet {
		return answer(http.StatusOK, pod)
	}
	next, err := patched(pod, r.Header.Get("Content-Type"), body)
	if err != nil {
		return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	}
	version, _ := strconv.Atoi(pod.ResourceVersion)
	next.ResourceVersion = strconv.Itoa(version + 1)
	a.pods[name] = next
	return answer(http.StatusOK, next)
}

// patched is a Pod with a patch, by the library of the API server.
func patched(pod *corev1.Pod, kind string, body []byte) (*corev1.Pod, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encode the Pod: %w", err)
	}
	if kind == string(types.JSONPatchType) {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = patch.Apply(text)
		}
	} else {
		text, err = jsonpatch.MergePatch(text, body)
	}
	if err != nil {
		return nil, fmt.Errorf("patch the Pod: %w", err)
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(text, next); err != nil {
		return nil, fmt.Errorf("decode the Pod: %w", err)
	}
	return next, nil
}

// role is the label of a Pod.
func (a *api) role(name string) protocol.Role {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pod := a.pods[name]
	if pod == nil {
		return protocol.RoleNone
	}
	return protocol.Role(pod.Labels[naming.LabelRole])
}

func answer(code int, object any) *http.Response {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // an object of Kubernetes
	}
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
		ContentLength: int64(len(text)),
	}
}

func failure(code int32, reason metav1.StatusReason, message string) *http.Response {
	return answer(int(code), &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Message: message, Code: code,
	})
}

// dialAsOperator connects the operator, which no fault keeps from anybody.
func (w *world) dialAsOperator(ctx context.Context, _, address string) (net.Conn, error) {
	c, err := w.net.dial(ctx, "operator", address)
	if err != nil {
		return nil, errors.Join(err)
	}
	return c, nil
}
