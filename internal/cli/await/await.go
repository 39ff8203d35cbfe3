package await

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestPoll is how often it is looked how far a request is.
const requestPoll = time.Second

// object is a pointer to an O.
type object[O any] interface {
	*O
	client.Object
}

// Request is an object that asks for something.
type Request[O any, P object[O]] struct {
	api   client.Client
	asked P
	// left is what is told if nobody watches any more.
	left string
}

// RequestOf is an object that was created or changed for what it asks; left is what is told if nobody watches any more.
func RequestOf[O any, P object[O]](api client.Client, asked P, left string) Request[O, P] {
	return Request[O, P]{api, asked, left}
}

// Await looks at the object again and again until it is over, and tells each line once; "" is none. The error of look
// is that of the verb.
func (r Request[O, P]) Await(
	ctx context.Context, out io.Writer, look func(now P) (line string, over bool, err error),
) error {
	told := Lines{Out: out}
	return Until(ctx, requestPoll, func(error) error { return errors.New(r.left) }, func() (bool, error) {
		now := P(new(O))
		if err := r.api.Get(ctx, client.ObjectKeyFromObject(r.asked), now); client.IgnoreNotFound(err) != nil {
			return false, again{err}
		} else if err != nil || now.GetUID() != r.asked.GetUID() {
			return false, fmt.Errorf("the %s %s was deleted", reflect.TypeFor[O]().Name(), r.asked.GetName())
		}
		line, over, err := look(now)
		told.Tell(line)
		return over, err
	})
}

// again marks the error of a look that has seen nothing.
type again struct{ error }

// Again is the error of a look that has seen nothing, and why: the API may be away for a moment, and what was asked for
// goes on.
func Again(err error) error { return again{err} }

// Until looks every so often until it is over, or a look fails. inVain is the error when the context has ended; last is
// why the last look has seen nothing, nil where it has seen something.
func Until(
	ctx context.Context, every time.Duration, inVain func(last error) error, look func() (over bool, err error),
) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last error
	for {
		select {
		case <-ctx.Done():
			return inVain(last)
		case <-tick.C:
		}
		over, err := look()
		var nothing again
		if errors.As(err, &nothing) {
			last = nothing.error
			continue
		}
		if last = nil; over || err != nil {
			return err
		}
	}
}

// Lines tells each line once.
type Lines struct {
	Out io.Writer
	// Of is what each line is about, and begins with; "" for nothing.
	Of   string
	last string
}

// Tell tells a line, unless it is the last one again, or empty.
func (l *Lines) Tell(line string) {
	if line == "" || line == l.last {
		return
	}
	l.last = line
	if l.Of != "" {
		line = l.Of + ": " + line
	}
	fmt.Fprintln(l.Out, line)
}
