package bucket_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/pki"
)

func TestFolder(t *testing.T) {
	folder := t.TempDir()
	buckettest.Run(t, buckettest.Store{
		Bucket:  bucket.Config{Folder: folder},
		Missing: bucket.Config{Folder: filepath.Join(t.TempDir(), "none")},
	})
	entries, err := os.ReadDir(filepath.Join(folder, ".incoming"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left in the staging folder: %v, %v", entries, err)
	}
}

func TestVolume(t *testing.T) {
	world := newVolume(t, t.TempDir())
	missing := newVolume(t, filepath.Join(t.TempDir(), "none"))
	stranger := newVolume(t, t.TempDir()).config
	stranger.Volume = world.config.Volume
	stranger.CA = world.config.CA
	buckettest.Run(t, buckettest.Store{Bucket: world.config, Missing: missing.config, Denied: &stranger})
	buckettest.RunCut(t, world.config)
}

// volume is a server on loopback, and the configuration of a client who may do everything.
type volume struct {
	config    bucket.Config
	authority *pki.Authority
}

func newVolume(t *testing.T, folder string) volume {
	t.Helper()
	authority, err := pki.NewAuthority([]byte(strings.Repeat("seed", 8)+t.TempDir()), "volume", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf := issue(t, authority, "volume")
	config := bucket.ServerTLS(leaf.TLS,
		func() (*x509.CertPool, error) { return pki.Pool(string(authority.CertPEM())) })
	server := bucket.NewServer(bucket.OpenFolder(folder), mayOwn, config)
	server.ErrorLog = log.New(io.Discard, "", 0) // clients that are refused are what is tried
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	v := volume{authority: authority}
	v.config = bucket.Config{
		Volume: &bucket.Volume{URL: "https://" + listener.Addr().String(), Identity: "volume"},
		CA:     string(authority.CertPEM()),
	}
	v.config.Credentials = v.client(t, "everything")
	return v
}

// mayOwn allows a client what is below its own name, and "everything" all.
func mayOwn(client *x509.Certificate, prefix string, write bool) bool {
	name := client.Subject.CommonName
	return name == "everything" || strings.HasPrefix(prefix, name+"/") || name == "reader" && !write
}

// client makes the files of a client.
func (v volume) client(t *testing.T, identity string) string {
	t.Helper()
	leaf, folder := issue(t, v.authority, identity), t.TempDir()
	for name, text := range map[string][]byte{"tls.crt": leaf.CertPEM, "tls.key": leaf.KeyPEM} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func issue(t *testing.T, authority *pki.Authority, identity string) pki.Leaf {
	t.Helper()
	leaf, err := authority.Issue(identity, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func open(t *testing.T, config bucket.Config) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What time it is by a store its answers say, also where an object is missing.
func TestTheClockOfAStore(t *testing.T) {
	world := newVolume(t, t.TempDir())
	var clock bucket.Clock
	world.config.Clock = &clock
	b := open(t, world.config)
	if now := clock.Now(); !now.IsZero() {
		t.Errorf("before it has answered it is %s", now)
	}
	if _, err := b.Get(t.Context(), "none"); !errors.Is(err, bucket.ErrNotExist) {
		t.Error(err)
	}
	if off := time.Since(clock.Now()).Abs(); off > time.Minute {
		t.Errorf("it is off by %s", off)
	}
	past := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	clock.Set(past)
	if now := clock.Now(); now.Before(past) || now.After(past.Add(time.Minute)) {
		t.Errorf("it goes on at %s", now)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", past.Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(proxy.Close)
	for name, config := range map[string]bucket.Config{
		"GCS":   {GCS: &bucket.GCS{Bucket: "bucket", Endpoint: proxy.URL}},
		"S3":    {S3: &bucket.S3{Bucket: "bucket", Endpoint: proxy.URL, PathStyle: true}, Credentials: keys(t)},
		"Azure": {Azure: &bucket.Azure{Account: "a", Container: "c", Endpoint: proxy.URL}, Credentials: keys(t)},
	} {
		var clock bucket.Clock
		config.Clock = &clock
		_, err := open(t, config).Get(t.Context(), "none")
		if now := clock.Now(); err == nil || now.Before(past) || now.After(past.Add(time.Minute)) {
			t.Errorf("by %s it is %s: %v", name, now, err)
		}
	}
}

// keys are credentials that nobody looks at.
func keys(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range map[string]string{"accessKeyID": "k", "secretAccessKey": "s", "accountKey": "a2V5"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestVolumeGivesEachItsOwn(t *testing.T) {
	world := newVolume(t, t.TempDir())
	alice, reader := world.config, world.config
	alice.Credentials, reader.Credentials = world.client(t, "alice"), world.client(t, "reader")
	all := open(t, world.config)
	for _, name := range []string{"alice/a", "alicent/a", "bob/a"} {
		if err := all.Put(t.Context(), name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	get := func(b bucket.Bucket, name string) error {
		body, err := b.Get(t.Context(), name)
		if err != nil {
			return err
		}
		return body.Close()
	}
	listing := func(b bucket.Bucket, prefix string) error {
		for _, err := range b.List(t.Context(), prefix) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	a, r := open(t, alice), open(t, reader)
	for what, c := range map[string]struct{ err, want error }{
		"write below one's own name":         {a.Put(t.Context(), "alice/b", nil), nil},
		"read it":                            {get(a, "alice/a"), nil},
		"list it":                            {listing(a, "alice/"), nil},
		"delete it":                          {a.Delete(t.Context(), "alice/b"), nil},
		"write another's":                    {a.Put(t.Context(), "bob/b", nil), bucket.ErrDenied},
		"create another's":                   {a.Create(t.Context(), "bob/b", nil), bucket.ErrDenied},
		"read another's":                     {get(a, "bob/a"), bucket.ErrDenied},
		"read another's with a longer name":  {get(a, "alicent/a"), bucket.ErrDenied},
		"list more than one's own":           {listing(a, "alice"), bucket.ErrDenied},
		"list all":                           {listing(a, ""), bucket.ErrDenied},
		"delete another's beside one's own":  {a.Delete(t.Context(), "alice/a", "bob/a"), bucket.ErrDenied},
		"read as one who may only read":      {get(r, "bob/a"), nil},
		"write as one who may only read":     {r.Put(t.Context(), "bob/a", nil), bucket.ErrDenied},
		"a large one is denied, not cut off": {r.Put(t.Context(), "bob/a", make([]byte, 8<<20)), bucket.ErrDenied},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
	if err := get(all, "alice/a"); err != nil {
		t.Errorf("a refused delete has deleted: %v", err)
	}
}

// raw sends a request to a volume without the client in between.
func (v volume) raw(t *testing.T, method, path, body string, header http.Header) int {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(v.config.Credentials, "tls.crt"),
		filepath.Join(v.config.Credentials, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots, err := pki.Pool(v.config.CA)
	if err != nil {
		t.Fatal(err)
	}
	secure := pki.ClientTLS(func() (tls.Certificate, error) { return pair, nil }, roots, "volume")
	transport := &http.Transport{TLSClientConfig: secure, ExpectContinueTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, v.config.Volume.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func TestVolumeTakesNothingBroken(t *testing.T) {
	folder := t.TempDir()
	world := newVolume(t, folder)
	const sum = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of "x"
	for what, c := range map[string]struct {
		method, path, body string
		header             http.Header
		want               int
	}{
		"the right sum": {"PUT", "/objects/a", "x", http.Header{"Content-Sha256": {sum}}, http.StatusNoContent},
		"another sum": {
			"PUT", "/objects/b", "y", http.Header{"Content-Sha256": {sum}}, http.StatusInternalServerError,
		},
		"no sum":    {"PUT", "/objects/c", "x", http.Header{}, http.StatusInternalServerError},
		"a way out": {"PUT", "/objects/..%2f..%2fd", "x", http.Header{"Content-Sha256": {sum}}, http.StatusBadRequest},
		"the staging folder": {
			"PUT", "/objects/.incoming/d", "x", http.Header{"Content-Sha256": {sum}}, http.StatusBadRequest,
		},
		"a list that is none": {"POST", "/delete", "{", http.Header{}, http.StatusBadRequest},
		"a listing far out":   {"GET", "/list?prefix=../", "", http.Header{}, http.StatusBadRequest},
		"nothing of the kind": {"GET", "/", "", http.Header{}, http.StatusNotFound},
		"a method of no kind": {"PATCH", "/objects/a", "", http.Header{}, http.StatusMethodNotAllowed},
		"one that is too long": {
			"PUT", "/objects/e", strings.Repeat("x", bucket.MaxObject+1),
			http.Header{"Expect": {"100-continue"}}, http.StatusBadRequest,
		},
	} {
		if got := world.raw(t, c.method, c.path, c.body, c.header); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
	for object, err := range bucket.OpenFolder(folder).List(t.Context(), "") {
		if err != nil || object.Name != "a" {
			t.Errorf("there is %q (%v)", object.Name, err)
		}
	}
}

func TestVolumeWithAnotherIdentity(t *testing.T) {
	world := newVolume(t, t.TempDir())
	world.config.Volume.Identity = "another"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := open(t, world.config).Put(ctx, "a", nil); err == nil ||
		!strings.Contains(err.Error(), "expected one of") {
		t.Errorf("%v", err)
	}
}

func TestFolderLeavesNothingOfTheKilled(t *testing.T) {
	folder := t.TempDir()
	b := bucket.OpenFolder(folder)
	if err := b.Put(t.Context(), "a", bytes.Repeat([]byte("x"), 100)); err != nil {
		t.Fatal(err)
	}
	old, young := filepath.Join(folder, ".incoming", "old"), filepath.Join(folder, ".incoming", "young")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	bucket.OpenFolder(folder)
	if _, err := os.Stat(old); err == nil {
		t.Error("the file of one that was killed is still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the file of one who is writing is gone: %v", err)
	}
}

func TestFolderRemovesEmptiedFolders(t *testing.T) {
	folder := t.TempDir()
	b := bucket.OpenFolder(folder)
	for _, name := range []string{"a/b/c", "a/d"} {
		if err := b.Put(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Delete(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "a/b")); err == nil {
		t.Error("the emptied folder is still there")
	}
	if _, err := os.Stat(filepath.Join(folder, "a/d")); err != nil {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	folder := bucket.Config{Folder: "/x"}
	both := folder
	both.S3 = &bucket.S3{Bucket: "b"}
	for what, c := range map[string]struct {
		config bucket.Config
		want   string
	}{
		"nothing":              {bucket.Config{}, "0 are set"},
		"two at the same time": {both, "2 are set"},
		"no bucket":            {bucket.Config{S3: &bucket.S3{}}, "s3.bucket is not set"},
		"no container":         {bucket.Config{Azure: &bucket.Azure{Account: "a"}}, "azure.container is not set"},
		"an endpoint of no use": {
			bucket.Config{S3: &bucket.S3{Bucket: "b", Endpoint: "minio:9000"}}, "must be https://",
		},
		"a prefix that leads out": {bucket.Config{Folder: "/x", Prefix: "../y"}, "not a legal object"},
		"a volume without mTLS":   {bucket.Config{Volume: &bucket.Volume{URL: "https://x", Identity: "i"}}, "mTLS"},
		"an authority of no kind": {bucket.Config{S3: &bucket.S3{Bucket: "b"}, CA: "x"}, "not PEM"},
	} {
		if _, err := bucket.Open(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
