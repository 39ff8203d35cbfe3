//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Volumes grow while the servers run; they don't shrink.
func TestStorageGrows(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 2))
	db := s.ready("shop")
	before := s.startTime(db.Status.Primary)
	s.patch("shop", `{"storage":{"size":"768Mi"}}`)
	s.condition("shop", v1.ConditionStorageReady, "True", v1.ReasonBound)
	for ordinal := range 2 {
		s.until(func(ctx context.Context) error {
			var claim corev1.PersistentVolumeClaim
			err := s.Get(ctx, "pvc/"+naming.Claim("shop", ordinal), &claim)
			if size := claim.Status.Capacity[corev1.ResourceStorage]; err == nil && size.String() != "768Mi" {
				err = fmt.Errorf("the volume of instance %d has %s", ordinal, size.String())
			}
			return err
		})
	}
	s.ready("shop")
	if now := s.startTime(db.Status.Primary); now != before {
		t.Errorf("the primary restarted (%s, before %s) for a larger volume", now, before)
	}
	_, err := s.Kubectl(s.ctx, "patch", "sampledb", "shop", "--type=merge",
		"-p", `{"spec":{"storage":{"size":"512Mi"}}}`)
	if err == nil || !strings.Contains(err.Error(), "can't shrink") {
		t.Errorf("a smaller size gives %v", err)
	}
}

// A StorageClass that does not exist is named in the condition.
func TestMissingStorageClass(t *testing.T) {
	s := begin(t)
	s.apply(strings.Replace(sampleDB("shop", 1), "{size: 512Mi}", "{size: 512Mi, storageClassName: no-such-class}", 1))
	message := s.condition("shop", v1.ConditionStorageReady, "False", v1.ReasonStorageClassNotFound)
	if !strings.Contains(message, "no-such-class") {
		t.Errorf("the message %q does not name the class", message)
	}
	s.run("delete", "sampledb", "shop", "--timeout=2m")
}
