//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"toban.dev/test/outside"
	"toban.dev/test/releases"

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
	older, newer, err := releases.Minors(t.Context())
	must(t, err)
	if older == newer {
		t.Logf("Debian has no other minor version now than %s", newer)
	}
	for name, c := range map[string]struct {
		manifest string
		bound    outside.Bound
	}{
		"3": {sampleDB("shop", 3, "image: "+minorImage+"3"), outside.HandsOver},
		"1": {bare("shop", 1, "image: "+minorImage+"1"), outside.Restarts},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.takesOverAMinor(c.manifest, minorImage+name, older, newer, c.bound)
		})
	}
}

// minorImage begins the names of the images that become another one. Each story has one of its own.
const minorImage = "docker.io/library/postgres-minor:17-"

// takesOverAMinor makes a SampleDB of the older of two minor versions, updates it, and takes it back.
func (s *story) takesOverAMinor(manifest, image, older, newer string, bound outside.Bound) {
	s.Helper()
	must(s.T, releases.Load(s.ctx, image, releases.OlderMinor))
	s.apply(manifest)
	s.ready("shop")
	former := s.runs("shop", "")
	s.expectVersion("shop", older)
	for _, pod := range strings.Fields(s.run("get", "pods", "-l", naming.LabelComponent+"="+naming.ComponentInstance,
		"-o", "jsonpath={.items[*].spec.containers[0].image}")) {
		if pod != image {
			s.Errorf("a Pod was made anew, from %s, when the image went on record", pod)
		}
	}

	must(s.T, releases.Load(s.ctx, image, releases.NewerMinor))
	check := s.writing("shop")
	s.run("annotate", "sampledb", "shop", naming.AnnotationUpdate+"=now")
	newest := s.runs("shop", former)
	s.condition("shop", v1.ConditionUpToDate, "True", v1.ReasonUpToDate)
	db := s.ready("shop")
	for _, i := range db.Status.InstanceStatuses {
		if i.ImageID != newest || db.Status.Update != nil {
			s.Errorf("%s runs %s, want %s; left to do: %+v", i.Name, i.ImageID, newest, db.Status.Update)
		}
	}
	check(bound)
	s.expectVersion("shop", newer)

	s.patch("shop", `{"image":"`+former+`"}`)
	s.ready("shop")
	s.expectVersion("shop", older)
}

// runs waits until another image than a former one is on record, and all instances are made from it.
func (s *story) runs(name, former string) (image string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err == nil {
			image, err = outside.RunsAnother(db, former)
		}
		return err
	})
	return image
}

// expectVersion expects PostgreSQL to say that it is a version.
func (s *story) expectVersion(name, want string) {
	s.Helper()
	if got := s.ask(name, "SHOW server_version"); got != want {
		s.Errorf("%s runs %s, want %s", name, got, want)
	}
}
