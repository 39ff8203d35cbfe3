package databasebackup

import (
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/jobs"
	"toban.dev/internal/controller/once"
	"toban.dev/internal/naming"
)

// Setup adds the controller to a manager. The Job of a backup has the same name.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	owners := jobs.Owners(naming.ComponentBackup, func(job string) (string, bool) { return job, true })
	return once.Setup(manager, "databasebackup", &v1.DatabaseBackup{}, owners, r)
}
