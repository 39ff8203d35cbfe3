//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// leftovers are what a SampleDB leaves that was deleted with --cascade=orphan, but for its volumes (docs/backup.md).
const leftovers = "statefulset,deployment,job,service,configmap,secret,serviceaccount,role,rolebinding," +
	"poddisruptionbudget,networkpolicy,lease,controllerrevision"

// Who deletes a SampleDB alone keeps its database running, and can have it taken over again.
func TestADatabaseIsLeftRunningAndTakenOverAgain(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 2, "deletionPolicy: Delete"))
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
	before := s.lives("shop")
	s.run("delete", "sampledb", "shop", "--cascade=orphan", "--timeout=1m")
	if after := s.lives("shop"); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	// The Secrets shop-app and shop-ca go with their revisions, which go with nothing now.
	for _, what := range []string{
		"statefulset/shop", "pvc/data-shop-0", "pvc/data-shop-1",
		"controllerrevision/shop-ca-0", "controllerrevision/shop-app-0",
	} {
		if owners := s.run("get", what, "-o", "jsonpath={.metadata.ownerReferences}"); owners != "" {
			t.Errorf("%s belongs to %s", what, owners)
		}
	}
	s.sql("shop", "INSERT INTO kept VALUES (101)")
	s.everyInstanceStreams("shop", 1)

	s.run("delete", leftovers, "-l", "toban.dev/sampledb=shop", "--timeout=2m")
	s.until(func(context.Context) error {
		if out := s.things(); strings.Contains(out, "pod/") {
			return fmt.Errorf("there is still\n%s", out)
		}
		return nil
	})
	s.claim("shop", 0, true)
	s.claim("shop", 1, true)
	s.apply(sampleDB("shop", 2, "deletionPolicy: Delete"))
	s.ready("shop")
	if n := s.ask("shop", "SELECT count(*) FROM kept"); n != "101" {
		t.Errorf("kept has %s rows, want 101", n)
	}
	s.run("delete", "sampledb", "shop", "--timeout=2m")
	s.claim("shop", 0, false)
}
