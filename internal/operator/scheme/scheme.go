// Package scheme has the kinds of objects that Toban reads and writes.
package scheme

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
)

// New has all of them.
func New() (*runtime.Scheme, error) {
	all := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(all); err != nil {
		return nil, fmt.Errorf("register Kubernetes' kinds: %w", err)
	}
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, pgv1.AddToScheme, appv1.AddToScheme} {
		if err := add(all); err != nil {
			return nil, fmt.Errorf("register our kinds: %w", err)
		}
	}
	return all, nil
}
