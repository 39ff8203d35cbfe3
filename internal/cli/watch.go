package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
)

// watchPoll is how often it is looked how far something is.
const watchPoll = 300 * time.Millisecond

// statusPatience is how long the status may take to say how what is no longer asked for has ended.
const statusPatience = 10 * time.Second

// watched is the cluster for a verb that watches a SampleDB until something has ended there.
type watched struct {
	cluster.Cluster
	timeout time.Duration
}

// watch shows a SampleDB again and again, until that says that it is over. Late is what is told when it takes too long.
func (o *watched) watch(
	ctx context.Context, api client.Client, before *v1.SampleDB, late string,
	show func(db *v1.SampleDB) (over bool, err error),
) error {
	limit, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return until(limit, watchPoll, func(error) error { return errors.New(late) }, func() (bool, error) {
		db, err := o.Read(limit, api, before.Name)
		if err != nil {
			return false, again{err}
		}
		if db.UID != before.UID {
			return false, madeAnew(db)
		}
		return show(db)
	})
}

func madeAnew(db *v1.SampleDB) error {
	return fmt.Errorf("the SampleDB %s was deleted and made anew meanwhile", db.Name)
}
