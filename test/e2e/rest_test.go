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

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
)

// A SampleDB that is ready costs the API server no write: neither the operator nor the agents write anything about it.
// The API server's own audit log says so. On a machine that other stories keep busy, a leader can lose its majority for
// a moment, which its Lease then records: so there are several looks, and one of them must see nothing. What is written
// again and again is in each.
func TestAtRestNothingIsWritten(t *testing.T) { nothingIsWritten(begin(t), 30*time.Second, 5, "") }

// Also not by what is done once in some minutes. TestAtRestNothingIsWritten looks for half a minute. A machine that
// something else keeps busy is said in the condition OnTime: so there is a second look here too.
func TestLongAtRestNothingIsWritten(t *testing.T) {
	nothingIsWritten(beginAlone(t), 5*time.Minute, 2, v1.ConditionOnTime)
}

// nothingIsWritten looks for so long, and so often at most: again only where an excuse, a condition, has turned
// meanwhile.
func nothingIsWritten(s *story, quiet time.Duration, looks int, excuse string) {
	s.Helper()
	path := os.Getenv("TOBAN_AUDIT_LOG")
	if path == "" {
		s.Fatal("TOBAN_AUDIT_LOG must name the API server's audit log, as hack/e2e.sh sets it")
	}
	// none is due while it is looked at.
	s.apply(sampleDB("shop", 3, "backup: {schedule: none, verification: {schedule: none}}"))
	s.ready("shop")
	s.backedUp("shop")
	// What follows from getting ready (events, a last status) may still come.
	s.until(func(context.Context) error {
		if last := lastWrite(writes(s.T, path, string(s.Namespace))); time.Since(last) < 10*time.Second {
			return fmt.Errorf("there was a write %s ago", time.Since(last))
		}
		return nil
	})
	for look := 1; ; look++ {
		from := time.Now()
		time.Sleep(quiet) // the measurement itself
		seen := writesSince(s.T, path, string(s.Namespace), from)
		switch {
		case len(seen) == 0:
			return
		case look == looks || excuse != "" && !s.turnedSince("shop", excuse, from):
			s.Errorf("at the look %d of %d there were %d writes in %s:\n%s", look, looks, len(seen), quiet,
				strings.Join(seen, "\n"))
			return
		}
		s.Logf("%d writes in %s:\n%s", len(seen), quiet, strings.Join(seen, "\n"))
	}
}

// turnedSince says whether a condition of a SampleDB has turned since a time.
func (s *story) turnedSince(name, condition string, from time.Time) bool {
	s.Helper()
	db, err := s.SampleDB(s.ctx, name)
	must(s.T, err)
	c := meta.FindStatusCondition(db.Status.Conditions, condition)
	return c != nil && !c.LastTransitionTime.Time.Before(from.Truncate(time.Second))
}

// writesSince says which writes there were since a time.
func writesSince(t *testing.T, path, namespace string, from time.Time) (seen []string) {
	t.Helper()
	for _, w := range writes(t, path, namespace) {
		if w.At.After(from) {
			seen = append(seen, fmt.Sprintf("%s %s by %s", w.Verb, w.URI, w.User.Name))
		}
	}
	return seen
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
