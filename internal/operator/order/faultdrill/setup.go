package faultdrill

import (
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	owners := jobs.Owners(naming.ComponentDrill, naming.DrilledBy)
	return order.Setup(manager, "faultdrill", &v1.FaultDrill{}, owners, r)
}
