package await

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
)

// watchPoll is how often it is looked how far something is.
const watchPoll = 300 * time.Millisecond

// StatusPatience is how long the status may take to say how what is no longer asked for has ended.
const StatusPatience = 10 * time.Second

// Watched is the cluster for a verb that watches a SampleDB until something has ended there.
type Watched struct {
	cluster.Cluster
	// Wait is whether the verb watches, Timeout how long.
	Wait    bool
	Timeout time.Duration
}

// Flags adds those of the cluster, and those that say whether the verb watches, until what, and how long.
func (o *Watched) Flags(f *pflag.FlagSet, until string, timeout time.Duration) {
	o.Cluster.Flags(f)
	f.BoolVar(&o.Wait, "wait", true, until)
	f.DurationVar(&o.Timeout, "timeout", timeout, "how long to wait")
}

// Watch shows a SampleDB again and again, until that says that it is over. Late is what is told when it takes too long.
func (o *Watched) Watch(
	ctx context.Context, api client.Client, before *v1.SampleDB, late string,
	show func(db *v1.SampleDB) (over bool, err error),
) error {
	limit, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return Until(limit, watchPoll, func(error) error { return errors.New(late) }, func() (bool, error) {
		db, err := o.Read(limit, api, before.Name)
		if err != nil {
			return false, again{err}
		}
		if db.UID != before.UID {
			return false, MadeAnew(db)
		}
		return show(db)
	})
}

// MadeAnew is the error of a SampleDB that is no longer the one that was asked.
func MadeAnew(db *v1.SampleDB) error {
	return fmt.Errorf("the SampleDB %s was deleted and made anew meanwhile", db.Name)
}
