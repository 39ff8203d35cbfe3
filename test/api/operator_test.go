package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"toban.dev/internal/cli/process"
)

// operatorArgs is the variable of the environment with the arguments of an operator. Where it is there, this program is
// that operator and no tests.
const operatorArgs = "TOBAN_TEST_OPERATOR"

func beOperator(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := process.Operator("test")
	c.SetArgs(args)
	if err := c.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// running is an operator as its Deployment runs it: a process, whose requests are those of its ServiceAccount.
type running struct {
	*world
	log     string
	process *exec.Cmd
	// lost says that the test has killed it.
	lost bool

	mu       sync.Mutex
	refused  []string
	answered []string
}

// runOperator runs the operator of a namespace until the test ends, with more options or variables of its environment.
func (w *world) runOperator(namespace string, more ...string) *running {
	w.Helper()
	o := &running{world: w, log: filepath.Join(w.TempDir(), "operator.log")}
	options := []string{"--image=toban:test", "--probe-address=0", "--metrics-address=127.0.0.1:0",
		"--namespace=" + namespace}
	environment := os.Environ()
	for _, one := range more {
		if strings.HasPrefix(one, "--") {
			options = append(options, one)
		} else {
			environment = append(environment, one)
		}
	}
	log, err := os.Create(o.log)
	w.must(err)
	program, err := os.Executable()
	w.must(err)
	c := exec.CommandContext(context.WithoutCancel(w.Context()), program)
	c.Env = append(environment, operatorArgs+"="+strings.Join(options, " "),
		"KUBECONFIG="+o.kubeconfig("system:serviceaccount:"+namespace+":toban-operator"))
	c.Stdout, c.Stderr = log, log
	w.must(c.Start())
	o.process = c
	w.Cleanup(func() {
		if o.lost {
			return
		}
		err := c.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
		if err := errors.Join(err, c.Wait(), log.Close()); err != nil {
			w.Errorf("the operator ended: %v", err)
		}
		late.Stop()
		if w.Failed() {
			w.Logf("the operator's log:\n%s", o.said())
		}
	})
	return o
}

// kubeconfig leads to the API server as a user, by a way on which it is noted what is refused.
func (o *running) kubeconfig(user string) string {
	o.Helper()
	target, _, err := rest.DefaultServerUrlFor(o.server)
	o.must(err)
	transport, err := rest.TransportFor(o.server)
	o.must(err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Impersonate-User", user)
		},
		Transport: transport, FlushInterval: -1, ModifyResponse: o.note,
	})
	o.Cleanup(proxy.CloseClientConnections) // watches that nobody has ended
	path := filepath.Join(o.TempDir(), "kubeconfig")
	o.must(os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+proxy.URL+`"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`), 0o600))
	return path
}

func (o *running) note(r *http.Response) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	request := r.Request.Method + " " + r.Request.URL.Path
	switch {
	case r.StatusCode == http.StatusForbidden:
		o.refused = append(o.refused, request)
	case r.StatusCode < http.StatusBadRequest:
		o.answered = append(o.answered, request)
	}
	return nil
}

// requests are those that the API server has carried out, and that are wanted.
func (o *running) requests(wanted func(request string) bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.answered), func(request string) bool { return !wanted(request) })
}

// kill ends the operator as the loss of its node does: it hands nothing over.
func (o *running) kill() {
	o.Helper()
	o.lost = true
	o.must(o.process.Process.Kill())
	if err := o.process.Wait(); err == nil {
		o.Fatal("the operator has ended before it was killed")
	}
}

// refusals are the requests that the API server has forbidden, each once.
func (o *running) refusals() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(o.refused)))
}

// said is the operator's log.
func (o *running) said() string {
	o.Helper()
	text, err := os.ReadFile(o.log)
	o.must(err)
	return string(text)
}

// until waits until something is so.
func (w *world) until(what string, so func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("after a minute: %s", what)
		}
	}
}

// anotherNamespace makes one.
func (w *world) anotherNamespace() string {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	w.must(w.api.Create(w.Context(), namespace))
	return namespace.Name
}

// install creates what is in a file of config, with some words replaced, and returns its objects.
func (w *world) install(file string, replace ...string) []*unstructured.Unstructured {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", file))
	w.must(err)
	var out []*unstructured.Unstructured
	for part := range strings.SplitSeq(strings.NewReplacer(replace...).Replace(string(text)), "\n---\n") {
		object := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(part), object))
		if len(object.Object) > 0 { // the heading is no object
			w.must(w.api.Create(w.Context(), object))
			out = append(out, object)
		}
	}
	return out
}

// awaitRight waits until the API server goes by a Role: it watches Roles and their bindings itself.
func (w *world) awaitRight(user string, right authorizationv1.ResourceAttributes) {
	w.Helper()
	w.until(fmt.Sprintf("%s may not %s %s in %q", user, right.Verb, right.Resource, right.Namespace), func() bool {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right},
		}
		w.must(w.api.Create(w.Context(), review))
		return review.Status.Allowed
	})
}

// has says that an object is there, in any namespace.
func (w *world) has(namespace, name string, object client.Object) bool {
	w.Helper()
	err := w.api.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	w.must(client.IgnoreNotFound(err))
	return err == nil
}
