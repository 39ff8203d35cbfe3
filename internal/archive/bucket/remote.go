package bucket

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// retryFor is for how long an operation that fails is begun again. With patience
	// for the last attempt, a bucket that is away is an error after half a minute.
	retryFor = 15 * time.Second
	// firstPause and lastPause are the shortest and the longest time between two attempts.
	firstPause, lastPause = 100 * time.Millisecond, 2 * time.Second
	// pageSize is how many objects one request lists or deletes: S3's limit for both.
	pageSize = 1000
	// atOnce is how many objects are deleted at the same time, where each needs a request.
	atOnce = 8
)

// store is a store behind a network: each method is one attempt. Its errors have
// the meanings of this package; those that have none are worth another try, unless
// they are final.
type store interface {
	put(ctx context.Context, name string, content []byte, create bool) error
	get(ctx context.Context, name string) (io.ReadCloser, error)
	// page lists a thousand objects or so, from where the page before has said;
	// the last one says nothing. The first begins after a name where the store can do that.
	page(ctx context.Context, prefix, after, from string) (objects []Object, next string, err error)
	// remove deletes up to pageSize objects; one that is not there is no error.
	remove(ctx context.Context, names []string) error
}

// remote makes a bucket of a store: it has the patience, in one place, so that no
// client library needs its own.
type remote struct{ store }

func (r remote) Put(ctx context.Context, name string, content []byte) error {
	if err := check(name, content); err != nil {
		return err
	}
	return retry(ctx, "write "+name, func() error { return r.put(ctx, name, content, false) })
}

func (r remote) Create(ctx context.Context, name string, content []byte) error {
	if err := check(name, content); err != nil {
		return err
	}
	// After an attempt without an answer, the object that is there may be our own.
	unsure := false
	return retry(ctx, "create "+name, func() error {
		err := r.put(ctx, name, content, true)
		if unsure && errors.Is(err, ErrExists) {
			return r.compare(ctx, name, content, err)
		}
		unsure = err != nil
		return err
	})
}

// compare returns taken if the object has other content.
func (r remote) compare(ctx context.Context, name string, content []byte, taken error) error {
	body, err := r.get(ctx, name)
	if err != nil {
		return err
	}
	defer body.Close()
	found, err := io.ReadAll(io.LimitReader(body, MaxObject+1))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !bytes.Equal(found, content) {
		return taken
	}
	return nil
}

func (r remote) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	var body io.ReadCloser
	err := retry(ctx, "read "+name, func() (err error) {
		body, err = r.get(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return content{body, name}, nil
}

// content is that of an object on its way, whose errors say of which.
type content struct {
	io.ReadCloser
	name string
}

func (c content) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return n, err
	}
	return n, fmt.Errorf("read %s: %w", c.name, err)
}

func (r remote) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return r.ListAfter(ctx, prefix, "")
}

func (r remote) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Object{}, err)
			return
		}
		from, last := "", ""
		for {
			objects, next, err := r.pageOf(ctx, prefix, after, from)
			if err == nil {
				err = ordered(last, objects)
			}
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, object := range objects {
				last = object.Name
				if object.Name > after && checkName(object.Name) == nil && !yield(object, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			from = next
		}
	}
}

func (r remote) pageOf(
	ctx context.Context, prefix, after, from string,
) (objects []Object, next string, err error) {
	err = retry(ctx, "list "+prefix, func() (err error) {
		objects, next, err = r.page(ctx, prefix, after, from)
		return err
	})
	return objects, next, err
}

// ordered refuses a listing in another order, as Azure's accounts with a
// hierarchical namespace and S3's directory buckets may have: who takes it for
// ordered would miss objects.
func ordered(last string, objects []Object) error {
	for _, object := range objects {
		if object.Name < last {
			return fmt.Errorf("the store lists %q after %q, not in the order of the bytes of names: "+
				"take a bucket without a hierarchical namespace", object.Name, last)
		}
		last = object.Name
	}
	return nil
}

func (r remote) Delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(names, pageSize) {
		what := fmt.Sprintf("delete %s and %d more", some[0], len(some)-1)
		if err := retry(ctx, what, func() error { return r.remove(ctx, some) }); err != nil {
			return err
		}
	}
	return nil
}

// retry does something again while it fails in a way that may pass.
func retry(ctx context.Context, what string, attempt func() error) error {
	end := time.Now().Add(retryFor)
	err := ctx.Err()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if ctx.Err() == nil {
			err = attempt()
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = errors.Join(ctx.Err(), err) // some clients say only that a connection was closed
		}
		// Writers that have failed together don't come again together.
		wait := pause/2 + rand.N(pause) //nolint:gosec // nobody is to be surprised by it
		if ctx.Err() != nil || lasting(err) || time.Now().Add(wait).After(end) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// final is an error that another attempt would meet too.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Lasting says that another try of what has failed would be in vain, as long as nobody changes the bucket or what is
// said of it.
func Lasting(err error) bool { return lasting(err) }

// lasting says that another attempt would be in vain.
func lasting(err error) bool {
	for _, known := range []error{ErrNotExist, ErrExists, ErrNoBucket, ErrDenied, ErrFull, ErrInvalid} {
		if errors.Is(err, known) {
			return true
		}
	}
	var itself final
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &itself) || errors.As(err, &authority) || errors.As(err, &host)
}

// byStatus gives an error its meaning by the status that an HTTP server has
// answered, 0 for none (RFC 9110, chapter 15). What else a status means to a store, the
// store has seen to.
func byStatus(status int, err error) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %w", ErrExists, err)
	case http.StatusInsufficientStorage:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return err
	}
	if status >= 400 && status < 500 {
		return final{err}
	}
	return err
}

// each does something with several names, some of them at the same time.
func each(ctx context.Context, names []string, do func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range names {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}
