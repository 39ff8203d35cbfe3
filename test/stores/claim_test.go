package stores

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/test/stores/servers"
)

// names are those of all objects in a bucket.
func names(t *testing.T, b bucket.Bucket) (all []string) {
	t.Helper()
	for o, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.Name)
	}
	return all
}

// A store that ignores conditions replaces what is there, and says that all went well: nothing
// would keep two writers apart.
func TestAStoreThatIgnoresConditionsIsNoneForAnArchive(t *testing.T) {
	owner := format.Owner{UID: "one", Namespace: "n", Name: "main", SystemIdentifier: "1"}
	for name, c := range map[string]struct {
		start func(*testing.T) servers.Server
		// ignore makes the store one that ignores the condition of a request.
		ignore func(servers.Server) func(*http.Request)
	}{
		// The condition is a parameter, which nobody signs here.
		"GCS": {servers.StartGCS, func(servers.Server) func(*http.Request) {
			return func(r *http.Request) {
				query := r.URL.Query()
				query.Del("ifGenerationMatch")
				r.URL.RawQuery = query.Encode()
			}
		}},
		// It is a header that the client signs: so what it is about is taken away before it is looked at.
		"S3": {servers.StartS3, func(s servers.Server) func(*http.Request) {
			return func(r *http.Request) {
				if r.Method == http.MethodPut && r.Header.Get("If-None-Match") == "*" {
					_ = os.Remove(filepath.Join(filepath.Dir(s.Folder), r.URL.Path)) // it need not be there
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := c.start(t)
			faulty := servers.StartFaulty(t, server.URL)
			b, err := bucket.Open(t.Context(), server.At(faulty.URL))
			if err != nil {
				t.Fatal(err)
			}
			faulty.Before(c.ignore(server))
			if err := format.Claim(t.Context(), b, owner); !errors.Is(err, format.ErrReplaces) {
				t.Errorf("it is claimed: %v", err)
			}
			if left := names(t, b); len(left) > 0 {
				t.Errorf("there is %v", left)
			}
			faulty.Before(nil)
			if err := format.Claim(t.Context(), b, owner); err != nil {
				t.Errorf("a store that honours them: %v", err)
			}
			if left := names(t, b); len(left) != 1 || left[0] != format.FileArchive {
				t.Errorf("there is %v", left)
			}
			other := owner
			other.UID = "two"
			if err := format.Claim(t.Context(), b, other); !errors.Is(err, format.ErrTaken) {
				t.Errorf("another's: %v", err)
			}
		})
	}
}
