package bluegreen

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// greenTopic makes the second side, and removes it.
type greenTopic struct{ base }

// branch is the archive's newest one, 0 where there is one only.
func (s *greenTopic) branch() (newest int64) {
	if s.DB.Status.Backup == nil {
		return 0
	}
	several := false
	for _, w := range s.DB.Status.Backup.Windows {
		several = several || newest != 0 && w.Branch != newest
		newest = max(newest, w.Branch)
	}
	if !several {
		return 0
	}
	return newest
}

// configOfGreen is what green's agents are told, nil where there is none yet.
func (s *greenTopic) configOfGreen(ctx context.Context, green *v1.SampleDB) (*protocol.Config, error) {
	if green == nil {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	object, err := world.Find(ctx, s.Client, green, naming.ConfigMap(green.Name), &corev1.ConfigMap{})
	if object == nil || err != nil {
		return nil, err
	}
	config, err := desired.ParseConfig(object)
	if err != nil {
		return nil, err
	}
	return &config, nil
}
