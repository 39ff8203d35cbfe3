// Package cached is how the operator's cache is filled and read: in pages, so that no list is in memory whole, and past
// it where it does not keep what somebody asks for. What it keeps of which object is said elsewhere (sampledb.Slim).
package cached

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NotKept is an annotation that an object has in the cache alone: the rest of it is not there.
const NotKept = "toban.dev/not-kept"

// whole reads from a cache, and past it what that does not keep.
type whole struct {
	client.Client
	past client.Reader
}

// Whole is a client that reads from a cache. What that does not keep it reads from the API server, each time: only who
// asks for an object by its name gets it, so nobody but us can make it often.
func Whole(cached client.Client, past client.Reader) client.Client { return whole{cached, past} }

// NewClient makes a manager's client, which reads from its cache, as Whole.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	from, err := client.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("make a client that reads from the cache: %w", err)
	}
	options.Cache = nil
	past, err := client.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("make a client that reads past the cache: %w", err)
	}
	return Whole(from, past), nil
}

// Get is of client.Reader.
func (c whole) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, object, o...); err != nil {
		return err //nolint:wrapcheck // it is a client's, as callers expect it
	}
	if _, is := object.GetAnnotations()[NotKept]; !is {
		return nil
	}
	empty := reflect.ValueOf(object).Elem()
	empty.Set(reflect.Zero(empty.Type()))
	return c.past.Get(ctx, key, object, o...) //nolint:wrapcheck // likewise
}
