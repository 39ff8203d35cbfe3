package process

import (
	"toban.dev/internal/agent"
	"toban.dev/internal/agent/exporter"
	"toban.dev/internal/agent/fault"
)

// agentAnnexes are what an agent does without. Each goes with its folder and its line here (hack/house has a test that
// takes it out).
var agentAnnexes = agent.Annexes{
	Metrics: exporter.New,
	Breaker: fault.New,
}
