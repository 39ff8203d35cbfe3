package agent

import (
	"cmp"
	"slices"

	"toban.dev/internal/protocol"
)

// tellsPoolers is what poolers are told of this instance. One that leads and lets nobody in is none to send clients to.
func (a *Agent) tellsPoolers() protocol.InstanceTells {
	config, status, r := a.configs.get(), a.status.Get(), a.current.Load()
	if status.Role == protocol.RoleStandby {
		status.Ready = status.Ready && r != nil && !r.Ending.Load()
	} else { // that is known before it is in the status; a server that is slow still takes clients
		status.Ready = r != nil && r.TakesClients()
	}
	out := tells(status, a.options.Address, config.Closed)
	if config.Holds {
		out.Reads = false // who reads is to be held, too
		if out.Leads {
			out.HandOver = cmp.Or(out.HandOver, goesToSleep)
		}
	}
	out.Members = slices.Clone(config.Members)
	for i, m := range out.Members {
		if address := a.peers.LastAddress(m.Name); address != "" {
			out.Members[i].Address = address
		}
	}
	return out
}

// goesToSleep names to poolers the reason for which they are to hold their clients, where it is no hand-over.
const goesToSleep = "goes to sleep"
