package servers

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"toban.dev/internal/archive/bucket"
)

// Rotating is a store whose credentials can be changed.
type Rotating struct {
	// Config has the first credentials.
	Config bucket.Config
	// Rotate makes the store refuse the former credentials and take others; Renew writes those into the files.
	Rotate, Renew func()
	// Denied is how many requests the store has refused since; nil where that is not known.
	Denied *atomic.Int64
}

// rewrite replaces the files of a Secret.
func rewrite(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// RotateS3 is an S3 server with two secret keys, one after the other.
func RotateS3(t *testing.T) Rotating {
	t.Helper()
	first := StartS3(t)
	second := startS3(t, filepath.Dir(first.Folder), "another secret of the tests")
	faulty := StartFaulty(t, first.URL)
	config := first.At(faulty.URL)
	denied := &atomic.Int64{}
	return Rotating{
		Config: config, Denied: denied,
		Rotate: func() {
			faulty.Before(func(r *http.Request) {
				r.URL.Host = strings.TrimPrefix(second.URL, "http://")
				denied.Add(1)
			})
		},
		Renew: func() {
			rewrite(t, config.Credentials, map[string]string{"secretAccessKey": "another secret of the tests"})
		},
	}
}

// RotateAzureKey has two account keys, one after the other. What was written under the first is gone afterwards:
// it is another emulator.
func RotateAzureKey(t *testing.T) Rotating {
	t.Helper()
	return rotateAzure(t, func(string, string) map[string]string { return nil })
}

// RotateAzureSAS is the same with tokens that are signed by these keys.
func RotateAzureSAS(t *testing.T) Rotating {
	t.Helper()
	return rotateAzure(t, func(url, key string) map[string]string {
		who, err := container.NewSharedKeyCredential(azureAccount, key)
		if err != nil {
			t.Fatal(err)
		}
		client, err := container.NewClientWithSharedKeyCredential(url+"/"+azureAccount+"/"+bucketName, who, nil)
		if err != nil {
			t.Fatal(err)
		}
		may := sas.ContainerPermissions{Read: true, Write: true, Create: true, List: true, Delete: true, Add: true}
		signed, err := client.GetSASURL(may, time.Now().Add(time.Hour), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(signed, "?")
		return map[string]string{"accountKey": "", "sasToken": token}
	})
}

func rotateAzure(t *testing.T, files func(url, key string) map[string]string) Rotating {
	t.Helper()
	other := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("another ", 8)))
	first, second := startAzure(t, azureKey), startAzure(t, other)
	faulty := StartFaulty(t, first.URL)
	config := first.At(faulty.URL)
	rewrite(t, config.Credentials, files(first.URL, azureKey))
	return Rotating{
		Config: config,
		Rotate: func() {
			faulty.Before(func(r *http.Request) { r.URL.Host = strings.TrimPrefix(second.URL, "http://") })
		},
		Renew: func() {
			renewed := files(second.URL, other)
			if renewed == nil {
				renewed = map[string]string{"accountKey": other}
			}
			rewrite(t, config.Credentials, renewed)
		},
	}
}

// RotateGCS puts a door before the emulator, which knows no credentials itself: it gives tokens for what a service
// account's key has signed, and takes them, as long as the key is the present one.
func RotateGCS(t *testing.T) Rotating {
	t.Helper()
	behind, err := url.Parse(StartGCS(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	d := &googleDoor{proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }, ErrorLog: log.New(io.Discard, "", 0),
	}}
	server := httptest.NewTLSServer(d)
	t.Cleanup(server.Close)
	first := newGoogleKey(t, "first", server.URL)
	d.key.Store(&first)
	config := bucket.Config{
		GCS:         &bucket.GCS{Bucket: bucketName, Endpoint: server.URL},
		Credentials: Secret(t, map[string]string{"credentials.json": first.file}),
		CA:          string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	}
	second := newGoogleKey(t, "second", server.URL)
	return Rotating{
		Config: config,
		Rotate: func() { d.key.Store(&second) },
		Renew:  func() { rewrite(t, config.Credentials, map[string]string{"credentials.json": second.file}) },
	}
}

// googleKey is a service account's key, and the file of it.
type googleKey struct {
	id, file string
	public   *rsa.PublicKey
}

func newGoogleKey(t *testing.T, id, server string) googleKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "test", "client_email": "tester@test.iam.gserviceaccount.com",
		"private_key_id": id, "token_uri": server + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return googleKey{id, string(file), &key.PublicKey}
}

// googleDoor lets in who has a token that the present key was good for.
type googleDoor struct {
	proxy http.Handler
	key   atomic.Pointer[googleKey]
}

func (d *googleDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := d.key.Load()
	switch token := "token of " + key.id; {
	case r.URL.Path == "/token" && key.signed(r.FormValue("assertion")):
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token": %q, "token_type": "Bearer", "expires_in": 3600}`, token)
	case r.URL.Path == "/token":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}`)
	case r.Header.Get("Authorization") != "Bearer "+token:
		http.Error(w, `{"error": {"code": 401, "message": "Invalid Credentials"}}`, http.StatusUnauthorized)
	default:
		d.proxy.ServeHTTP(w, r)
	}
}

// signed says that a JWT (RFC 7519) is by the key.
func (k googleKey) signed(assertion string) bool {
	text, signature, ok := cutLast(assertion, ".")
	if !ok {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(text))
	return err == nil && rsa.VerifyPKCS1v15(k.public, crypto.SHA256, sum[:], raw) == nil
}

func cutLast(text, at string) (before, after string, found bool) {
	i := strings.LastIndex(text, at)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(at):], true
}
