//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"toban.dev/internal/naming"
)

// kinds are all that a SampleDB is made of.
const kinds = "statefulsets,pods,jobs,services,endpointslices,configmaps,secrets,persistentvolumeclaims," +
	"serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,sampledbs"

// Nothing is left of a deleted SampleDB that was to leave nothing.
func TestDeletionCleansUp(t *testing.T) {
	s := begin(t)
	before := s.things()
	s.apply(sampleDB("shop", 2, "backup: {none: true}", "deletionPolicy: Delete"))
	s.ready("shop")
	s.run("delete", "sampledb", "shop", "--timeout=2m")
	s.until(func(context.Context) error {
		if now := s.things(); now != before {
			return fmt.Errorf("there is still\n%s\nbefore there was\n%s", now, before)
		}
		return nil
	})
}

// With deletionPolicy Retain the volumes stay, and a new SampleDB of the same
// name has the old rows.
func TestRetainedVolumesAreFoundAgain(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 2, "deletionPolicy: Retain"))
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
	s.run("delete", "sampledb", "shop", "--timeout=2m")
	s.until(func(ctx context.Context) error {
		pods, err := s.Pods(ctx, "shop")
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("there is still the Pod %s", pods[0].Name)
		}
		return err
	})
	s.claim("shop", 0, true)
	s.claim("shop", 1, true)
	s.apply(sampleDB("shop", 2, "deletionPolicy: Retain"))
	s.ready("shop")
	if n := s.ask("shop", "SELECT count(*) FROM kept"); n != "100" {
		t.Errorf("kept has %s rows, want 100", n)
	}
	s.patch("shop", `{"deletionPolicy":"Delete"}`)
	s.ready("shop")
	s.run("delete", "sampledb", "shop", "--timeout=2m")
	s.claim("shop", 0, false)
}

// things are what is in the namespace, but for what Kubernetes itself puts there.
func (s *story) things() string {
	s.Helper()
	return s.run("get", kinds, "-o", "name", "--ignore-not-found")
}

// One name at its longest.
func TestTheLongestName(t *testing.T) {
	s := begin(t)
	name := strings.Repeat("a", naming.MaxName)
	s.apply(sampleDB(name, 1))
	s.ready(name)
	if got := s.ask(name, "SELECT 1"); got != "1" {
		t.Errorf("it answers %s", got)
	}
}
