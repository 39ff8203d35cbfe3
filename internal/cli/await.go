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
	tick := time.NewTicker(requestPoll)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return errors.New(r.left)
		case <-tick.C:
		}
		now := P(new(O))
		if err := r.api.Get(ctx, client.ObjectKeyFromObject(r.asked), now); client.IgnoreNotFound(err) != nil {
			continue // the API may be away for a moment, and what was asked for goes on
		} else if err != nil || now.GetUID() != r.asked.GetUID() {
			return fmt.Errorf("the %s %s was deleted", reflect.TypeFor[O]().Name(), r.asked.GetName())
		}
		line, over, err := look(now)
		if line != told && line != "" {
			fmt.Fprintln(out, line)
			told = line
		}
		if over || err != nil {
			return err
		}
	}
}
