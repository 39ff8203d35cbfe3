package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"time"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
	"toban.dev/internal/work/upgrade"
)

// SidesOptions are what a Pod of a blue/green upgrade is told.
type SidesOptions struct {
	pod.Options
	Work protocol.SidesWork
	// FromGreen says that green is the serving side.
	FromGreen bool
	// GreenAuthority is the folder with the authority of green; that of blue is Authority.
	GreenAuthority string
	// ServersFile is where the servers of both sides have the authorities that they know each other's by.
	ServersFile string
	// Port is that of the PostgreSQL servers.
	Port uint16
}

// Sides does one step of a blue/green upgrade, and leaves the result where the kubelet finds it, whatever came of it.
// What is in the way is told by the result, and is no error: another try would find the same.
func Sides(ctx context.Context, o SidesOptions) error {
	s := newSides(o)
	began := time.Now()
	err := s.do(ctx)
	s.judge(err)
	if s.result.Seconds == 0 {
		s.result.Seconds = time.Since(began).Seconds()
	}
	fitSides(&s.result)
	s.Log.Info("the work has ended", "work", o.Work, "fromGreen", o.FromGreen, "result", s.result)
	s.tellChange(ctx)
	s.stop()
	if s.result.Error == "" {
		err = nil
	}
	return errors.Join(err, pod.Leave(o.Termination, &s.result, &s.result.Error))
}

// sidesRun is one run.
type sidesRun struct {
	pod.Awaiting
	options     SidesOptions
	settings    protocol.SidesSettings
	blue, green *sideAccess
	// link is the one in the direction that there is, other the one back.
	link, other Link
	result      protocol.SidesResult
	stop        func()
}

func newSides(o SidesOptions) *sidesRun {
	s := &sidesRun{Awaiting: pod.Awaiting{Pod: pod.New(o.Options)}, options: o, stop: func() {}}
	s.Await(func(id string) string {
		if s.options.Work == protocol.SidesChange && id == s.settings.ID {
			return ""
		}
		return fmt.Sprintf("this is the Pod that does %q for the upgrade %q", s.options.Work, s.settings.ID)
	}, func(p protocol.BackupProgress) bool { return p.Sides != nil })
	return s
}

func (s *sidesRun) do(ctx context.Context) error {
	s.Says("reads what to do")
	stop, err := s.Begin(ctx, naming.IdentitySides, &s.settings, &s.settings.Operator)
	if err != nil {
		return err
	}
	s.stop = stop
	work := map[protocol.SidesWork]func(context.Context) error{
		protocol.SidesPublish: s.publish, protocol.SidesFollow: s.follow, protocol.SidesCompare: s.compare,
		protocol.SidesPrepare: s.prepare, protocol.SidesChange: s.change, protocol.SidesSettle: s.settle,
		protocol.SidesLeave: s.leave, protocol.SidesReturn: s.comeBack, protocol.SidesCancel: s.cancel,
	}[s.options.Work]
	if work == nil {
		return fmt.Errorf("there is no work %q", s.options.Work)
	}
	s.connectSides()
	return work(ctx)
}

// connectSides says how both sides are reached. Nobody is asked yet.
func (s *sidesRun) connectSides() {
	s.blue = &sideAccess{
		name: "blue", folder: s.options.Authority, hosts: s.settings.Blue.Hosts, given: s.settings.Blue.Given,
		port: s.options.Port, servers: s.options.ServersFile, newest: s.settings.To,
	}
	s.green = &sideAccess{
		name: "green", folder: s.options.GreenAuthority, hosts: s.settings.Green.Hosts, given: s.settings.Green.Given,
		port: s.options.Port, servers: s.options.ServersFile, newest: s.settings.To,
		// Green's servers show clients certificates of blue's authority.
		shows: s.options.Authority,
	}
	forward := Forward(s.blue.side(), s.green.side(), s.settings.ID)
	back := Back(s.blue.side(), s.green.side(), s.settings.ID)
	s.link, s.other = forward, back
	if s.options.FromGreen {
		s.link, s.other = back, forward
	}
}

// judge says by the result what has come of the work.
func (s *sidesRun) judge(err error) {
	var way InTheWay
	r := &s.result
	switch {
	case errors.As(err, &way):
		r.Refusals = append(r.Refusals, protocol.UpgradeFinding{Reason: way.Reason, Message: way.Message})
	case errors.Is(err, ErrMissing) || errors.Is(err, ErrAhead):
		r.Broken = err.Error()
	case err != nil:
		r.Error = err.Error()
	default:
		r.Done = r.Broken == "" && len(r.Refusals) == 0
	}
}

// tellChange has the operator know the result of a change of sides as soon as it asks.
func (s *sidesRun) tellChange(ctx context.Context) {
	result := s.result
	if s.options.Work != protocol.SidesChange ||
		!s.Tell(ctx, protocol.BackupProgress{Step: "the work has ended", Sides: &result}) {
		return
	}
	// Who was told may lose it again, with a write of the status that is refused, and asks once more.
	pause.For(ctx, change.PausePatience)
}

// mostDifferences is how many tables that differ are told.
const mostDifferences = 10

// fitSides leaves out what a termination message has no room for: of what is said much, and of many the last ones.
func fitSides(r *protocol.SidesResult) {
	shortenTo := func(most int) func() bool {
		return pod.Once(func() {
			r.Error, r.Broken = pod.First(r.Error, most), pod.First(r.Broken, most)
			for i := range r.Differences {
				r.Differences[i] = pod.First(r.Differences[i], most)
			}
			upgrade.ShortenFindings(r.Refusals, most)
			for i := range r.Refusals {
				r.Refusals[i].Message = pod.First(r.Refusals[i].Message, max(most, 300))
			}
		})
	}
	pod.Fit(r, pod.MaxTermination-256, shortenTo(1000), shortenTo(400), shortenTo(150), shortenTo(60),
		pod.Drop(&r.Refusals, 1), pod.Drop(&r.Differences, 1))
}
