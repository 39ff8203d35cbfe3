package apply

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// content is the wanted part of an object: all but the status and what the API server sets.
func content(object client.Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", object.GetName(), err)
	}
	delete(out, "status")
	if meta, ok := out["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
		delete(meta, "managedFields")
		delete(meta, "resourceVersion")
	}
	if _, ours := object.(*v1.SampleDB); ours {
		leaveOutEmpty(out, "spec")
		leaveOutEmpty(out, "spec", "pooler")
	}
	return out, nil
}

// leaveOutEmpty leaves out what is empty at a path. Where fields in it were written before, and are not any more, the
// API server makes null of what is empty and was applied, and refuses that.
func leaveOutEmpty(of map[string]any, path ...string) {
	for _, name := range path {
		of, _ = of[name].(map[string]any)
	}
	maps.DeleteFunc(of, func(_ string, value any) bool {
		below, is := value.(map[string]any)
		return is && len(below) == 0
	})
}

// contains says that have has all that want asks for. What want leaves open, a
// default or somebody else may fill. A list must be the same length, so that an
// added item is noticed, but not that of the owners, where others may add themselves.
func contains(have, want any) bool {
	switch w := want.(type) {
	case nil:
		return true
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for key, value := range w {
			if key == "ownerReferences" {
				if !containsOwners(h[key], value) {
					return false
				}
			} else if !contains(h[key], value) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		if len(h) != len(w) {
			return false
		}
		for i := range w {
			if !contains(h[i], w[i]) {
				return false
			}
		}
		return true
	}
	return have == want
}

func containsOwners(have, want any) bool {
	h, _ := have.([]any)
	w, _ := want.([]any)
	for _, owner := range w {
		found := false
		for _, other := range h {
			found = found || contains(other, owner)
		}
		if !found {
			return false
		}
	}
	return true
}

// hasMore says that have has a list with something in it where want has none. It is asked where contains holds.
func hasMore(have, want any) bool {
	switch h := have.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		for key, value := range h {
			if list, ok := value.([]any); ok && len(list) > 0 && w[key] == nil {
				return true
			}
			if w[key] != nil && hasMore(value, w[key]) {
				return true
			}
		}
	case []any:
		w, _ := want.([]any)
		for i := range min(len(h), len(w)) {
			if hasMore(h[i], w[i]) {
				return true
			}
		}
	}
	return false
}

// overlay is have with all that want asks for, and without the lists and the items of lists that it does not ask for.
func overlay(have, want any) any {
	switch w := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		out := map[string]any{}
		for key, value := range h {
			if _, list := value.([]any); !list {
				out[key] = value
			}
		}
		for key, value := range w {
			if value != nil {
				out[key] = overlay(h[key], value)
			}
		}
		return out
	case []any:
		h, _ := have.([]any)
		if len(h) != len(w) {
			return w
		}
		out := make([]any, len(w))
		for i := range w {
			out[i] = overlay(h[i], w[i])
		}
		return out
	}
	return want
}
