//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// quiet is how long nothing may be written.
const quiet = time.Minute

// A SampleDB that is ready costs the API server no write: neither the operator nor the
// agents write anything about it. The API server's own audit log says so. It runs alone: on a machine that other
// stories keep busy, a leader can lose its majority for a moment, which its Lease then records.
func TestAtRestNothingIsWritten(t *testing.T) {
	path := os.Getenv("TOBAN_AUDIT_LOG")
	if path == "" {
		t.Fatal("TOBAN_AUDIT_LOG must name the API server's audit log, as hack/e2e.sh sets it")
	}
	s := beginAlone(t)
	// none is due in the minute that is looked at.
	s.apply(sampleDB("shop", 3, "backup: {schedule: none, verification: {schedule: none}}"))
	s.ready("shop")
	s.backedUp("shop")
	// What follows from getting ready (events, a last status) may still come.
	s.until(func(context.Context) error {
		if last := lastWrite(writes(t, path, string(s.Namespace))); time.Since(last) < 10*time.Second {
			return fmt.Errorf("there was a write %s ago", time.Since(last))
		}
		return nil
	})
	from := time.Now()
	time.Sleep(quiet) // the measurement itself
	var seen []string
	for _, w := range writes(t, path, string(s.Namespace)) {
		if w.At.After(from) {
			seen = append(seen, fmt.Sprintf("%s %s by %s", w.Verb, w.URI, w.User.Name))
		}
	}
	if len(seen) > 0 {
		t.Errorf("%d writes in %s:\n%s", len(seen), quiet, strings.Join(seen, "\n"))
	}
}

// request is what the audit log says of a request.
type request struct {
	Stage string    `json:"stage"`
	Verb  string    `json:"verb"`
	URI   string    `json:"requestURI"`
	At    time.Time `json:"requestReceivedTimestamp"`
	User  struct {
		Name string `json:"username"`
	} `json:"user"`
	Object struct {
		Namespace string `json:"namespace"`
	} `json:"objectRef"`
}

// writes are those of the operator about a namespace, and all of the
// namespace's own service accounts.
func writes(t *testing.T, path, namespace string) []request {
	t.Helper()
	file, err := os.Open(path)
	must(t, err)
	defer file.Close()
	var found []request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), namespace) {
			continue
		}
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // the last line, still being written; it is read the next time
		}
		ours := strings.HasPrefix(r.User.Name, "system:serviceaccount:"+namespace+":") ||
			strings.HasPrefix(r.User.Name, "system:serviceaccount:toban-system:") && r.Object.Namespace == namespace
		if ours && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) {
			found = append(found, r)
		}
	}
	must(t, lines.Err())
	return found
}

func lastWrite(all []request) time.Time {
	var last time.Time
	for _, r := range all {
		if r.At.After(last) {
			last = r.At
		}
	}
	return last
}
