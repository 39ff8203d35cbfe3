package await

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// answer is what an API server says of a FaultDrill at one look.
type answer struct {
	uid   types.UID
	phase string
	err   error
}

// answering is an API server that says one thing after the other.
type answering struct {
	client.Client
	all []answer
}

func (a *answering) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	now := a.all[0]
	a.all = a.all[1:]
	if d, ok := into.(*v1.FaultDrill); ok && now.err == nil {
		d.UID, d.Status.Phase = now.uid, now.phase
	}
	return now.err
}

func TestARequestIsWatchedUntilItIsOver(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "faultdrills"}, "d")
	failed := errors.New("not passed")
	for name, c := range map[string]struct {
		answers    []answer
		told, err  string
		lookFailed error
	}{
		"it goes well": {[]answer{{"a", "Running", nil}, {"a", "Over", nil}}, "Running\nOver\n", "", nil},
		"a line is told once": {
			[]answer{{"a", "Running", nil}, {"a", "Running", nil}, {"a", "Over", nil}}, "Running\nOver\n", "", nil,
		},
		"nothing is known yet": {[]answer{{"a", "", nil}, {"a", "Over", nil}}, "Over\n", "", nil},
		"the API is away":      {[]answer{{"", "", errors.New("refused")}, {"a", "Over", nil}}, "Over\n", "", nil},
		"it ends badly":        {[]answer{{"a", "Over", nil}}, "Over\n", "not passed", failed},
		"it is gone":           {[]answer{{"", "", gone}}, "", "the FaultDrill d was deleted", nil},
		"it is another one":    {[]answer{{"b", "Over", nil}}, "", "the FaultDrill d was deleted", nil},
		"nobody watches":       {nil, "", "it goes on", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if c.answers == nil {
					stop()
				}
				asked := &v1.FaultDrill{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "a"}}
				var out strings.Builder
				err := RequestOf(&answering{all: c.answers}, asked, "it goes on").Await(ctx, &out,
					func(now *v1.FaultDrill) (string, bool, error) {
						return now.Status.Phase, now.Status.Phase == "Over", c.lookFailed
					})
				if out.String() != c.told || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
					t.Errorf("it tells %q, and ends with %v", out.String(), err)
				}
			})
		})
	}
}
