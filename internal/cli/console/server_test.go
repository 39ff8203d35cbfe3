package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "toban.dev/api/v1"
)

// verbs note what they are asked to do.
type verbs struct{ done []Action }

func (v *verbs) Logs(context.Context, string, string, string, int64) ([]byte, error) {
	return []byte("{\"line\":\"one\"}\n{\"line\":\"two\"}\n"), nil
}

func (v *verbs) Replication(context.Context, string, string) (Replication, error) {
	return Replication{LSN: "0/1"}, nil
}

func (v *verbs) Clone(*v1.SampleDB, string, string) (*v1.SampleDB, error) {
	return nil, errors.New("there is no archive")
}

func (v *verbs) Do(_ context.Context, a Action) (string, error) {
	v.done = append(v.done, a)
	return "asked for", nil
}

// apiOf is an API with objects, whose answers may be changed.
func apiOf(t *testing.T, changes interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(changes).
		WithIndex(&corev1.Event{}, "involvedObject.apiVersion", func(o client.Object) []string {
			e, _ := o.(*corev1.Event)
			return []string{e.InvolvedObject.APIVersion}
		}).Build()
}

// serve starts a console, which ends with the test.
func serve(t *testing.T, o Options) *Server {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(listener, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// get is a request of a page of the console, with changes.
func get(t *testing.T, s *Server, path string, changes ...func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, r, changes)
}

// post is one that asks for something.
func post(t *testing.T, s *Server, body string, changes ...func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"api/do", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "http://"+s.guard.host)
	return send(t, r, changes)
}

func send(t *testing.T, r *http.Request, changes []func(*http.Request)) (int, string) {
	t.Helper()
	for _, change := range changes {
		change(r)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"Content-Security-Policy", "Referrer-Policy", "X-Frame-Options"} {
		if answer.Header.Get(header) == "" {
			t.Errorf("%s %s: the answer lacks %s", r.Method, r.URL.Path, header)
		}
	}
	return answer.StatusCode, string(text)
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func path(changed string) func(*http.Request) { return func(r *http.Request) { r.URL.Path = changed } }

// Only who knows the token, asks by the address of the URL, and comes from no other page, is answered.
func TestOnlyAPageOfOursIsAnswered(t *testing.T) {
	s := serve(t, Options{API: apiOf(t, interceptor.Funcs{}), Verbs: &verbs{}, Write: true})
	token := "/" + s.guard.token
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"as it is":                           {func(*http.Request) {}, http.StatusOK},
		"without a token":                    {path("/index.html"), http.StatusForbidden},
		"with another token":                 {path("/another" + token[8:] + "/"), http.StatusForbidden},
		"with a part of the token":           {path(token[:20] + "/"), http.StatusForbidden},
		"by another name (DNS rebinding)":    {host("evil.example:80"), http.StatusForbidden},
		"by the name localhost":              {host("localhost" + s.guard.host[9:]), http.StatusForbidden},
		"from another page":                  {header("Origin", "http://evil.example"), http.StatusForbidden},
		"from another port of this machine":  {header("Origin", "http://127.0.0.1:1"), http.StatusForbidden},
		"from a page without an address":     {header("Origin", "null"), http.StatusForbidden},
		"as a part of another page":          {header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"as a part of a page of the machine": {header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		"from our own page":                  {header("Sec-Fetch-Site", "same-origin"), http.StatusOK},
	} {
		if code, text := get(t, s, "", c.change); code != c.want {
			t.Errorf("%s: %d, want %d: %.80s", name, code, c.want, text)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"a write without an Origin":    func(r *http.Request) { r.Header.Del("Origin") },
		"a write of another page":      header("Origin", "http://evil.example"),
		"a write by a link elsewhere":  header("Sec-Fetch-Site", "cross-site"),
		"a write without the token":    path("/api/do"),
		"a write by another host name": host("evil.example"),
	} {
		if code, text := post(t, s, "{}", change); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

// The URL for the browser leads to the console once: who has read it in the list of processes later gets nothing.
func TestTheURLForTheBrowserLeadsThereOnce(t *testing.T) {
	s := serve(t, Options{API: apiOf(t, interceptor.Funcs{}), Verbs: &verbs{}})
	once := path(strings.TrimPrefix(s.OnceURL(), "http://"+s.guard.host))
	if code, _ := get(t, s, "", once); code != http.StatusSeeOther {
		t.Errorf("the first time: %d", code)
	}
	if code, _ := get(t, s, "", once); code != http.StatusForbidden {
		t.Errorf("the second time: %d", code)
	}
	if strings.Contains(s.OnceURL(), s.guard.token) {
		t.Error("the URL for the browser has the token in it")
	}
}

// A console without --write changes nothing. One with it does what was confirmed by the name, and nothing else.
func TestAConsoleWritesOnlyWhatIsAllowedAndConfirmed(t *testing.T) {
	const do = `{"namespace":"shop","name":"orders","what":"switchover","confirm":"orders"}`
	for name, c := range map[string]struct {
		write bool
		body  string
		want  int
	}{
		"it only reads":       {false, do, http.StatusForbidden},
		"it may write":        {true, do, http.StatusOK},
		"another name":        {true, strings.Replace(do, `m":"orders`, `m":"order`, 1), http.StatusBadRequest},
		"no name":             {true, `{"namespace":"shop","what":"switchover"}`, http.StatusBadRequest},
		"an unknown action":   {true, strings.Replace(do, "switchover", "delete", 1), http.StatusBadRequest},
		"what is no JSON":     {true, `<script>`, http.StatusBadRequest},
		"what is far too big": {true, `{"name":"` + strings.Repeat("x", 1<<16) + `"}`, http.StatusBadRequest},
	} {
		v := &verbs{}
		s := serve(t, Options{API: apiOf(t, interceptor.Funcs{}), Verbs: v, Write: c.write})
		code, text := post(t, s, c.body)
		if code != c.want || (len(v.done) > 0) != (c.want == http.StatusOK) {
			t.Errorf("%s: %d %s, and %d were done", name, code, text, len(v.done))
		}
	}
}

// The command of an action is shown as it would be typed.
func TestTheCommandOfAnActionIsShown(t *testing.T) {
	s := serve(t, Options{API: apiOf(t, interceptor.Funcs{}), Verbs: &verbs{}, Flags: []string{"--context", "c 1"}})
	_, text := get(t, s, "api/command?namespace=n&name=shop&what=switchover&instance=shop-1")
	if !strings.Contains(text, "kubectl toban switchover shop --to shop-1 --namespace n --context 'c 1'") {
		t.Error(text)
	}
}

// The page is told of what changes, and goes on by itself when the API is back.
func TestTheStreamFollowsTheAPI(t *testing.T) {
	db := database("shop", "orders")
	down := make(chan bool, 1)
	down <- true
	answers := interceptor.Funcs{List: func(
		ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
	) error {
		is := <-down
		down <- is
		if is {
			return &url.Error{Op: "Get", Err: errors.New("connection refused")}
		}
		return c.List(ctx, list, options...)
	}}
	api := apiOf(t, answers, &db)
	s := serve(t, Options{API: api, Verbs: &verbs{}, Namespace: "shop"})
	next := streamOf(t, s, "api/stream?namespace=shop&name=orders")
	next(func(v View) bool { return len(v.Troubles) == 1 && v.Troubles[0].Kind == troubleAway && v.Loading })
	<-down
	down <- false
	next(func(v View) bool {
		return len(v.Troubles) == 0 && v.Database != nil && v.Database.Primary == "orders-0" && v.Replication != nil
	})

	changed := &v1.SampleDB{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(&db), changed); err != nil {
		t.Fatal(err)
	}
	changed.Status.Primary = "orders-1"
	if err := api.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	next(func(v View) bool { return v.Database != nil && v.Database.Primary == "orders-1" })
	if err := api.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	next(func(v View) bool { return v.Database == nil && !v.Loading })
}

// streamOf reads views of a stream until one is as wanted.
func streamOf(t *testing.T, s *Server, path string) func(wanted func(View) bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	events := newEvents(answer.Body)
	return func(wanted func(View) bool) {
		t.Helper()
		for {
			v, err := events()
			if err != nil {
				t.Fatal(err)
			}
			if wanted(v) {
				return
			}
		}
	}
}

// newEvents reads the views of server-sent events.
func newEvents(from io.Reader) func() (View, error) {
	lines := newLines(from)
	return func() (v View, err error) {
		for {
			line, err := lines()
			if err != nil {
				return v, err
			}
			if data, is := strings.CutPrefix(line, "data: "); is {
				return v, json.Unmarshal([]byte(data), &v)
			}
		}
	}
}

// A right that is missing is named, and the rest is shown.
func TestAMissingRightIsNamed(t *testing.T) {
	db := database("shop", "orders")
	forbidden := interceptor.Funcs{List: func(
		ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
	) error {
		if _, pods := list.(*corev1.PodList); pods {
			return forbid("pods")
		}
		return c.List(ctx, list, options...)
	}}
	s := serve(t, Options{API: apiOf(t, forbidden, &db), Verbs: &verbs{}, Namespace: "shop"})
	streamOf(t, s, "api/stream?fleet=1")(func(v View) bool {
		return len(v.Fleet) == 1 && len(v.Troubles) == 1 && v.Troubles[0].Kind == troubleForbidden &&
			v.Troubles[0].Right == "list and watch pods" && v.Troubles[0].Namespace == "shop"
	})
}

// A handler's error is told as JSON, with a sentence.
func TestAnErrorIsASentence(t *testing.T) {
	handler := answer(func(*http.Request) (any, error) { return nil, forbid("pods/log") })
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	var trouble Trouble
	if err := json.Unmarshal(w.Body.Bytes(), &trouble); err != nil || trouble.Kind != troubleForbidden ||
		!strings.Contains(trouble.Message, "pods/log") {
		t.Errorf("%v: %s", err, w.Body)
	}
	s := serve(t, Options{API: apiOf(t, interceptor.Funcs{}), Verbs: &verbs{}})
	code, text := get(t, s, "api/restore?namespace=a&name=b&to=2026-11-21T00:00:00Z")
	if code != http.StatusNotFound || !strings.Contains(text, "there is no SampleDB b in namespace a") {
		t.Errorf("%d %s", code, text)
	}
}

// forbid is the API's answer to who lacks a right.
func forbid(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("you may not"))
}

// newLines reads lines of any length.
func newLines(from io.Reader) func() (string, error) {
	reader := bufio.NewReader(from)
	return func() (string, error) {
		line, err := reader.ReadString('\n')
		return strings.TrimSuffix(line, "\n"), err
	}
}
