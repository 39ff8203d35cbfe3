//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"toban.dev/internal/naming"
)

// Instances go up and down with the spec; the volume of a removed one stays or
// goes as storage.whenScaled says, and the rows stay in any case. (The stories of test/api about volumes of instances
// that are too many, and TestAReaderFollowsAndCountsForNothing of test/local touch the same.)
func TestLongScale(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 1))
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS id")

	s.run("scale", "sampledb/shop", "--replicas=3")
	s.ready("shop")
	s.everyInstanceStreams("shop", 2)

	s.run("scale", "sampledb/shop", "--replicas=2")
	s.ready("shop")
	s.pods("shop", 2)
	s.everyInstanceStreams("shop", 1)
	s.claim("shop", 2, true)

	// An instance that comes back finds its old volume, and streams.
	s.sql("shop", "CREATE TABLE meanwhile AS SELECT generate_series(1, 100) AS id")
	s.run("scale", "sampledb/shop", "--replicas=3")
	s.ready("shop")
	s.everyInstanceStreams("shop", 2)
	s.until(func(ctx context.Context) error {
		n, err := s.Kubectl(ctx, "exec", naming.Instance("shop", 2), "--", "psql", "-U", "postgres", "-XAtc",
			"SELECT count(*) FROM meanwhile", "app")
		if err == nil && strings.TrimSpace(n) != "100" {
			err = fmt.Errorf("the standby has %s rows", n)
		}
		return err
	})

	s.patch("shop", `{"instances":1,"storage":{"whenScaled":"Delete"}}`)
	s.ready("shop")
	s.pods("shop", 1)
	s.claim("shop", 1, false)
	s.claim("shop", 2, false)

	if n := s.ask("shop", "SELECT count(*) FROM kept"); n != "1000" {
		t.Errorf("kept has %s rows, want 1000", n)
	}
}

func (s *story) pods(name string, want int) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		pods, err := s.Pods(ctx, name)
		if err == nil && len(pods) != want {
			err = fmt.Errorf("there are %d Pods, want %d", len(pods), want)
		}
		return err
	})
}

func (s *story) claim(name string, ordinal int, want bool) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		there, err := s.Exists(ctx, "pvc/"+naming.Claim(name, ordinal))
		if err == nil && there != want {
			err = fmt.Errorf("the claim of instance %d is there: %v, want %v", ordinal, there, want)
		}
		return err
	})
}
