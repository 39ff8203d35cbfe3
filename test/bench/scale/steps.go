package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

const (
	// betweenEdits is how long to wait after an edit of a single SampleDB before the next one.
	betweenEdits = 50 * time.Millisecond
	// troubled is which part of the SampleDBs has agents that hang: one in so many.
	troubled = 10
)

// coldStart stops the operator, and measures another one's start, until it has looked at all and has nothing to do.
func (b *bench) coldStart(ctx context.Context) error {
	err := b.operator.stop()
	b.operator = nil
	if err != nil {
		return err
	}
	began := time.Now()
	if b.operator, err = startOperator(b.server, b.program, b.log); err != nil {
		return err
	}
	err = until(ctx, func(ctx context.Context) (bool, error) { return b.operator.idle(ctx, len(b.dbs)) })
	if err != nil {
		return err
	}
	b.began = time.Now()
	b.found.ColdStart = b.began.Sub(began).Seconds()
	used, err := b.operator.usage()
	b.found.ColdMemory, b.found.ColdCPU = megabytes(used.most), used.cpu.Seconds()
	return err
}

// editAtRest measures edits while nothing else happens.
func (b *bench) editAtRest(ctx context.Context) (err error) {
	b.found.Edits, err = b.edit(ctx, b.dbs, func(done int) bool { return done >= b.edits })
	return err
}

// edit edits one SampleDB after the other until it is enough.
func (b *bench) edit(ctx context.Context, dbs []database, enough func(done int) bool) (latencies, error) {
	const stride = 7 // so that the one after a database of three instances is not always of one
	var written, taken []float64
	for i := 0; !enough(i); i++ {
		w, t, err := b.editOne(ctx, dbs[i*stride%len(dbs)])
		if err != nil {
			return latencies{}, err
		}
		written, taken = append(written, w), append(taken, t)
		time.Sleep(betweenEdits)
	}
	return latenciesOf(written, taken), nil
}

// editOne changes a parameter of one SampleDB, and returns after how many milliseconds the operator has written its
// ConfigMap, and after how many all its agents have it.
func (b *bench) editOne(ctx context.Context, db database) (written, taken float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value := b.next()
	config := b.seen.expect(configHas(db.String(), value))
	var agents []<-chan time.Time
	for _, instance := range db.instances() {
		agents = append(agents, b.seen.expect(agentHas(instance.String(), value)))
	}
	began := time.Now()
	if err := b.set(ctx, db, reloads, value); err != nil {
		return 0, 0, err
	}
	at, err := await(ctx, "the ConfigMap of "+db.String(), config)
	if err != nil {
		return 0, 0, err
	}
	last := at
	for _, agent := range agents {
		given, err := await(ctx, "an agent of "+db.String(), agent)
		if err != nil {
			return 0, 0, err
		}
		if given.After(last) {
			last = given
		}
	}
	return milliseconds(at.Sub(began)), milliseconds(last.Sub(began)), nil
}

// next is a value that no parameter has had.
func (b *bench) next() string {
	const least = 5000
	b.value++
	return fmt.Sprintf("%dkB", least+b.value)
}

// set sets a parameter in the spec of a SampleDB.
func (b *bench) set(ctx context.Context, db database, parameter, value string) error {
	object := &v1.SampleDB{}
	if err := b.Get(ctx, db.NamespacedName, object); err != nil {
		return err
	}
	was := object.DeepCopy()
	if object.Spec.PostgreSQL.Parameters == nil {
		object.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{}
	}
	object.Spec.PostgreSQL.Parameters[parameter] = v1.ParameterValue(value)
	return b.Patch(ctx, object, client.MergeFrom(was))
}

// restAll measures all sizes at rest, at the same time.
func (o options) restAll(ctx context.Context, all []*bench) error {
	begin := time.Now()
	for _, b := range all {
		if later := b.began.Add(o.settle); later.After(begin) {
			begin = later
		}
	}
	say("all rest: from %s for %s", begin.Format(time.TimeOnly), o.rest)
	if err := sleep(ctx, time.Until(begin)); err != nil {
		return err
	}
	before := make([]usage, len(all))
	for i, b := range all {
		var err error
		if before[i], err = b.operator.usage(); err != nil {
			return err
		}
	}
	if err := sleep(ctx, o.rest); err != nil {
		return err
	}
	for i, b := range all {
		if err := b.rested(before[i], begin, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rested notes what the operator has used since it was looked at before.
func (b *bench) rested(before usage, from, until time.Time) error {
	now, err := b.operator.usage()
	if err != nil {
		return err
	}
	asked, err := b.server.requests(from, until)
	if err != nil {
		return err
	}
	b.found.Rest = resting{
		Seconds: until.Sub(from).Seconds(), Memory: megabytes(now.memory), Own: megabytes(now.own),
		Cores: (now.cpu - before.cpu).Seconds() / until.Sub(from).Seconds(), Requests: asked,
	}
	return nil
}

// storm changes a parameter that needs a restart of all SampleDBs but the first, at once, and edits that one meanwhile.
func (b *bench) storm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const value = "150"
	var written, restarted []<-chan time.Time
	others := b.dbs[1:]
	for _, db := range others {
		written = append(written, b.seen.expect(configHas(db.String(), value)))
		for _, instance := range db.instances() {
			restarted = append(restarted, b.seen.expect(agentRuns(instance.String(), value)))
		}
	}
	over, failed := make(chan struct{}), make(chan error, 1)
	began := time.Now()
	go func() {
		defer close(over)
		failed <- errors.Join(
			atOnce(others, func(db database) error { return b.set(ctx, db, needsRestart, value) }),
			last(ctx, "a ConfigMap", written, began, &b.found.Storm.Written),
			last(ctx, "a restart", restarted, began, &b.found.Storm.Restarted))
	}()
	found, err := b.edit(ctx, b.dbs[:1], func(int) bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	b.found.Storm.Edits = found
	if err := errors.Join(err, <-failed, b.untilReady(ctx)); err != nil {
		return err
	}
	b.found.Storm.Ready = time.Since(began).Seconds()
	used, err := b.operator.usage()
	b.found.Storm.Memory = megabytes(used.most)
	return err
}

// last says after how many seconds the last of all was seen.
func last(ctx context.Context, what string, all []<-chan time.Time, began time.Time, into *float64) error {
	for _, one := range all {
		at, err := await(ctx, what, one)
		if err != nil {
			return err
		}
		*into = max(*into, at.Sub(began).Seconds())
	}
	return nil
}

// trouble lets the agents of some SampleDBs hang, has the operator ask them all at once, and edits the others.
func (b *bench) trouble(ctx context.Context) error {
	var ill, well []database
	for _, db := range b.dbs {
		if db.number%troubled == 0 {
			ill = append(ill, db)
		} else {
			well = append(well, db)
		}
	}
	for _, a := range b.kubelet.of(ill) {
		a.hangs.begin()
	}
	value := b.next()
	err := atOnce(ill, func(db database) error { return b.set(ctx, db, reloads, value) })
	if err == nil {
		b.found.Trouble, err = b.edit(ctx, well, func(done int) bool { return done >= b.edits })
	}
	for _, a := range b.kubelet.of(ill) {
		a.hangs.end()
	}
	return errors.Join(err, b.untilReady(ctx))
}
