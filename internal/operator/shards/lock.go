package shards

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"toban.dev/internal/naming"
)

// Identity is that of an operator as the holder of a lease: it says which shard it is, and of how many.
func (s Shard) Identity(host, unique string) string {
	return fmt.Sprintf("%s_%s%s%d%s%d", host, unique, before, s.Number, between, max(s.Count, 1))
}

const (
	before  = "_shard-"
	between = "-of-"
)

// countOf is of how many shards the holder of a lease is one. An operator of a release that knows no shards is alone.
func countOf(identity string) int {
	_, shard, _ := strings.Cut(identity, before)
	_, count, _ := strings.Cut(shard, between)
	if n, err := strconv.Atoi(count); err == nil && n > 0 {
		return n
	}
	return 1
}

// Lock is the lease of a shard (S2). It is got only when, after it is held, no other lease is held by an operator that
// counts the shards differently (S3). Until then each attempt renews it and fails: of two operators the one that has
// written its lease later sees that of the other.
type Lock struct {
	resourcelock.Interface
	Shard Shard
	// Leases are those of the operator's namespace.
	Leases coordinationclient.LeaseInterface
	// Patience bounds one look at the other leases: the own one must not run out meanwhile.
	Patience time.Duration
	// Now is the clock.
	Now func() time.Time

	seen map[string]sighting
	// got says that the lock was got. From then on it is only renewed: who comes later waits.
	got bool
}

// Create makes the lease, held by this operator.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.Interface.Create(ctx, record); err != nil {
		return err //nolint:wrapcheck // the election asks what kind of error it is
	}
	return l.alone(ctx)
}

// Update renews the lease, takes it over, or gives it up.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.Interface.Update(ctx, record); err != nil {
		return err //nolint:wrapcheck // the election asks what kind of error it is
	}
	return l.alone(ctx)
}

// alone is an error while an operator may act that counts the shards differently.
func (l *Lock) alone(ctx context.Context) error {
	if l.got {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.Patience)
	defer cancel()
	for number := range Most {
		if number == l.Shard.Number {
			continue
		}
		name := naming.OperatorLease(number)
		lease, err := l.Leases.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the lease %s of another shard: %w", name, err)
		}
		if holder := l.holder(lease); holder != "" && countOf(holder) != max(l.Shard.Count, 1) {
			return fmt.Errorf("wait before acting as shard %s: %s holds the lease %s, and is one of %d: it has to "+
				"end, or all must be started with the same --shards", l.Shard, holder, name, countOf(holder))
		}
	}
	l.got = true
	return nil
}

// sighting is when a version of a lease was seen first.
type sighting struct {
	version string
	at      time.Time
}

// holder is who holds a lease, "" for nobody: it was given up, or was not renewed for as long as it is good for, by
// this clock alone (S4).
func (l *Lock) holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil || lease.Spec.LeaseDurationSeconds == nil {
		return ""
	}
	if l.seen == nil {
		l.seen = map[string]sighting{}
	}
	now, was := l.Now(), l.seen[lease.Name]
	if was.version != lease.ResourceVersion {
		was = sighting{lease.ResourceVersion, now}
		l.seen[lease.Name] = was
	}
	if now.Sub(was.at) >= time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
