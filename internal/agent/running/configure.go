package running

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

const (
	// reloadDeadline is how long a server may take to read its configuration again.
	reloadDeadline = 3 * time.Second
	// refusalDeadline is how long a server that does not like its configuration
	// may take to say so. One that still starts after it is recovering.
	refusalDeadline = 10 * time.Second
	// checkDeadline is how long PostgreSQL may take to say whether it takes a configuration.
	checkDeadline = 30 * time.Second
	// revisionDefaults is that of PostgreSQL's defaults.
	revisionDefaults = "defaults"
)

// configured is the server whose configuration it is: a postgres.Server.
type configured interface {
	Check(ctx context.Context, settings postgres.Settings) error
	Configure(settings postgres.Settings) error
}

// reloaded reads its configuration again: a postgres.Process.
type reloaded interface{ Reload() error }

// configSession is by what is seen what the server makes of it: a postgres.Session.
type configSession interface {
	ConfigErrors(ctx context.Context) error
	LoadTime(ctx context.Context) (time.Time, error)
	PendingRestart(ctx context.Context) ([]string, error)
}

// configuration is that of a running server: what it was started with, and how it comes to run with what is wanted.
type configuration struct {
	name   string // the instance's
	server configured
	// startServer starts the server, connect makes a session with it.
	startServer func(ctx context.Context) (Process, error)
	connect     func(ctx context.Context) (Session, error)
	// makeTablespace makes the folder of a tablespace that a server has ended for, and says whether it did.
	makeTablespace func(Process) bool
	// login proves that a session of a client's kind begins.
	login func(ctx context.Context) error
	// wanted is the config as last given, good what remains when that is unusable.
	wanted func() protocol.Config
	good   LastKnownGood
	// withRole adds to settings what follows from the server's role.
	withRole func(postgres.Settings) (postgres.Settings, error)
	// started is called as soon as there is a process, which may be ended from then on, look
	// when there is something new.
	started func(Process)
	look    func()
	report  configReport
	log     *slog.Logger
	life    context.Context //nolint:containedctx // it is the server's, not a caller's

	process reloaded
	// files guards the configuration files and what is in them.
	files    pause.Lock
	settings postgres.Settings
	// shut is since when it is known that the server lets no client in, zero where it does, or that is not known.
	shut time.Time
	runs candidate
	// unsure says that another configuration may have been read than that of runs and settings.
	unsure bool
	// turns counts what the server ran with.
	turns int
	judgement
	check configCheck
	// Unruled says that commits may not wait though a rule is in the configuration: the server has run without any, and
	// only its checkpointer knows whether it has read another since.
	Unruled atomic.Bool
}

// candidates are the configurations to start with, in the order to try: the
// wanted one, the last that was good, and PostgreSQL's defaults.
func (c *configuration) candidates() []candidate {
	config := c.wanted()
	list := []candidate{{config.Revision, config.Parameters, config.HBA}}
	if g, ok := c.good.load(); ok && g.Revision != config.Revision {
		list = append(list, g)
	}
	if len(config.HBA) > 0 { // who may log in from where is to hold as long as it can
		list = append(list, candidate{Revision: revisionDefaults, HBA: config.HBA})
	}
	return append(list, candidate{Revision: revisionDefaults})
}

// start starts the server with the first configuration that it takes. The
// others' refusals are reported.
func (c *configuration) start(ctx context.Context) error {
	var refused error
	candidates := c.candidates()
	for i, candidate := range candidates {
		err := c.startWith(ctx, candidate)
		if err == nil {
			c.report.remember(candidate, candidates[0].Revision, refused)
			return nil
		}
		if ctx.Err() != nil || i > 0 && !isRefusal(err) {
			return err
		}
		if refused == nil {
			refused = err
		}
	}
	return refused
}

// endedError says that a server has ended before it was ready: what it was started with may be why.
type endedError struct{ error }

// judgement is what is known of whether sessions begin under what runs.
type judgement struct {
	// judged says that it is known, since is the time from which on it is.
	judged bool
	since  time.Time
	// innocent says that sessions are refused under others too.
	innocent bool
	// suspicion is of another configuration, which is not run with meanwhile; nil for none.
	suspicion *suspicion
}

// isRefusal says that PostgreSQL has refused a configuration, or has ended with it. That it has not answered is none.
func isRefusal(err error) bool {
	var rejected *postgres.RejectedError
	var ended endedError
	return errors.As(err, &rejected) || errors.As(err, &ended)
}

// startWith tries one configuration.
func (c *configuration) startWith(ctx context.Context, candidate candidate) error {
	settings, err := c.settingsOf(candidate)
	if err != nil {
		return err
	}
	if err := c.server.Check(ctx, settings); err != nil {
		return err
	}
	if err := c.server.Configure(settings); err != nil {
		return err
	}
	for again := true; again; {
		if again, err = c.launch(ctx); err != nil && !again {
			return err
		}
	}
	c.files.Lock()
	defer c.files.Unlock()
	c.run(settings, candidate)
	return nil
}

// launch starts the server with what is in its files. It is to be started again where what it ended for is there now.
func (c *configuration) launch(ctx context.Context) (again bool, err error) {
	process, err := c.startServer(ctx)
	if err != nil {
		return false, err
	}
	c.process = process
	c.started(process)
	soon, cancel := context.WithTimeout(ctx, refusalDeadline)
	defer cancel()
	if err = process.Ready(soon); err == nil || ctx.Err() == nil && soon.Err() != nil {
		return false, nil
	}
	ended := Ended(process)
	process.Stop(ctx, postgres.StopFast)
	if ended {
		return c.makeTablespace(process), endedError{err}
	}
	return false, err
}

// apply makes the running server follow the config: parameters and
// pg_hba.conf by reload, and what follows from role and quorum. A refused one
// leaves the server as it was.
func (c *configuration) apply(ctx context.Context, session configSession) error {
	config := c.wanted()
	c.files.Lock()
	defer c.files.Unlock()
	err := c.follow(ctx, session, config)
	var rejected *postgres.RejectedError
	if errors.As(err, &rejected) {
		c.report.refuse(config.Revision, rejected)
		// What follows from the role and the rule for commits is to hold all the same.
		return c.follow(ctx, session, config)
	}
	return err
}

// follow does so. It is called with the files locked.
func (c *configuration) follow(ctx context.Context, session configSession, config protocol.Config) error {
	wanted, err := c.toRun(config)
	if err != nil {
		return err
	}
	settings, err := c.settingsOf(wanted)
	if err != nil {
		return err
	}
	same := wanted.Revision == c.runs.Revision && reflect.DeepEqual(settings, c.settings)
	if same && c.knowsShut() && !c.unsure {
		c.report.accept(wanted.Revision, config.Revision)
		return nil
	}
	if err := c.reload(ctx, session, settings); err != nil {
		return err
	}
	return c.adopt(ctx, session, settings, wanted, config.Revision)
}

// toRun is the wanted configuration once PostgreSQL has said that it takes it, and until then what runs. It is
// called with the files locked.
func (c *configuration) toRun(config protocol.Config) (candidate, error) {
	wanted := candidate{config.Revision, config.Parameters, config.HBA}
	if c.report.rejected(config.Revision) {
		if c.runs.Revision != config.Revision {
			return c.runs, nil
		}
		g, ok := c.good.load()
		if !ok {
			g = candidate{Revision: revisionDefaults, HBA: config.HBA}
		}
		return g, nil
	}
	if wanted.Revision == c.runs.Revision {
		return wanted, nil
	}
	if c.suspicion != nil && c.suspicion.tried.Revision == wanted.Revision {
		return c.runs, nil
	}
	settings, err := c.settingsOf(wanted)
	if err != nil {
		return candidate{}, err
	}
	known, err := c.check.outcome(wanted.Revision, func() error { return c.checkAside(settings) }, c.look)
	if !known {
		return c.runs, nil
	}
	return wanted, err
}

// checkAside asks PostgreSQL whether it takes settings, for as long as this server runs.
func (c *configuration) checkAside(settings postgres.Settings) error {
	ctx, cancel := context.WithTimeout(c.life, checkDeadline)
	defer cancel()
	err := c.server.Check(ctx, settings)
	var rejected *postgres.RejectedError
	if err != nil && !errors.As(err, &rejected) {
		c.log.Warn("PostgreSQL could not be asked about the configuration; it is asked again", "error", err.Error())
	}
	return err
}

// adopt reports a reloaded configuration together with what of it waits for a
// restart.
func (c *configuration) adopt(
	ctx context.Context, session configSession, settings postgres.Settings, runs candidate, wanted string,
) error {
	pending, err := session.PendingRestart(ctx)
	if err != nil {
		return err
	}
	if runs.Revision != c.runs.Revision {
		c.suspicion = nil // another one is wanted than the one that is suspected
	}
	c.run(settings, runs)
	c.report.pending(pending)
	c.report.accept(runs.Revision, wanted)
	return nil
}

// keep stores the configuration that the server runs with as the good one.
// Where that fails, say on a full disk, the one before remains, and the server
// runs all the same.
func (c *configuration) keep(g candidate) {
	if err := c.good.store(g); err != nil {
		c.log.Warn("the good configuration could not be kept", "error", err.Error())
	}
}

// reload writes and loads a configuration. When PostgreSQL refuses it, the files are put back.
func (c *configuration) reload(ctx context.Context, session configSession, settings postgres.Settings) error {
	unsure := c.unsure
	c.unsure = true
	if err := c.server.Configure(settings); err != nil {
		return err
	}
	if err := session.ConfigErrors(ctx); err != nil {
		back := c.server.Configure(c.settings)
		c.unsure = unsure || back != nil
		return errors.Join(err, back)
	}
	before, err := session.LoadTime(ctx)
	if err != nil {
		return err
	}
	if err := c.process.Reload(); err != nil {
		return err
	}
	return awaitReload(ctx, session, before)
}

func awaitReload(ctx context.Context, session configSession, before time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, reloadDeadline)
	defer cancel()
	for {
		at, err := session.LoadTime(ctx)
		if err != nil {
			return err
		}
		if at.After(before) {
			return nil
		}
		if !pause.For(ctx, 10*time.Millisecond) {
			return fmt.Errorf("the server does not read its configuration again: %w", ctx.Err())
		}
	}
}

// settingsOf are all settings of a configuration, with what follows from the role.
func (c *configuration) settingsOf(g candidate) (postgres.Settings, error) {
	return c.withRole(postgres.Settings{Name: c.name, Parameters: g.Parameters, HBA: g.HBA})
}

// ApplyNow is apply with a session of its own.
func (c *configuration) ApplyNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*reloadDeadline)
	defer cancel()
	session, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	return c.apply(ctx, session)
}

// Rewrite writes the configuration anew with the role, the upstream and the rule as
// they are now, and has the server read it.
func (c *configuration) Rewrite() error {
	c.files.Lock()
	defer c.files.Unlock()
	settings, err := c.withRole(c.settings)
	if err != nil {
		return err
	}
	if err := c.server.Configure(settings); err != nil {
		return err
	}
	c.use(settings)
	return c.process.Reload()
}

// run notes with which configuration the server runs from now on, as far as that needs no restart. It is called with
// the files locked.
func (c *configuration) run(settings postgres.Settings, runs candidate) {
	if runs.Revision != c.runs.Revision {
		c.judged, c.innocent = false, false
	}
	c.unsure = false
	c.turns++
	c.use(settings)
	c.seeShut()
	c.runs = runs
}

// use notes the settings that the server runs with from now on. It is called with the files locked.
func (c *configuration) use(settings postgres.Settings) {
	if settings.Closed != c.settings.Closed {
		c.shut = time.Time{}
	}
	c.settings = settings
	if settings.Synchronous == "" {
		c.Unruled.Store(true)
	}
}

// seeShut notes when the server has read that it lets no client in. It is called with the files locked.
func (c *configuration) seeShut() {
	if c.settings.Closed && c.shut.IsZero() {
		c.shut = time.Now()
	}
}

// knowsShut says that nothing has to be read anew to know since when no client is let in. It is called with the files
// locked.
func (c *configuration) knowsShut() bool { return !c.settings.Closed || !c.shut.IsZero() }

// closed says since when the server lets no client in.
func (c *configuration) closed() (since time.Time, closed bool) {
	c.files.Lock()
	defer c.files.Unlock()
	return c.shut, c.settings.Closed && !c.shut.IsZero()
}

// spares says that the server runs as one whose volume gets full.
func (c *configuration) spares() bool {
	c.files.Lock()
	defer c.files.Unlock()
	return c.settings.Sparing != nil
}
