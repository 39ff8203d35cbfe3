package freshness

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
)

// Alone writes the status of an object of which nobody else writes it. It is false where the object is gone.
func Alone(ctx context.Context, c client.Client, was, changed client.Object) (bool, error) {
	return patch(ctx, c, changed, client.MergeFrom(was))
}

// Shared writes a status that others write too: only on the version that was read. A patch has all conditions, and
// would write back what another has changed since (a JSON merge patch replaces lists, RFC 7386). Where it is refused
// with a conflict, the error has the caller look again.
func Shared(ctx context.Context, c client.Client, was, changed client.Object) (bool, error) {
	return patch(ctx, c, changed, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}

func patch(ctx context.Context, c client.Client, changed client.Object, by client.Patch) (bool, error) {
	err := c.Status().Patch(ctx, changed, by, client.FieldOwner(naming.FieldOwner))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write the status of %s: %w", changed.GetName(), err)
	}
	return true, nil
}
