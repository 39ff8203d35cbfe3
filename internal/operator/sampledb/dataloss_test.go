package sampledb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/restore"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

func TestWhatIsSaidOfLostData(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scope)
		says   []string
	}{
		"it waits": {func(s *scope) { s.Backup.WhenDataIsLost = "" }, []string{
			"that of x-0 is new and empty", "at least to 0/5000000 of 2001-09-09T01:46:40Z", "up to 10s of commits",
			"former PersistentVolume", "kubectl toban restore x --to latest",
		}},
		"a volume is left": {
			func(s *scope) { s.Seen.Claims[1] = &corev1.PersistentVolumeClaim{} },
			[]string{"may have some (spec.instances)"},
		},
		"it begins again":    {func(*scope) {}, []string{"begins again with that (spec.backup.whenDataIsLost)"}},
		"there is no backup": {func(s *scope) { s.DB.Status.Backup.LastBackup = "" }, []string{"the only copy"}},
		"how far the archive goes is not known": {
			func(s *scope) { s.DB.Status.Backup.Latest = nil }, []string{"not known before it is read"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopeOn(worldtest.Emptied())
			c.change(s)
			s.Loss = restore.DecideLoss(s.LossView())
			got := available(s)
			for _, words := range c.says {
				if got.Reason != v1.ReasonDataLost || !strings.Contains(got.Message, words) {
					t.Errorf("%s: %s\nlacks %q", got.Reason, got.Message, words)
				}
			}
		})
	}
}
