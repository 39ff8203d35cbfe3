package stop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"toban.dev/internal/change/steps"
)

// What is decided of each of many views, in one sum: who changes the table for another reason than to change what is
// decided sees here that something else changes.
func TestDecisionsAreAsTheyWere(t *testing.T) {
	const views, want = 400_000, "2ef2e712aea2"
	d := rand.New(rand.NewPCG(20261128, 7))
	likely := func(n int) bool { return d.IntN(n) > 0 }
	text := func(all ...string) string { return all[d.IntN(len(all))] }
	at := time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	got := sha256.New()
	for range views {
		v := View{
			Now: at, Wanted: likely(4), Deleted: !likely(3), Sleeps: likely(2), Held: likely(2),
			Step:  steps.Phase(text("", "Waiting", "Closing", "Proving", "Stopping", "Stopped", "Starting")),
			Since: at.Add(-Patience + time.Duration(d.IntN(3)-1)), Busy: text("", "", "a restore"), Data: likely(4),
			Pods: d.IntN(3), Primary: text("db-0", "db-0", "db-1", ""), Closed: likely(3), AllClosed: likely(2),
			Proves: text("db-0", ""), Proved: text("0/5", "", "0/6"), End: text("0/5", "0/5", "0/6", ""),
			Archived: likely(3), Archive: "up to 0/4",
		}
		if likely(2) {
			v.Until = at.Add(time.Hour)
		}
		if !likely(3) {
			v.Behind = []string{"db-1", "db-2"}[:1+d.IntN(2)]
		}
		o := Decide(v)
		fmt.Fprintln(got, o.Phase, "|", o.Why, "|", o.Says)
	}
	if sum := hex.EncodeToString(got.Sum(nil)[:6]); sum != want {
		t.Errorf("other decisions: %s, not %s", sum, want)
	}
}
