package agent

import (
	"slices"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// tellsPoolers is what poolers are told of this instance. One that leads and lets nobody in is none to send clients to.
func (a *Agent) tellsPoolers() protocol.InstanceTells {
	status := a.status.Get()
	tells := protocol.InstanceTells{
		Name: status.Name, Address: a.options.Address, Term: status.Term, HandOver: status.HandOver,
		Members: slices.Clone(a.configs.get().Members),
	}
	for i, m := range tells.Members {
		if address := a.peers.LastAddress(m.Name); address != "" {
			tells.Members[i].Address = address
		}
	}
	r := a.current.Load()
	tells.Leads = r != nil && r.takesClients() && !a.configs.get().Closed &&
		status.Role == protocol.RolePrimary && status.Leader == status.Name
	return tells
}

// takesClients says that a server is a primary that lets clients in, and is not about to end.
func (r *running) takesClients() bool {
	return r.standing.role() == ha.ServerPrimary && r.standing.isOpen() && !r.ending.Load()
}
