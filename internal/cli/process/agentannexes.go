package process

import (
	"github.com/spf13/cobra"

	"toban.dev/internal/agent"
	"toban.dev/internal/agent/exporter"
	"toban.dev/internal/agent/fault"
	"toban.dev/internal/agent/poolers"
)

// agentAnnexes are what an agent does without. Each goes with its folder and its line here (hack/house has a test that
// takes it out).
var agentAnnexes = agent.Annexes{
	Metrics: exporter.New,
	Breaker: fault.New,
	Poolers: poolers.New,
}

// PodAnnexes are the verbs that Pods of annexes call.
func PodAnnexes() []*cobra.Command {
	return []*cobra.Command{
		Pooler(),
	}
}
