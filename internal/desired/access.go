package desired

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// ServiceAccount is what the instances run as.
func ServiceAccount(db *v1.SampleDB) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: meta(db, naming.ServiceAccount(db.Name))}
}

// Role lets the agents label their own Pods with their role, and nothing more.
func Role(db *v1.SampleDB) *rbacv1.Role {
	var pods []string
	for _, m := range members(db) {
		pods = append(pods, m.Name)
	}
	return &rbacv1.Role{
		ObjectMeta: meta(db, naming.Role(db.Name)),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: pods, Verbs: []string{"get", "patch"},
		}},
	}
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
