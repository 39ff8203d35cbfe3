// Package namespaces says in which namespaces the operator works. It must not import controllers.
package namespaces

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// Choice is a choice of namespaces. Without any it is all of them.
type Choice struct {
	// Watched are the only ones.
	Watched []string
	// Ignored are left to another operator.
	Ignored []string
}

// Check says what is wrong with a choice.
func (c Choice) Check() error {
	if len(c.Watched) > 0 && len(c.Ignored) > 0 {
		return errors.New("the operator can watch only some namespaces, or ignore some, and not both")
	}
	for _, name := range slices.Concat(c.Watched, c.Ignored) {
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
			return fmt.Errorf("%q is no name of a namespace: %s", name, strings.Join(wrong, "; "))
		}
	}
	return nil
}

// Has says that the operator works in a namespace.
func (c Choice) Has(namespace string) bool {
	if len(c.Watched) > 0 {
		return slices.Contains(c.Watched, namespace)
	}
	return !slices.Contains(c.Ignored, namespace)
}

// ForCache is the choice as a cache takes it. Of namespaces that are not watched it asks nothing, so that no right is
// needed there.
func (c Choice) ForCache() map[string]cache.Config {
	out := map[string]cache.Config{}
	for _, name := range c.Watched {
		out[name] = cache.Config{}
	}
	if len(c.Ignored) > 0 {
		var others []fields.Selector
		for _, name := range c.Ignored {
			others = append(others, fields.OneTermNotEqualSelector("metadata.namespace", name))
		}
		out[cache.AllNamespaces] = cache.Config{FieldSelector: fields.AndSelectors(others...)}
	}
	return out
}

// SampleDBs are those of the chosen namespaces. Of others it asks nothing where only some are watched.
func (c Choice) SampleDBs(ctx context.Context, reader client.Reader) ([]v1.SampleDB, error) {
	asked := c.Watched
	if len(asked) == 0 {
		asked = []string{metav1.NamespaceAll}
	}
	var out []v1.SampleDB
	for _, name := range asked {
		var all v1.SampleDBList
		if err := reader.List(ctx, &all, client.InNamespace(name)); err != nil {
			return nil, fmt.Errorf("list SampleDBs: %w", err)
		}
		for _, db := range all.Items {
			if c.Has(db.Namespace) {
				out = append(out, db)
			}
		}
	}
	return out, nil
}

// String is the choice in words.
func (c Choice) String() string {
	switch {
	case len(c.Watched) > 0:
		return strings.Join(c.Watched, ", ")
	case len(c.Ignored) > 0:
		return "all but " + strings.Join(c.Ignored, ", ")
	}
	return "all"
}
