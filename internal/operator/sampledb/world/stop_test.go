package world

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// A stop waits for Jobs that work, and not for those that begin anew by themselves.
func TestAStopWaitsForWhatItWouldCutOff(t *testing.T) {
	job := func(component string, ended bool) batchv1.Job {
		j := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Labels: map[string]string{
			naming.LabelComponent: component}}}
		if ended {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}
		return j
	}
	for name, c := range map[string]struct {
		job     batchv1.Job
		upgrade string
		busy    string
	}{
		"a backup":                  {job: job(naming.ComponentBackup, false), busy: "Job j"},
		"a backup that has ended":   {job: job(naming.ComponentBackup, true)},
		"a verification":            {job: job(naming.ComponentVerify, false), busy: "Job j"},
		"tables that come back":     {job: job(naming.ComponentBring, false), busy: "Job j"},
		"the first SQL":             {job: job(naming.ComponentInit, false), busy: "Job j"},
		"a restore":                 {job: job(naming.ComponentRestore, false), busy: "a restore"},
		"a look into the image":     {job: job(naming.ComponentImage, false)},
		"the check of an upgrade":   {job: job(naming.ComponentUpgrade, false), upgrade: v1.UpgradeChecking},
		"the rehearsal of one":      {job: job(naming.ComponentRehearse, false), upgrade: v1.UpgradeRehearsing},
		"a rehearsal alone":         {job: job(naming.ComponentRehearse, false), busy: "Job j"},
		"an upgrade sends away":     {upgrade: v1.UpgradeClosing, busy: "upgrade to PostgreSQL 18"},
		"an upgrade that has ended": {upgrade: v1.UpgradeUpgraded},
	} {
		t.Run(name, func(t *testing.T) {
			s := actOf(Core{DB: &v1.SampleDB{}})
			if c.job.Name != "" {
				s.Seen.Jobs = []batchv1.Job{c.job}
			}
			if c.upgrade != "" {
				s.Upgrade = &v1.UpgradeStatus{Step: c.upgrade, To: 18}
			}
			if got := s.BusyForStop(); (c.busy == "") != (got == "") || !strings.Contains(got, c.busy) {
				t.Errorf("it waits for %q, expected %q", got, c.busy)
			}
		})
	}
}
