package desired

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	v1 "toban.dev/api/v1"
)

// Size is the size in force of an instance's volume: that of the spec, or a larger one to which the volumes have grown
// by themselves.
func Size(db *v1.SampleDB) (resource.Quantity, error) {
	size, err := resource.ParseQuantity(db.Spec.Storage.Size)
	if err != nil {
		return size, fmt.Errorf("storage.size %q must be a quantity such as 10Gi: %w", db.Spec.Storage.Size, err)
	}
	if grown := db.Status.Storage; grown != nil {
		// One that can't be understood is nobody's.
		if in, err := resource.ParseQuantity(grown.Size); err == nil && in.Cmp(size) > 0 {
			return in, nil
		}
	}
	return size, nil
}

// GrowthLimit is the size up to which the volumes grow by themselves; false where they do not.
func GrowthLimit(s v1.StorageSpec) (resource.Quantity, bool) {
	if s.Grow == nil {
		return resource.Quantity{}, false
	}
	limit, err := resource.ParseQuantity(s.Grow.Limit)
	return limit, err == nil // the CRD refuses what is none
}

// GrownStorage is spec.storage for another SampleDB that is to have the same data: its volumes need the size in force.
func GrownStorage(db *v1.SampleDB) v1.StorageSpec {
	out := *db.Spec.Storage.DeepCopy()
	if size, grown := grownSize(db); grown {
		return WithSize(out, size)
	}
	return out
}

// grownSize is the size in force where that is larger than the one of the spec.
func grownSize(db *v1.SampleDB) (string, bool) {
	size, err := Size(db)
	if err != nil || size.Cmp(resource.MustParse(db.Spec.Storage.Size)) <= 0 {
		return "", false
	}
	return size.String(), true
}

// WithSize is spec.storage with another size, and a limit that is not below that: such a one would be refused.
func WithSize(s v1.StorageSpec, size string) v1.StorageSpec {
	s.Size = size
	if limit, grows := GrowthLimit(s); grows {
		if want, err := resource.ParseQuantity(size); err == nil && limit.Cmp(want) < 0 {
			s.Grow = &v1.GrowSpec{Limit: size}
		}
	}
	return s
}
