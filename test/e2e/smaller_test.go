//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// Three instances get smaller volumes in another class while clients write: each is copied onto a new one, in its turn,
// and no acknowledged row is lost. An edit that can't be done touches nothing before. (test/api has the order and what
// keeps a volume from being made anew; TestLongVolumesGrowByThemselves and the story of the verbs touch the same
// volumes.)
func TestLongSmallerVolumesInAnotherClass(t *testing.T) {
	s := begin(t)
	class := s.anotherClass()
	s.apply(strings.Replace(bare("shop", 3), "{size: 512Mi}", "{size: 2Gi}", 1))
	before := s.ready("shop")
	s.sql("shop", "CREATE TABLE filled AS SELECT repeat(md5(n::text), 32) AS words FROM generate_series(1, 30000) n")
	volumes := s.volumes("shop", 3)

	s.patch("shop", `{"storage":{"size":"256Mi"}}`)
	message := s.condition("shop", v1.ConditionStorageReady, "False", v1.ReasonDataDoesNotFit)
	t.Logf("it says: %s", message)
	s.patch("shop", `{"storage":{"size":"2Gi"}}`)
	s.condition("shop", v1.ConditionStorageReady, "True", v1.ReasonBound)
	if now := s.volumes("shop", 3); fmt.Sprint(now) != fmt.Sprint(volumes) {
		t.Errorf("the volumes are %v, before %v", now, volumes)
	}

	writer, err := outside.StartWriter(s.ctx, s.access("shop", "shop"))
	must(t, err)
	t.Cleanup(writer.Stop)
	s.rowsAtLeast("shop", 50)
	begun := time.Now()
	s.patch("shop", `{"storage":{"size":"1Gi","storageClassName":"`+class+`"}}`)
	said := s.watchesVolumes("shop", 3, "1Gi", class)
	db := s.ready("shop")
	t.Logf("three instances with a database of %s are on new volumes after %s", s.ask("shop",
		"SELECT pg_size_pretty(pg_database_size(current_database()))"), time.Since(begun).Round(time.Second))
	s.rowsAtLeast("shop", s.count("shop")+50)
	writer.Stop()
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("%d acknowledged rows are lost, from %d", len(lost), lost[0])
	}
	s.inTime(writer, outside.HandsOver) // once, after the standbys
	t.Logf("the condition has said:\n%s", strings.Join(said, "\n"))
	if got := s.ask("shop", "SELECT count(*)::text FROM filled"); got != "30000" {
		t.Errorf("%s of 30000 rows are there", got)
	}
	if db.Status.Primary == before.Status.Primary || db.Status.Term == before.Status.Term {
		t.Errorf("%s leads in term %d, and before %s did in term %d", db.Status.Primary, db.Status.Term,
			before.Status.Primary, before.Status.Term)
	}
	s.condition("shop", v1.ConditionDurable, "True", v1.ReasonDurable)
}

// anotherClass is a StorageClass as the cluster's default one.
func (s *story) anotherClass() string {
	s.Helper()
	provisioner, err := s.Kubectl(s.ctx, "get", "storageclass", "-o", "jsonpath={.items[0].provisioner}")
	must(s.T, err)
	name := "other-" + string(s.Namespace)
	s.apply(fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\nprovisioner: %s\n"+
		"volumeBindingMode: WaitForFirstConsumer\nallowVolumeExpansion: true\n", name, provisioner))
	s.Cleanup(func() { _, _ = s.Kubectl(context.Background(), "delete", "storageclass", name) })
	return name
}

// volumes are those of the instances, by ordinal.
func (s *story) volumes(name string, instances int) (out []string) {
	s.Helper()
	for ordinal := range instances {
		var claim corev1.PersistentVolumeClaim
		must(s.T, s.Get(s.ctx, "pvc/"+naming.Claim(name, ordinal), &claim))
		out = append(out, claim.Spec.VolumeName)
	}
	return out
}

// watchesVolumes waits until all volumes have a size and a class, and returns what StorageReady has said meanwhile.
func (s *story) watchesVolumes(name string, instances int, size, class string) (said []string) {
	s.Helper()
	err := outside.Until(s.ctx, 3*patience, func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		for _, c := range db.Status.Conditions {
			line := c.Reason + ": " + c.Message
			if c.Type == v1.ConditionStorageReady && (len(said) == 0 || said[len(said)-1] != line) {
				said = append(said, line)
			}
		}
		for ordinal := range instances {
			var claim corev1.PersistentVolumeClaim
			if err := s.Get(ctx, "pvc/"+naming.Claim(name, ordinal), &claim); err != nil {
				return err
			}
			has := claim.Status.Capacity[corev1.ResourceStorage]
			if has.String() != size || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != class {
				return fmt.Errorf("volume %s has %s: %s", claim.Name, has.String(), strings.Join(said, "\n"))
			}
		}
		return nil
	})
	must(s.T, err)
	return said
}
