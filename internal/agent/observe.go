package agent

import (
	"context"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// decide observes, decides, and makes the ballot durable before anything is done with it.
func (a *Agent) decide(ctx context.Context) (ha.Decision, error) {
	view, err := a.observe(ctx)
	if err != nil {
		return ha.Decision{}, err
	}
	d := ha.Decide(view)
	if d.Ballot != view.Local.Ballot {
		if err := a.ballots.Store(d.Ballot); err != nil {
			return ha.Decision{}, err
		}
	}
	a.report(func(s *protocol.Status) {
		s.Term, s.Leader = d.Ballot.Term, d.Ballot.Leader
		s.Data = protocol.Data(view.Local.Data)
		s.SystemIdentifier = view.Local.SystemIdentifier
	})
	return d, nil
}

// observe collects the view. Only what makes any decision unsafe is an error.
func (a *Agent) observe(ctx context.Context) (ha.View, error) {
	config := a.currentConfig()
	ballot, err := a.ballots.Load()
	if err != nil {
		return ha.View{}, err
	}
	view := ha.View{
		Self:             a.Name,
		SystemIdentifier: config.SystemIdentifier,
		Local:            ha.Local{Ballot: ballot},
		Peers:            a.peers.answers(config.Members),
	}
	for _, m := range config.Members {
		view.Members = append(view.Members, m.Name)
	}
	a.observeData(ctx, &view.Local)
	a.observeServer(&view.Local)
	return view, nil
}

// observeData looks at the data directory. What can't be read stays unknown.
func (a *Agent) observeData(ctx context.Context, local *ha.Local) {
	present, err := a.server.HasData()
	if err != nil {
		a.Log.Warn("the data directory can't be read", "error", err.Error())
		return
	}
	if !present {
		local.Data = ha.DataEmpty
		return
	}
	if id := a.Status().SystemIdentifier; id != "" {
		local.Data, local.SystemIdentifier = ha.DataPresent, id
		return
	}
	control, err := a.server.Control(ctx)
	if err != nil {
		a.Log.Warn("the control file can't be read", "error", err.Error())
		return
	}
	local.Data, local.SystemIdentifier = ha.DataPresent, control.SystemIdentifier
}

// observeServer takes what the last query of the running server said.
func (a *Agent) observeServer(local *ha.Local) {
	status := a.Status()
	local.Streaming = status.Streaming
	if lsn, err := ha.ParseLSN(status.LSN); err == nil && status.Role == protocol.RoleStandby {
		local.Received = lsn
	}
}
