//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
)

// A quota that allows no Pod is told in its own words, and the database starts when there is room.
func TestQuota(t *testing.T) {
	s := begin(t)
	s.run("create", "quota", "small", "--hard=pods=0")
	s.until(s.quotaCounts)
	s.apply(bare("shop", 1))
	message := s.condition("shop", v1.ConditionReady, "False", v1.ReasonPodRefused)
	if !strings.Contains(message, "exceeded quota: small") {
		t.Errorf("the condition says: %s", message)
	}
	s.run("patch", "quota", "small", "--type=merge", "-p", `{"spec":{"hard":{"pods":"20"}}}`)
	s.run("annotate", "statefulset", "shop", "tried=again")
	s.ready("shop")
}

// quotaCounts is nil when Kubernetes has begun to go by the quota.
func (s *story) quotaCounts(ctx context.Context) error {
	used, err := s.Kubectl(ctx, "get", "quota", "small", "-o", "jsonpath={.status.used.pods}")
	if err == nil && used == "" {
		err = errors.New("the quota does not count yet")
	}
	return err
}
