package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	corev1 "k8s.io/api/core/v1"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

const (
	// warmUp is how long all goes well before a fault, settle how long writes must
	// have come again before it is healed, and how long all must have been whole.
	warmUp = 2 * time.Second
	settle = 3 * time.Second
	// steadyGap is the longest time without an acknowledgement that is no outage.
	steadyGap = 500 * time.Millisecond
	// checkTimeout is for porcupine.
	checkTimeout = 60 * time.Second
	// creation is how long the SampleDB may take to become whole at first.
	creation = 4 * time.Minute
	// lookEvery is how often it is looked whether all is whole.
	lookEvery = 250 * time.Millisecond
	// writersEach is the number of writers on each of the two paths.
	writersEach = 3
)

// drill is the cluster and the database that is broken.
type drill struct {
	world
	options   options
	localkube localkube
	cluster   cluster
	way       way
	third     way // that of the shape, where there is one
	resolver  *net.Resolver
	book      *book
	began     time.Time
}

// begin makes the database. It refuses a cluster in which something is broken already.
func begin(ctx context.Context, o options) (*drill, error) {
	like, err := shapeNamed(o.shape)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(like)
	if err != nil {
		return nil, err
	}
	d := &drill{world: w, options: o, localkube: localkube(o.localkube), book: &book{}, began: time.Now()}
	if d.cluster, err = d.localkube.status(ctx); err != nil {
		return nil, err
	}
	if d.cluster.Cluster != "up" || len(d.cluster.Faults) > 0 {
		return nil, fmt.Errorf("the cluster is %s, with %d faults; localkube up mends it",
			d.cluster.Cluster, len(d.cluster.Faults))
	}
	if d.resolver, err = d.cluster.resolver(); err != nil {
		return nil, err
	}
	return d, d.renew(ctx)
}

// renew makes the database anew: at first, and after it did not get whole again.
func (d *drill) renew(ctx context.Context) error {
	d.say("a new database is made: %s", d.shape.about)
	d.leaveWays(ctx)
	if err := d.remove(ctx); err != nil {
		return err
	}
	if err := d.create(ctx); err != nil {
		return err
	}
	if err := d.untilReady(ctx); err != nil {
		return err
	}
	return until(ctx, creation, func(ctx context.Context) error {
		access, err := d.world.access(ctx)
		if err == nil && d.shape.third != "" {
			var third outside.Access
			third, err = d.world.accessByThird(ctx)
			d.third.set(third)
		}
		d.way.set(access)
		return err
	})
}

func (d *drill) leaveWays(ctx context.Context) {
	d.way.leave(ctx)
	d.third.leave(ctx)
}

// end removes the database.
func (d *drill) end(ctx context.Context) {
	d.say("the namespace %s is removed", namespace)
	ctx = context.WithoutCancel(ctx)
	d.leaveWays(ctx)
	if err := d.remove(ctx); err != nil {
		d.say("%v", err)
	}
	now, err := d.localkube.status(ctx)
	if err != nil || len(now.Faults) > 0 {
		d.say("faults are left: %v %v; localkube up mends them", now.Faults, err)
	}
}

func (d *drill) say(format string, args ...any) {
	fmt.Printf("%7.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts all clients.
func (d *drill) start(ctx context.Context) *clients {
	running, stop := context.WithCancel(ctx)
	c := &clients{history: newHistory(), context: running, stop: stop}
	hosts := make([]string, d.shape.instances)
	for i := range hosts {
		hosts[i] = instanceHost(i)
	}
	always := func() bool { return true }
	access := d.way.get()
	service, multi := serviceDoor(d.way.get), multiDoor(access, hosts, d.resolver)
	for range writersEach {
		c.writer(running, service, always)
		c.writer(running, multi, always)
	}
	c.registrar(running, 0, service, always)
	c.registrar(running, 1, service, always)
	c.registrar(running, 2, multi, always)
	if d.shape.third != "" {
		third := thirdDoor(d.shape.third, d.third.get)
		for range writersEach {
			c.writer(running, third, always)
		}
		c.registrar(running, 3+len(hosts), third, always)
	}
	for i, instance := range d.shape.members() {
		host := hosts[i]
		local := func() door { return localDoor(access, instance, host, d.book.where) }
		c.probe(running, instance, local())
		c.writer(running, local(), c.primaryNow(instance))
		c.writer(running, local().patient(), c.primaryNow(instance))
		c.registrar(running, 3+i, local(), c.primaryNow(instance))
	}
	c.running.Go(func() { d.book.keep(running, d.world) })
	c.running.Go(func() { d.followService(running) })
	c.running.Go(func() { d.watchRoutes(running, c.history) })
	return c
}

// round makes one fault, heals it, waits until all is whole, and judges.
func (d *drill) round(ctx context.Context, f fault) (r Run, err error) {
	r = Run{Fault: f.name, Shape: d.shape.name, Pause: f.pause.Seconds(), At: time.Now().UTC()}
	if err := d.freshen(ctx); err != nil {
		return r, err
	}
	if f.operator {
		if err := until(ctx, 3*time.Minute, d.operatorLeads); err != nil {
			return r, err
		}
	}
	s, err := d.prepare(ctx, f)
	if err != nil {
		return r, err
	}
	relieve, err := d.shape.burden(2*d.options.hold + d.options.lossy + d.options.patience)
	if err != nil {
		return r, err
	}
	defer relieve()
	c := d.start(ctx)
	defer func() {
		c.stop()
		c.running.Wait()
	}()
	s.history = c.history
	defer func() { r.Notes = append(s.notes, r.Notes...) }()
	if err := d.first(ctx, c, s); err != nil {
		return r, err
	}
	defer func() {
		if len(s.undo) > 0 { // something went wrong on the way
			err = errors.Join(err, s.heal(context.WithoutCancel(ctx)))
		}
	}()
	end, err := d.strike(ctx, c, s, f, &r)
	relieve()
	c.stop()
	c.running.Wait()
	if s.t0 == 0 || end == 0 {
		return r, err
	}
	r.judge(c, f, s.t0, end)
	return r, errors.Join(err, ctx.Err(), d.look(ctx, c, &r))
}

// strike makes the fault, heals it, and waits until all is whole: that is the end,
// which is 0 where it did not get so far.
func (d *drill) strike(ctx context.Context, c *clients, s *scene, f fault, r *Run) (end time.Duration, err error) {
	if f.prepare != nil {
		if err := f.prepare(ctx, s); err != nil {
			return 0, err
		}
	}
	primary := s.primary
	if err := f.inject(ctx, s); err != nil {
		return 0, err
	}
	d.say("%s struck: %s on %s", f.name, primary.name, primary.node)
	watched := d.watchWhole(c, s)
	r.ByItself = d.wait(ctx, c, s, f)
	healed := s.t0
	if len(s.undo) > 0 {
		if err := s.heal(ctx); err != nil {
			return 0, err
		}
		healed = c.history.now()
	}
	since, err := d.untilWhole(ctx, c.history, watched, f)
	r.Whole = seconds(max(0, since-healed))
	return c.history.now(), err
}

// freshen replaces the standbys' Pods whose containers have ended before: the kubelet
// starts such a one ever later, for minutes in the end, which is about earlier rounds.
func (d *drill) freshen(ctx context.Context) error {
	pods, err := d.user.Pods(ctx, name)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		ended := slices.ContainsFunc(pod.Status.ContainerStatuses,
			func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
		if !ended || pod.Labels[naming.LabelRole] != string(protocol.RoleStandby) {
			continue
		}
		if _, err := d.user.Kubectl(ctx, "delete", "pod", pod.Name); err != nil {
			return err
		}
		if err := d.untilReady(ctx); err != nil {
			return fmt.Errorf("after %s was replaced: %w", pod.Name, err)
		}
	}
	return nil
}

// untilReady waits until all instances are there.
func (d *drill) untilReady(ctx context.Context) error {
	return until(ctx, creation, func(ctx context.Context) error {
		if err := d.book.read(ctx, d.world); err != nil {
			return err
		}
		db, err := d.user.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		return outside.Condition(db, "Ready", "True", "")
	})
}

// prepare chooses who plays which part, makes the tables, and the way to the Service.
func (d *drill) prepare(ctx context.Context, f fault) (*scene, error) {
	if err := d.book.read(ctx, d.world); err != nil {
		return nil, err
	}
	s := &scene{
		world: d.world, localkube: d.localkube, cluster: d.cluster, book: d.book, access: d.way.get, say: d.say,
	}
	var primary string
	err := until(ctx, creation, func(ctx context.Context) (err error) {
		// A Service may still lead to the primary before, as long as a kube-proxy that has lost the
		// API does not know better.
		primary, err = d.way.get().Ask(ctx, "SELECT current_setting('cluster_name') WHERE NOT pg_is_in_recovery()")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("nobody takes writes before %s: %w", f.name, err)
	}
	if err := s.cast(primary); err != nil {
		return nil, fmt.Errorf("before %s: %w", f.name, err)
	}
	if err := d.way.by(ctx, d.cluster, s.clientsNode()); err != nil {
		return nil, err
	}
	if d.shape.third != "" {
		if err := d.third.by(ctx, d.cluster, s.clientsNode()); err != nil {
			return nil, err
		}
	}
	return s, until(ctx, time.Minute, func(ctx context.Context) error { return d.way.get().Do(ctx, tables) })
}

// first waits until all is well with the clients running.
func (d *drill) first(ctx context.Context, c *clients, s *scene) error {
	err := until(ctx, d.options.patience, func(ctx context.Context) error {
		if err := d.whole(ctx, c.history); err != nil {
			return err
		}
		if now := c.history.now(); now < warmUp || !d.flows(c, now-warmUp, now) {
			return errors.New("the writers have not been acknowledged without a gap")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("before the fault: %w", err)
	}
	for name, seen := range c.latest(time.Second) {
		if seen.primary && name != s.primary.name {
			return fmt.Errorf("before the fault: %s became the primary", name)
		}
	}
	return nil
}

// flows says whether every way in was acknowledged without an outage between two times.
func (d *drill) flows(c *clients, from, to time.Duration) bool {
	return d.steady(c, from, to, steadyGap)
}

// flowed says whether every way in was acknowledged at all between two times.
func (d *drill) flowed(c *clients, from, to time.Duration) bool {
	return d.steady(c, from, to, to-from-1)
}

func (d *drill) steady(c *clients, from, to, gap time.Duration) bool {
	ways := []Path{PathService, PathMulti}
	if d.shape.third != "" {
		ways = append(ways, d.shape.third)
	}
	return !slices.ContainsFunc(ways, func(p Path) bool { return !steady(c.acks(p), from, to, gap) })
}

// wait waits until writes have come again for a while, and the fault has lasted as
// long as it should. It says whether they came before the patience with it was over.
func (d *drill) wait(ctx context.Context, c *clients, s *scene, f fault) bool {
	most := max(d.options.hold, f.lasts+settle)
	if len(s.undo) == 0 {
		most = d.options.patience
	}
	for ctx.Err() == nil {
		now := c.history.now()
		lasted := now - s.last
		changed := f.least == 0 || len(c.leaders()) > f.least
		if lasted >= settle+f.lasts && d.flows(c, now-settle, now) && (changed || lasted > d.options.hold) {
			return true
		}
		if lasted > most {
			return d.flowed(c, now-settle, now)
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
	return false
}

// watch says since when all is whole.
type watch struct {
	mutex     sync.Mutex
	since     time.Duration
	complaint error
}

// watchWhole looks whether all is whole until the clients stop.
func (d *drill) watchWhole(c *clients, s *scene) *watch {
	w := &watch{since: c.history.now(), complaint: errors.New("nobody has looked yet")}
	c.every(c.context, lookEvery, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, apiTimeout)
		defer cancel()
		before := c.history.now()
		complaint := d.whole(ctx, c.history)
		if complaint == nil {
			complaint = s.complete(ctx)
		}
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if complaint == nil && w.complaint != nil {
			w.since = before
		}
		w.complaint = complaint
		return true
	}, func() {})
	return w
}

// untilWhole waits until all has been whole for a while, and returns when that
// while began.
func (d *drill) untilWhole(ctx context.Context, h *history, w *watch, f fault) (time.Duration, error) {
	from := h.now()
	err := until(ctx, d.options.patience, func(context.Context) error {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if w.complaint == nil && h.now()-max(w.since, from) < settle {
			return errors.New("it has only just become whole")
		}
		return w.complaint
	})
	if err != nil {
		return h.now(), fmt.Errorf("after %s it does not get whole again: %w", f.name, err)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.since, nil
}

// look looks all acknowledged writes up, and checks the registers.
func (d *drill) look(ctx context.Context, c *clients, r *Run) error {
	acks := c.acks(allPaths...)
	var there []int64
	err := until(ctx, time.Minute, func(ctx context.Context) (err error) {
		there, err = d.ids(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("look the acknowledged writes up: %w", err)
	}
	r.Acked, r.LostIDs = len(acks), missing(acks, there)
	r.Lost = len(r.LostIDs)
	if r.Lost > 10 {
		r.LostIDs = slices.Clip(r.LostIDs[:10])
	}
	operations := c.registers.all()
	result, info := linearizable(operations, checkTimeout)
	r.Operations, r.Linearizable = len(operations), string(result)
	if result != porcupine.Illegal {
		return nil
	}
	file := filepath.Join(d.options.histories, fmt.Sprintf("drill-%s-%d.html", r.Fault, r.At.Unix()))
	if err := errors.Join(os.MkdirAll(d.options.histories, 0o755),
		porcupine.VisualizePath(model, info, file)); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	if d.shape.mayLose { // a lost write makes it so
		r.Notes = append(r.Notes, "the history is in "+file)
		return nil
	}
	r.Problems = append(r.Problems, "the history is in "+file)
	return nil
}

// keepLogs keeps what the instances say of a round, and says where.
func (d *drill) keepLogs(ctx context.Context, r *Run) []string {
	var kept []string
	for _, pod := range d.shape.members() {
		file := filepath.Join(d.options.histories, fmt.Sprintf("drill-%s-%d-%s.log", r.Fault, r.At.Unix(), pod))
		text, err := d.user.Kubectl(ctx, "logs", pod)
		if before, none := d.user.Kubectl(ctx, "logs", pod, "--previous"); none == nil {
			text = before + text
		}
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			d.say("the log of %s: %v", pod, err)
			continue
		}
		kept = append(kept, "its log is in "+file)
	}
	return kept
}

func (d *drill) ids(ctx context.Context) ([]int64, error) {
	conn, err := d.way.get().Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	var ids []int64
	err = conn.QueryRow(ctx, "SELECT coalesce(array_agg(id), '{}') FROM drill_write").Scan(&ids)
	return ids, err
}
