package bucket

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A name that is legal is one in every store: it is its own path, below the folder, and none of the folder's own.
func FuzzObjectNames(f *testing.F) {
	for _, name := range []string{"a/b", "..", "a/../b", ".incoming/x", "/a", "a//b", "a\\b", "a\x00",
		strings.Repeat("x", 256)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkName(name) != nil {
			return
		}
		legal := filepath.IsLocal(name) && path.Clean(name) == name && !strings.HasPrefix(name, ".")
		if !legal || checkPrefix(name) != nil {
			t.Errorf("%q is taken for a name", name)
		}
	})
}

// Whatever a client asks of the server of a volume: what is not below its own prefix is neither shown nor changed.
func FuzzServer(f *testing.F) {
	const secret = "what another has"
	for method, target := range map[string]string{"GET": "/objects/other/x", "PUT": "/objects/mine/../other/x",
		"POST": "/delete", "HEAD": "/objects/mine/x"} {
		f.Add(method, target, []byte(`["mine/x","other/x"]`))
	}
	f.Add("GET", "/list?prefix=mine/&after=../other", []byte(nil))
	f.Add("GET", "/list?prefix=&after=", []byte(nil))
	f.Add("GET", "/objects/mine/%2e%2e/other/x", []byte(nil))
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		to, err := url.Parse(target)
		if err != nil {
			return
		}
		folder := t.TempDir()
		for _, name := range []string{"mine/x", "other/x"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(secret), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(filepath.Join(folder, "mine/x")); err != nil {
			t.Fatal(err)
		}
		server := NewServer(OpenFolder(folder), func(_ *x509.Certificate, prefix string, _ bool) bool {
			return strings.HasPrefix(prefix, "mine/")
		}, nil)
		answer := httptest.NewRecorder()
		server.Handler.ServeHTTP(answer, &http.Request{
			Method: method, URL: to, Host: "archive", Header: http.Header{}, ContentLength: int64(len(body)),
			Body: io.NopCloser(bytes.NewReader(body)),
			TLS:  &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}},
		})
		if strings.Contains(answer.Body.String(), secret) || strings.Contains(answer.Body.String(), `"other/x"`) &&
			answer.Code == http.StatusOK {
			t.Errorf("%s %s shows %q", method, target, answer.Body)
		}
		if kept, err := os.ReadFile(filepath.Join(folder, "other/x")); err != nil || string(kept) != secret {
			t.Errorf("%s %s with %q has changed another's object: %q, %v", method, target, body, kept, err)
		}
	})
}

// lines is the answer of a server, for who reads a listing.
type lines []byte

func (l lines) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(l))}, nil
}

// A listing that was cut off is an error, and never a shorter listing: what is not listed would count as lost.
func FuzzListing(f *testing.F) {
	const whole = `{"object":{"Name":"a","Size":1}}` + "\n" + `{"last":{"next":""}}` + "\n"
	for _, text := range []string{whole, whole[:40], "{}", "null", `{"last":null}`, `{"last":{"next":"a"}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		store := volumeStore{&http.Client{Transport: lines(text)}, &url.URL{Scheme: "https", Host: "archive"}}
		objects, _, err := store.page(t.Context(), "", "", "")
		if err == nil && !bytes.Contains(bytes.ToLower(text), []byte(`last`)) && !bytes.ContainsRune(text, '\\') {
			t.Errorf("%q is a whole listing of %v", text, objects)
		}
	})
}
