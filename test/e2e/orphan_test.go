//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"

	"toban.dev/internal/naming"
)

// leftovers are what a SampleDB leaves that was deleted with --cascade=orphan, but for its volumes (docs/backup.md).
const leftovers = "statefulset,deployment,job,service,configmap,secret,serviceaccount,role,rolebinding," +
	"poddisruptionbudget,networkpolicy,lease,controllerrevision"

// isLeftRunning deletes a SampleDB alone, and then what else it has left, but for the volumes.
func (s *story) isLeftRunning(name string) {
	s.Helper()
	before := s.lives(name)
	s.run("delete", "sampledb", name, "--cascade=orphan", "--timeout=1m")
	if after := s.lives(name); after != before {
		s.Errorf("before:\n%safter:\n%s", before, after)
	}
	// The Secrets NAME-app and NAME-ca go with their revisions, which go with nothing now.
	for _, what := range []string{
		"statefulset/" + name, "pvc/" + naming.Claim(name, 0), "pvc/" + naming.Claim(name, 1),
		"controllerrevision/" + s.revisionOf(naming.AuthoritySecret(name)),
		"controllerrevision/" + s.revisionOf(naming.AppSecret(name)),
	} {
		if owners := s.run("get", what, "-o", "jsonpath={.metadata.ownerReferences}"); owners != "" {
			s.Errorf("%s belongs to %s", what, owners)
		}
	}
	s.sql(name, "INSERT INTO kept VALUES (101)")
	s.everyInstanceStreams(name, 1)

	s.run("delete", leftovers, "-l", "toban.dev/sampledb="+name, "--timeout=2m")
	s.until(func(context.Context) error {
		if out := s.things(); strings.Contains(out, "pod/") {
			return fmt.Errorf("there is still\n%s", out)
		}
		return nil
	})
	s.claim(name, 0, true)
	s.claim(name, 1, true)
}

// revisionOf is the ControllerRevision that a Secret goes with.
func (s *story) revisionOf(secret string) string {
	s.Helper()
	return s.run("get", "secret/"+secret, "-o", "jsonpath={.metadata.ownerReferences[0].name}")
}
