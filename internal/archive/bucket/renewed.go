package bucket

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// renewPatience is for how long who is patient waits for other credentials. A Secret that was changed gets into a
	// Pod within a minute and a half (Kubernetes' documentation, "Mounted Secrets are updated automatically"), and a
	// key that was just made is known everywhere in a store a little later.
	renewPatience = 3 * time.Minute
	// renewPause is the time between two attempts meanwhile.
	renewPause = 5 * time.Second
)

// renewed is a store whose credentials are in files, which may change at any time: it is set up anew when they have.
// All stores but the volume's have their credentials renewed here, so none needs a way of its own.
type renewed struct {
	config Config
	open   func() (store, error)

	mutex  sync.Mutex
	opened store // nil until it could be set up
	// files is the sum of the files that it was set up with.
	files [sha256.Size]byte
	// allowed are the operations that went well before.
	allowed map[string]bool
}

// openRenewed sets the store up for the first time.
func openRenewed(config Config, open func() (store, error)) (store, error) {
	r := &renewed{config: config, open: open, allowed: map[string]bool{}}
	if _, err := r.current(); err != nil {
		return nil, err
	}
	return r, nil
}

// current is the store with the credentials that there are now.
func (r *renewed) current() (store, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	files, err := r.config.sumOfSecrets()
	if err != nil {
		return nil, err
	}
	if r.opened != nil && files == r.files {
		return r.opened, nil
	}
	if r.opened, err = r.open(); err != nil {
		r.opened = nil
		return nil, err
	}
	r.files = files
	return r.opened, nil
}

// sumOfSecrets tells whether a file of credentials has changed.
func (c Config) sumOfSecrets() (sum [sha256.Size]byte, err error) {
	all := sha256.New()
	for _, name := range []string{
		fileAccessKey, fileSecretKey, fileSessionToken, fileGoogle, fileAccountKey, fileSAS,
	} {
		text, err := c.secret(name)
		if err != nil {
			return sum, err
		}
		fmt.Fprintf(all, "%s %d\n%s", name, len(text), text)
	}
	all.Sum(sum[:0])
	return sum, nil
}

// try is one attempt. One that is denied what it was allowed before may be due to credentials that were changed in the
// store, and are not in the files yet. Who is patient waits for them.
func (r *renewed) try(ctx context.Context, operation string, do func(store) error) error {
	end := time.Now().Add(renewPatience)
	for {
		s, err := r.current()
		if err == nil {
			err = do(s)
		}
		if !r.awaits(operation, err) || !time.Now().Add(renewPause).Before(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(renewPause):
		}
	}
}

// awaits says whether other credentials may make good what came of an operation, and notes what it was allowed.
func (r *renewed) awaits(operation string, err error) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err == nil {
		r.allowed[operation] = true
	}
	return errors.Is(err, ErrDenied) && r.config.Patient && r.allowed[operation]
}

func (r *renewed) put(ctx context.Context, name string, content []byte, create bool) error {
	return r.try(ctx, "put", func(s store) error {
		err := s.put(ctx, name, content, create)
		if create && errors.Is(err, ErrDenied) && isThere(ctx, s, name) {
			// Who may not replace an object is denied it by some stores before they look at the condition.
			return fmt.Errorf("%w: %v", ErrExists, err) //nolint:errorlint // it is not for want of credentials
		}
		return err
	})
}

// isThere says that an object can be read.
func isThere(ctx context.Context, s store, name string) bool {
	body, err := s.get(ctx, name)
	if err != nil {
		return false
	}
	_ = body.Close() // nothing of it is wanted
	return true
}

func (r *renewed) get(ctx context.Context, name string) (body io.ReadCloser, err error) {
	err = r.try(ctx, "get", func(s store) (err error) {
		body, err = s.get(ctx, name)
		return err
	})
	return body, err
}

func (r *renewed) page(
	ctx context.Context, prefix, after, from string,
) (objects []Object, next string, err error) {
	err = r.try(ctx, "page", func(s store) (err error) {
		objects, next, err = s.page(ctx, prefix, after, from)
		return err
	})
	return objects, next, err
}

// remove is not patient: what is denied may be younger than the store lets anybody remove, and the next run of whoever
// removes something tries again.
func (r *renewed) remove(ctx context.Context, names []string) error {
	s, err := r.current()
	if err != nil {
		return err
	}
	return s.remove(ctx, names)
}
