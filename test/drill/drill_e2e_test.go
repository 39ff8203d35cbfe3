//go:build e2e

package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The faults that matter most, once each, on the cluster of make up. What must never be is asserted, that all gets
// whole again, and that nobody was without writes for longer than the fault's bound (bounds.go), which is generous,
// because the machine is everybody's.
func TestDrill(t *testing.T) {
	o := options{
		rounds: 1, localkube: "../../bin/localkube", histories: "../../.local",
		hold: 60 * time.Second, lossy: 30 * time.Second, patience: 4 * time.Minute,
	}
	chosen, err := choose(faults(o), shortDrill, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	d, err := begin(ctx, o)
	if d != nil {
		t.Cleanup(func() { d.end(ctx) })
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range chosen {
		t.Run(f.name, func(t *testing.T) {
			r, err := d.round(ctx, f)
			d.tell(r)
			if err != nil {
				t.Error(errors.Join(err, d.renew(ctx)))
			}
			for _, wrong := range r.wrongs() {
				t.Error(wrong)
			}
			if r.Needless > 0 || r.Missing > 0 {
				t.Errorf("the primary changed %d times: from %d to %d were to be expected", r.Changes, f.least, f.most)
			}
			if r.Acked == 0 {
				t.Error("no write was ever acknowledged")
			}
		})
	}
}
