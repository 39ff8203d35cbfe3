//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"toban.dev/test/outside"
)

// The primary's Pod is deleted while rows are written: it comes back, and every
// row of which the writer was told is there.
func TestDeletedPodLosesNoRow(t *testing.T) {
	cases := map[string][]string{
		"politely": nil,
		"by force": {"--grace-period=0", "--force"},
	}
	for name, flags := range cases {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.apply(sampleDB("shop", 2))
			db := s.ready("shop")
			writer, err := outside.StartWriter(s.ctx, s.access("shop", "shop"))
			must(t, err)
			defer writer.Stop()
			s.rowsAtLeast("shop", 50)

			old := s.uid(db.Status.Primary)
			s.run(append([]string{"delete", "pod", db.Status.Primary, "--wait=false"}, flags...)...)
			s.until(func(context.Context) error {
				if now := s.uid(db.Status.Primary); now == "" || now == old {
					return fmt.Errorf("the Pod %s has not come back", db.Status.Primary)
				}
				return nil
			})
			s.ready("shop")
			before := s.count("shop")
			s.rowsAtLeast("shop", before+50)
			writer.Stop()
			lost, err := writer.Lost(s.ctx)
			must(t, err)
			if len(lost) > 0 {
				t.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), writer.Acknowledged(), lost[0])
			}
			t.Logf("no write for %s; %d rows acknowledged",
				writer.Outage().Round(10*time.Millisecond), writer.Acknowledged())
		})
	}
}

// uid of a Pod, empty where there is none.
func (s *story) uid(pod string) string {
	s.Helper()
	return s.run("get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
}

// count is the number of the writer's rows.
func (s *story) count(name string) int {
	s.Helper()
	var n int
	s.until(func(ctx context.Context) error {
		text, err := s.access(name, name).Ask(ctx, "SELECT count(*) FROM acknowledged")
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
	s.until(func(context.Context) error {
		if got := s.count(name); got < n {
			return fmt.Errorf("%d rows, waiting for %d", got, n)
		}
		return nil
	})
}
