package desired

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// ServiceAccount is what the instances run as.
func ServiceAccount(db *v1.SampleDB) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: meta(db, naming.ServiceAccount(db.Name))}
}

// Role lets the agents label their own Pods with their role and record who leads
// in the Lease, and nothing more. The Pods are those of the first instances, by ordinal: one that is
// to go needs its right for as long as it is there. A reader that is to go needs none.
func Role(db *v1.SampleDB, instances int) *rbacv1.Role {
	var pods []string
	for i := range instances {
		pods = append(pods, naming.Instance(db.Name, i))
	}
	for i := range MostReaders(db) {
		pods = append(pods, naming.Reader(db.Name, i))
	}
	return &rbacv1.Role{
		ObjectMeta: meta(db, naming.Role(db.Name)),
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: pods,
				Verbs: []string{"get", "patch"},
			},
			{
				APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"},
				ResourceNames: []string{naming.Lease(db.Name)}, Verbs: []string{"get", "update"},
			},
		},
	}
}

// Lease is the witness of two instances, of which only one may go on alone: the
// one that writes it first. The operator creates it and never writes it again; the instances do, and only
// when something changes. It also shows people who leads.
func Lease(db *v1.SampleDB) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: meta(db, naming.Lease(db.Name))}
}

// RoleBinding gives the Role to the ServiceAccount.
func RoleBinding(db *v1.SampleDB) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: meta(db, naming.Role(db.Name)),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: naming.Role(db.Name)},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Name: naming.ServiceAccount(db.Name), Namespace: db.Namespace,
		}},
	}
}
