package cli

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

// request is an object that asks for something.
type request[O any, P object[O]] struct {
	api   client.Client
	asked P
	// left is what is told if nobody watches any more.
	left string
}

func requestOf[O any, P object[O]](api client.Client, asked P, left string) request[O, P] {
	return request[O, P]{api, asked, left}
}

// await looks at the object again and again until it is over, and tells each line once; "" is none. The error of look
// is that of the verb.
func (r request[O, P]) await(
	ctx context.Context, out io.Writer, look func(now P) (line string, over bool, err error),
) error {
	told := lines{out: out}
	return until(ctx, requestPoll, func(error) error { return errors.New(r.left) }, func() (bool, error) {
		now := P(new(O))
		if err := r.api.Get(ctx, client.ObjectKeyFromObject(r.asked), now); client.IgnoreNotFound(err) != nil {
			return false, again{err}
		} else if err != nil || now.GetUID() != r.asked.GetUID() {
			return false, fmt.Errorf("the %s %s was deleted", reflect.TypeFor[O]().Name(), r.asked.GetName())
		}
		line, over, err := look(now)
		told.tell(line)
		return over, err
	})
}

// again marks such an error.
type again struct{ error }

// Again is the error of a look that has seen nothing, and why: the API may be away for a moment, and what was asked for
// goes on.
func Again(err error) error { return again{err} }

// until looks every so often until it is over, or a look fails. inVain is the error when the context has ended; last is
// why the last look has seen nothing, nil where it has seen something.
func until(
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

// lines tells each line once.
type lines struct {
	out  io.Writer
	last string
}

func (l *lines) tell(line string) {
	if line != "" && line != l.last {
		fmt.Fprintln(l.out, line)
		l.last = line
	}
}
