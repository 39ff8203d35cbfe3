package agent

import (
	"testing"

	"toban.dev/internal/protocol"
)

// An agent that was made without the part for FaultDrills says so, and gives its process to another program.
func TestAnAgentWithoutFaultsRefusesThem(t *testing.T) {
	b := (&Annexes{}).breaker(nil)
	if err := b.Do(protocol.FaultOrder{Fault: protocol.FaultKillServer}); err == nil {
		t.Error("it takes the order")
	}
	release, err := b.Rest()
	if err != nil {
		t.Fatal(err)
	}
	release()
}
