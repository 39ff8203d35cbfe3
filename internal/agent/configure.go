package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
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
)

// good is what the server last ran with: it is what remains when a new
// configuration turns out to be unusable.
type good struct {
	Revision   string            `json:"revision"`
	Parameters map[string]string `json:"parameters"`
	HBA        []string          `json:"hba"`
}

func (a *Agent) goodFile() string { return filepath.Join(a.Volume, folderState, "good.json") }

func (a *Agent) loadGood() (good, bool) {
	var g good
	text, err := os.ReadFile(a.goodFile())
	if err != nil {
		return g, false
	}
	return g, json.Unmarshal(text, &g) == nil
}

func (a *Agent) storeGood(g good) error {
	text, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode the good configuration: %w", err)
	}
	return postgres.WriteFile(a.goodFile(), text, 0o600)
}

// candidates are the configurations to start with, in the order to try: the
// wanted one, the last that was good, and PostgreSQL's defaults.
func (a *Agent) candidates() []good {
	config := a.currentConfig()
	list := []good{{config.Revision, config.Parameters, config.HBA}}
	if g, ok := a.loadGood(); ok && g.Revision != config.Revision {
		list = append(list, g)
	}
	return append(list, good{Revision: "defaults"})
}

// startServer starts the server with the first configuration that it takes. The
// others' refusals are reported.
func (r *running) startServer(ctx context.Context) error {
	var refused error
	candidates := r.candidates()
	for i, candidate := range candidates {
		err := r.startWith(ctx, candidate)
		if err == nil {
			r.remember(candidate, candidates[0].Revision, refused)
			if i == 0 {
				r.keep(candidate)
			}
			return nil
		}
		var rejected *postgres.RejectedError
		if ctx.Err() != nil || (i > 0 && !errors.As(err, &rejected)) {
			return err
		}
		if refused == nil {
			refused = err
		}
	}
	return refused
}

// startWith tries one configuration.
func (r *running) startWith(ctx context.Context, candidate good) error {
	settings, err := r.withRole(r.plain(candidate))
	if err != nil {
		return err
	}
	if err := r.server.Check(ctx, settings); err != nil {
		return err
	}
	if err := r.server.Configure(settings); err != nil {
		return err
	}
	process, err := r.server.Start(ctx, r.ServerLog)
	if err != nil {
		return err
	}
	r.process = process
	r.current.Store(r) // whoever ends the server at once finds it
	soon, cancel := context.WithTimeout(ctx, refusalDeadline)
	defer cancel()
	if err := process.Ready(soon); err != nil && (ctx.Err() != nil || soon.Err() == nil) {
		process.Stop(ctx, postgres.StopFast)
		return err
	}
	r.use(settings)
	r.runs = candidate
	return nil
}

// plain are the settings of a configuration, without what follows from the role.
func (r *running) plain(g good) postgres.Settings {
	return postgres.Settings{Name: r.Name, Parameters: g.Parameters, HBA: g.HBA}
}

// remember reports which configuration runs, and why not the wanted one.
func (r *running) remember(running good, wanted string, refused error) {
	r.report(func(s *protocol.Status) {
		s.ConfigRevision, s.ConfigError, s.RejectedRevision, s.PendingRestart = running.Revision, "", "", nil
		if refused != nil {
			s.ConfigError, s.RejectedRevision = words(refused), wanted
		}
	})
}

// words are PostgreSQL's, where it said why.
func words(err error) string {
	var rejected *postgres.RejectedError
	if errors.As(err, &rejected) {
		return rejected.Words
	}
	return err.Error()
}

// applyConfig makes the running server follow the config: parameters and
// pg_hba.conf by reload, and what follows from role and quorum. A refused one
// leaves the server as it was.
func (r *running) applyConfig(ctx context.Context, session *postgres.Session) error {
	config := r.currentConfig()
	r.files.Lock()
	defer r.files.Unlock()
	wanted, err := r.configToRun(config)
	var rejected *postgres.RejectedError
	if errors.As(err, &rejected) {
		r.refuse(config.Revision, rejected)
		return nil
	}
	if err != nil {
		return err
	}
	settings, err := r.withRole(r.plain(wanted))
	if err != nil {
		return err
	}
	if wanted.Revision == r.runs.Revision && reflect.DeepEqual(settings, r.settings) {
		r.accept(wanted.Revision, config.Revision)
		return nil
	}
	err = r.reload(ctx, session, settings)
	if errors.As(err, &rejected) {
		r.refuse(config.Revision, rejected)
		return nil
	}
	if err != nil {
		return err
	}
	return r.adopt(ctx, session, settings, wanted, config.Revision)
}

// configToRun is the wanted configuration once PostgreSQL has said that it takes it, and until then what runs. It is
// called with the files locked.
func (r *running) configToRun(config protocol.Config) (good, error) {
	wanted := good{config.Revision, config.Parameters, config.HBA}
	if r.Status().RejectedRevision == config.Revision {
		g, ok := r.loadGood()
		if !ok {
			g = good{Revision: "defaults"}
		}
		return g, nil
	}
	if wanted.Revision == r.runs.Revision {
		return wanted, nil
	}
	settings, err := r.withRole(r.plain(wanted))
	if err != nil {
		return good{}, err
	}
	known, err := r.check.outcome(wanted.Revision, func() error { return r.checkAside(settings) }, r.look)
	if !known {
		return r.runs, nil
	}
	return wanted, err
}

// checkAside asks PostgreSQL whether it takes settings, for as long as this server runs.
func (r *running) checkAside(settings postgres.Settings) error {
	ctx, cancel := context.WithTimeout(r.life, checkDeadline)
	defer cancel()
	err := r.server.Check(ctx, settings)
	var rejected *postgres.RejectedError
	if err != nil && !errors.As(err, &rejected) {
		r.Log.Warn("PostgreSQL could not be asked about the configuration; it is asked again", "error", err.Error())
	}
	return err
}

// refuse reports why the wanted configuration does not run.
func (r *running) refuse(revision string, rejected *postgres.RejectedError) {
	r.Log.Warn("the configuration is refused", "revision", revision, "error", rejected.Words)
	r.report(func(s *protocol.Status) { s.ConfigError, s.RejectedRevision = rejected.Words, revision })
}

// demand makes commits wait by a rule. A demand that is still being carried out is given up, and over before this one begins.
func (a *Agent) demand(e machine.Demand) {
	a.giveUpDemand()
	var ctx context.Context
	ctx, a.undemand = context.WithTimeout(a.life, barrierDeadline)
	go func() {
		a.demanding.Lock()
		defer a.demanding.Unlock()
		a.post(machine.Done{ID: e.ID, Err: text(a.enforce(ctx, e))})
	}()
}

// giveUpDemand gives up the demand that is being carried out.
func (a *Agent) giveUpDemand() {
	if a.undemand != nil {
		a.undemand()
	}
}

// require has commits wait by a rule from the first of a server on. No demand of one before is carried out any more then.
func (a *Agent) require(rule ha.Rule) {
	a.demanding.Lock()
	defer a.demanding.Unlock()
	a.requirement.Store(&rule)
}

// barrierDeadline is how long a change of the rule may wait for the standbys to have all WAL.
const barrierDeadline = 5 * time.Second

// enforce returns when the rule is in force, and, with a barrier, all that was acknowledged before is where it asks for it.
func (a *Agent) enforce(ctx context.Context, e machine.Demand) error {
	r := a.leading()
	if r == nil {
		return errNoServer
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e.Enforce {
		a.requirement.Store(&ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}})
		if err := r.applyRule(ctx); err != nil {
			return err
		}
		if err := r.server.AwaitEnforced(ctx); err != nil {
			return err
		}
		r.unruled.Store(false)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.requirement.Store(&e.Rule)
	if err := r.applyRule(ctx); err != nil || !e.Barrier {
		return err
	}
	return r.server.Barrier(ctx, e.Rule.String())
}

// rule is what a primary demands before it acknowledges.
func (a *Agent) rule() ha.Rule {
	if rule := a.requirement.Load(); rule != nil {
		return *rule
	}
	return ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}
}

// applyRule makes the running server demand what the quorum asks for now.
func (r *running) applyRule(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*reloadDeadline)
	defer cancel()
	session, err := r.server.Connect(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	return r.applyConfig(ctx, session)
}

// adopt reports a reloaded configuration together with what of it waits for a
// restart. Where nothing does, it is proven, and the one to come back to; else
// only the start with it proves it.
func (r *running) adopt(ctx context.Context, session *postgres.Session, settings postgres.Settings, runs good, wanted string) error {
	pending, err := session.PendingRestart(ctx)
	if err != nil {
		return err
	}
	r.use(settings)
	r.runs = runs
	r.report(func(s *protocol.Status) { s.PendingRestart = pending })
	r.accept(runs.Revision, wanted)
	if len(pending) == 0 {
		r.keep(runs)
	}
	return nil
}

// keep stores the configuration that the server runs with as the good one.
// Where that fails, say on a full disk, the one before remains, and the server
// runs all the same.
func (r *running) keep(g good) {
	if err := r.storeGood(g); err != nil {
		r.Log.Warn("the good configuration could not be kept", "error", err.Error())
	}
}

// accept reports the configuration that runs; an earlier refusal is history
// when it is the one that is wanted.
func (r *running) accept(runs, wanted string) {
	r.report(func(s *protocol.Status) {
		s.ConfigRevision = runs
		if runs == wanted {
			s.ConfigError, s.RejectedRevision = "", ""
		}
	})
}

// reload writes and loads a configuration. When PostgreSQL refuses it, the files are put back.
func (r *running) reload(ctx context.Context, session *postgres.Session, settings postgres.Settings) error {
	if err := r.server.Configure(settings); err != nil {
		return err
	}
	if err := session.ConfigErrors(ctx); err != nil {
		return errors.Join(err, r.server.Configure(r.settings))
	}
	before, err := session.LoadTime(ctx)
	if err != nil {
		return err
	}
	if err := r.process.Reload(); err != nil {
		return err
	}
	return awaitReload(ctx, session, before)
}

func awaitReload(ctx context.Context, session *postgres.Session, before time.Time) error {
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
		if !sleep(ctx, 10*time.Millisecond) {
			return fmt.Errorf("the server does not read its configuration again: %w", ctx.Err())
		}
	}
}
