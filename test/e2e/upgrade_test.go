//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// What is in the image is looked into when somebody asks for it, and compared with what runs. The local cluster has no
// registry, so the image is that of a node, and the status says so.
func TestTheImageIsLookedInto(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 1, "backup: {none: true}"))
	s.ready("shop")
	s.condition("shop", v1.ConditionUpToDate, "Unknown", v1.ReasonNotLooked)
	s.run("annotate", "sampledb", "shop", naming.AnnotationLookForUpdates+"=now")
	s.condition("shop", v1.ConditionUpToDate, "True", v1.ReasonUpToDate)
	db, err := s.SampleDB(s.ctx, "shop")
	must(t, err)
	image := db.Status.Image
	if image == nil || image.Version != db.Status.Version || !strings.HasPrefix(image.CLibrary, "glibc ") ||
		len(image.Extensions) == 0 || image.Registry == "" || image.LookedAt == nil {
		t.Errorf("the status has %+v", image)
	}
	if i := db.Status.InstanceStatuses[0]; i.Version != db.Status.Version || i.ImageID == "" {
		t.Errorf("the instance has %+v", i)
	}
	s.until(func(ctx context.Context) error {
		left, err := s.Kubectl(ctx, "get", "jobs,pods", "-o", "name",
			"-l", naming.LabelComponent+"="+naming.ComponentImage)
		if err == nil && left != "" {
			err = fmt.Errorf("these are left: %s", left)
		}
		return err
	})
}
