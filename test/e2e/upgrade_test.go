//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"toban.dev/test/outside"

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

// A newer minor version is taken over on request, under load: all instances run one digest before and after, the
// primary hands over once, and nothing acknowledged is lost. The way back is the former image by its digest. Debian's
// stable archive without its security updates has the older one; where both have the same, the image is another one.
func TestLongAMinorUpdate(t *testing.T) {
	s := begin(t)
	const image = "docker.io/library/postgres-minor:17"
	s.load(image, "postgres:17-stable")
	s.apply(sampleDB("shop", 3, "image: "+image))
	s.ready("shop")
	former := s.runs("shop", "")
	older := s.version("shop")
	for _, pod := range strings.Fields(s.run("get", "pods", "-l", naming.LabelComponent+"="+naming.ComponentInstance,
		"-o", "jsonpath={.items[*].spec.containers[0].image}")) {
		if pod != image {
			t.Errorf("a Pod was made anew, from %s, when the image went on record", pod)
		}
	}

	s.load(image, "postgres:17")
	writer, err := outside.StartWriter(s.ctx, s.access("shop", naming.ReadWriteService("shop")))
	must(t, err)
	defer writer.Stop()
	s.rowsAtLeast("shop", 50)
	s.run("annotate", "sampledb", "shop", naming.AnnotationUpdate+"=now")
	newest := s.runs("shop", former)
	s.condition("shop", v1.ConditionUpToDate, "True", v1.ReasonUpToDate)
	db := s.ready("shop")
	for _, i := range db.Status.InstanceStatuses {
		if i.ImageID != newest || db.Status.Update != nil {
			t.Errorf("%s runs %s, want %s; left to do: %+v", i.Name, i.ImageID, newest, db.Status.Update)
		}
	}
	s.rowsAtLeast("shop", s.count("shop")+50)
	writer.Stop()
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), writer.Acknowledged(), lost[0])
	}
	t.Logf("from %s to %s: no write for %s; %d rows acknowledged",
		older, s.version("shop"), writer.Outage(), writer.Acknowledged())

	s.patch("shop", `{"image":"`+former+`"}`)
	s.ready("shop")
	if back := s.version("shop"); back != older {
		t.Errorf("after the way back %s runs, and before the update %s", back, older)
	}
}

// load brings an image of the local cluster to its nodes, under another name.
func (s *story) load(name, image string) {
	s.Helper()
	s.localkube("load", "--as", name, image)
}

// runs waits until another image than a former one is on record, and all instances are made from it.
func (s *story) runs(name, former string) (image string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		if db.Status.Image == nil || db.Status.Image.Runs == "" || db.Status.Image.Runs == former ||
			db.Status.Update != nil {
			return fmt.Errorf("on record is %+v, and %+v is left", db.Status.Image, db.Status.Update)
		}
		image = db.Status.Image.Runs
		return nil
	})
	return image
}

// version is what PostgreSQL says that it is.
func (s *story) version(name string) string {
	s.Helper()
	return s.ask(name, "SHOW server_version")
}
