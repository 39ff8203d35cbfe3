//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	"toban.dev/test/outside"
)

// The primary's Pod is deleted while rows are written, in one way and then in another: it comes back, and every row of
// which the writer was told is there.
func TestDeletedPodLosesNoRow(t *testing.T) {
	all := begin(t)
	all.apply(sampleDB("shop", 2))
	for name, c := range map[string]struct {
		flags []string
		bound outside.Bound
	}{
		"politely": {nil, outside.HandsOver},
		"by force": {[]string{"--grace-period=0", "--force"}, outside.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{T: t, Namespace: all.Namespace, ctx: all.ctx}
			db := s.ready("shop")
			check := s.writing("shop")
			old := s.uid(db.Status.Primary)
			s.run(append([]string{"delete", "pod", db.Status.Primary, "--wait=false"}, c.flags...)...)
			s.until(func(context.Context) error {
				if now := s.uid(db.Status.Primary); now == "" || now == old {
					return fmt.Errorf("the Pod %s has not come back", db.Status.Primary)
				}
				return nil
			})
			s.ready("shop")
			check(c.bound)
		})
	}
}

// uid of a Pod, empty where there is none.
func (s *story) uid(pod string) string {
	s.Helper()
	return s.run("get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
}

// writersTable is the one that a Writer fills.
const writersTable = "acknowledged"

// count is the number of the writer's rows.
func (s *story) count(name string) int {
	s.Helper()
	return s.countIn(name, writersTable)
}

// countIn is the number of a table's rows.
func (s *story) countIn(name, table string) int {
	s.Helper()
	var n int
	s.until(func(ctx context.Context) error {
		text, err := s.access(name, name).Ask(ctx, "SELECT count(*) FROM "+table)
		if err != nil {
			return err
		}
		_, err = fmt.Sscan(text, &n)
		return err
	})
	return n
}

func (s *story) rowsAtLeast(name string, n int) {
	s.Helper()
	s.atLeastIn(name, writersTable, n)
}

// atLeastIn waits until there are so many rows in a table.
func (s *story) atLeastIn(name, table string, n int) {
	s.Helper()
	s.until(func(context.Context) error {
		if got := s.countIn(name, table); got < n {
			return fmt.Errorf("%d rows in %s, waiting for %d", got, table, n)
		}
		return nil
	})
}
