package major

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/operator/sampledb/versions"
	"toban.dev/internal/operator/sampledb/world"
)

// The nodes may have different images by one tag: where no digest is known, it is said what differs.
func TestNodesWithDifferentVersions(t *testing.T) {
	on := func(node, version string) versions.NodePull {
		return versions.NodePull{
			Node: node, Version: version, Image: "postgres:18", State: upgrade.PullDone, Job: &batchv1.Job{},
		}
	}
	for name, c := range map[string]struct {
		pulls []versions.NodePull
		says  string
	}{
		"one node": {[]versions.NodePull{on("a", "18.5")}, ""},
		"the same": {[]versions.NodePull{on("a", "18.5"), on("b", "18.5")}, ""},
		"one differs": {[]versions.NodePull{on("a", "18.5"), on("b", "18.6"), on("c", "18.5")},
			"different versions of the image postgres:18: 18.5 on a, 18.6 on b, 18.5 on c"},
	} {
		s := topicsOf(world.Core{Outcomes: world.Outcomes{Upgrade: &v1.UpgradeStatus{Image: "postgres:18"}}})
		got := s.upgradePull(c.pulls)
		if got.Done != (c.says == "") || !strings.Contains(got.Failed, c.says) || got.Done && got.Failed != "" {
			t.Errorf("%s: %+v, want %q", name, got, c.says)
		}
	}
}

// Former data that a server can't use any more is not told to be kept as if it could.
func TestWhatIsSaidOfTheFormerData(t *testing.T) {
	at := metav1.Now()
	for method, words := range map[string]string{
		"link": "of no use any more; what is left of it is removed at", "clone": "the former data is kept until",
		"copy": "the former data is kept until",
	} {
		done := &v1.UpgradeStatus{Version: "18.6", Method: method, CompletedAt: &at}
		s := topicsOf(world.Core{DB: &v1.SampleDB{}, Outcomes: world.Outcomes{Upgrade: done}})
		if got := s.UpgradedSentence(); !strings.Contains(got, words) {
			t.Errorf("%s: it says %q, want %q", method, got, words)
		}
	}
}
