package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// CreateSecret creates a Secret that belongs to a revision, and says whether one was there. One that may be of this
// revision, but is not known to be, goes too: an operator that ends between the Secret and the status does not know
// what it has written.
func (s *Act) CreateSecret(
	ctx context.Context, revision *appsv1.ControllerRevision, secret *corev1.Secret, known bool,
) (there bool, err error) {
	err = s.Client.Create(ctx, secret, client.FieldOwner(naming.FieldOwner))
	switch {
	case err == nil:
		return false, nil
	case !apierrors.IsAlreadyExists(err):
		return false, Refused(err, "Secret", secret.Name)
	case !known && s.Now.Sub(revision.CreationTimestamp.Time) > patienceGone:
		return true, s.DeleteRevision(ctx, revision)
	}
	return true, nil
}

// Revisions are those of one of the SampleDB's Secrets.
func (s *Act) Revisions(ctx context.Context, secret string) ([]appsv1.ControllerRevision, error) {
	var all appsv1.ControllerRevisionList
	if err := s.Reader.List(ctx, &all, Belongs(s.DB)...); err != nil {
		return nil, fmt.Errorf("list the revisions of the Secret %s: %w", secret, err)
	}
	return slices.DeleteFunc(all.Items, func(have appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(&have, s.DB) || have.DeletionTimestamp != nil ||
			!strings.HasPrefix(have.Name, secret+"-")
	}), nil
}

// KeepRevision is the wanted one of a Secret's revisions, made where it is not there. The others are deleted, and with
// them the Secret.
func (s *Act) KeepRevision(
	ctx context.Context, secret string, all []appsv1.ControllerRevision, want *appsv1.ControllerRevision,
) (*appsv1.ControllerRevision, error) {
	var there *appsv1.ControllerRevision
	for i := range all {
		if all[i].Name == want.Name {
			there = &all[i]
		} else if err := s.DeleteRevision(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	if there != nil {
		return there, nil
	}
	err := s.Client.Create(ctx, want, client.FieldOwner(naming.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return s.revisionInTheWay(ctx, secret, want.Name)
	}
	if err != nil {
		return nil, Refused(err, "ControllerRevision", want.Name)
	}
	return want, nil
}

// revisionInTheWay is the revision of a name that is there already, if it is the SampleDB's. One of a former SampleDB
// goes by itself; where it does not, the user has to delete it.
func (s *Act) revisionInTheWay(
	ctx context.Context, secret, name string,
) (*appsv1.ControllerRevision, error) {
	have, err := Find(ctx, s.Reader, s.DB, name, &appsv1.ControllerRevision{})
	switch {
	case err != nil:
		return nil, err
	case have == nil:
		return nil, &Problem{v1.ReasonCreating, fmt.Sprintf("ControllerRevision %s is made anew", name), WaitGone}
	case have.DeletionTimestamp == nil && s.Now.Sub(s.DB.CreationTimestamp.Time) > patienceFormer && !Ours(have, s.DB):
		return nil, &Problem{v1.ReasonNameTaken, fmt.Sprintf("ControllerRevision %s is not this SampleDB's, and the "+
			"Secret %s needs its name: kubectl delete controllerrevision %s, or give the SampleDB another name",
			name, secret, name), WaitUser}
	}
	return have, MayWrite(have, s.DB, "ControllerRevision")
}

// DeleteRevision deletes a revision, and with it the Secret that belongs to it.
func (s *Act) DeleteRevision(ctx context.Context, revision *appsv1.ControllerRevision) error {
	err := s.Client.Delete(ctx, revision, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &revision.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete ControllerRevision %s: %w", revision.Name, err)
	}
	return nil
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

// Due says that it is time for an attempt. At rest the first one is made a pause after the SampleDB was first seen.
func (a *attempts) Due(uid types.UID, now time.Time, resting bool) bool {
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

// Made notes an attempt. Where a Secret was there already, it is tried again
// sooner: it may be the former one.
func (a *attempts) Made(uid types.UID, now time.Time, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pause := lastPause
	if there {
		pause = min(max(2*a.tries[uid].pause, firstPause), lastPause)
	}
	a.record(uid, attempt{at: now, pause: pause})
}

func (a *attempts) Forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tries, uid)
}
