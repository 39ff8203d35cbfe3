package sampledb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
)

// applySecrets creates the Secrets. The operator may create Secrets but neither
// read nor change them, so it can't know whether they are there: it tries
// as long as some instance is not ready, less and less often, and seldom at rest, where somebody may have deleted one.
func (r *Reconciler) applySecrets(ctx context.Context, s *scope) error {
	resting := s.healthy() && s.rotation().written
	if !r.attempts.due(s.db.UID, s.now, resting) {
		return nil
	}
	there, err := r.createAuthoritySecret(ctx, s)
	if err != nil {
		return err
	}
	if desired.Initialises(s.db) {
		app, err := r.createAppSecret(ctx, s)
		if err != nil {
			return err
		}
		there = there || app
	}
	r.attempts.made(s.db.UID, s.now, there)
	return nil
}

// createAuthoritySecret creates NAME-ca, and says whether one was there.
func (r *Reconciler) createAuthoritySecret(ctx context.Context, s *scope) (there bool, err error) {
	authority, err := r.Credentials.Authority(s.db)
	if err != nil {
		return false, fmt.Errorf("make the authority: %w", err)
	}
	key, err := authority.KeyPEM()
	if err != nil {
		return false, err
	}
	secret := desired.AuthoritySecret(s.db, []byte(s.config.Authority), key)
	err = r.Client.Create(ctx, secret, client.FieldOwner(naming.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return true, nil
	}
	if err != nil {
		return false, refused(err, "Secret", secret.Name)
	}
	return false, nil
}

// attempts remembers when Secrets were last tried to be created.
type attempts struct {
	mu    sync.Mutex
	tries map[types.UID]attempt
}

type attempt struct {
	at    time.Time
	pause time.Duration
	rest  time.Duration
}

// Pauses between attempts. The first is short for the case that a Secret of a
// deleted SampleDB of the same name is in the way and about to go; the last is not long, because an instance whose
// Secret somebody has deleted can't start without.
const (
	firstPause = 2 * time.Second
	lastPause  = 30 * time.Second
	// restPause is the shortest one at rest. Each is longer by up to as much again, so that a thousand that were found
	// at once are not tried at once.
	restPause = 8 * time.Minute
	// patienceGone is how long a former Secret may take to go with its revision, which is seldom more than a second.
	patienceGone = 10 * time.Second
	// patienceFormer is how long the objects of a former SampleDB may take to go.
	patienceFormer = time.Minute
)

// due says that it is time for an attempt. At rest the first one is made a pause after the SampleDB was first seen.
func (a *attempts) due(uid types.UID, now time.Time, resting bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.tries[uid]
	switch {
	case !resting:
		return !now.Before(last.at.Add(last.pause))
	case !known:
		a.record(uid, attempt{at: now})
		return false
	}
	return !now.Before(last.at.Add(last.rest))
}

// record remembers an attempt, and how long it is to the next at rest.
func (a *attempts) record(uid types.UID, last attempt) {
	if a.tries == nil {
		a.tries = map[types.UID]attempt{}
	}
	last.rest = restPause + rand.N(restPause) //nolint:gosec // no secret
	a.tries[uid] = last
}

// made notes an attempt. Where a Secret was there already, it is tried again
// sooner: it may be the former one.
func (a *attempts) made(uid types.UID, now time.Time, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pause := lastPause
	if there {
		pause = min(max(2*a.tries[uid].pause, firstPause), lastPause)
	}
	a.record(uid, attempt{at: now, pause: pause})
}

func (a *attempts) forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tries, uid)
}
