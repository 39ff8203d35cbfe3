//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
)

// kinds are all that a SampleDB is made of.
const kinds = "statefulsets,pods,jobs,services,endpointslices,configmaps,secrets,persistentvolumeclaims," +
	"serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,sampledbs"

// What becomes of a database when its SampleDB is deleted, one way after the other: who deletes the SampleDB alone
// keeps the database running, and can have it taken over again; with deletionPolicy Retain the volumes stay, and a new
// SampleDB of the same name has the old rows; with Delete nothing is left.
func TestDeletion(t *testing.T) {
	s := begin(t)
	before := s.things()
	s.apply(bare("shop", 2, "deletionPolicy: Delete"))
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
	s.isLeftRunning("shop")

	s.apply(bare("shop", 2, "deletionPolicy: Retain"))
	s.ready("shop")
	s.hasKept("shop", "101")
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

	s.apply(bare("shop", 2, "deletionPolicy: Retain"))
	s.ready("shop")
	s.hasKept("shop", "101")
	s.patch("shop", `{"deletionPolicy":"Delete"}`)
	s.ready("shop")
	s.run("delete", "sampledb", "shop", "--timeout=2m")
	s.until(func(context.Context) error {
		if now := s.things(); now != before {
			return fmt.Errorf("there is still\n%s\nbefore there was\n%s", now, before)
		}
		return nil
	})
}

// hasKept compares the number of rows in the table kept.
func (s *story) hasKept(name, rows string) {
	s.Helper()
	if n := s.ask(name, "SELECT count(*) FROM kept"); n != rows {
		s.Errorf("kept has %s rows, want %s", n, rows)
	}
}

// things are what is in the namespace, but for what Kubernetes itself puts there.
func (s *story) things() string {
	s.Helper()
	return s.run("get", kinds, "-o", "name", "--ignore-not-found")
}
