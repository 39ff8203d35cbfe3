package databasebackup

import (
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

// Setup adds the controller to a manager. The Job of a backup has the same name.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	owners := jobs.Owners(naming.ComponentBackup, func(job string) (string, bool) { return job, true })
	return order.Setup(manager, "databasebackup", &v1.DatabaseBackup{}, owners, r)
}
