package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// orderFault orders a fault of an instance, as the operator does for a FaultDrill.
func (c *cluster) orderFault(name string, order protocol.FaultOrder) error {
	ordinal, _ := naming.Ordinal(name)
	_, err := c.operator.Fault(c.Context(), c.host(ordinal), order)
	return err
}

// filling says whether a drill's file is on the volume of an instance.
func (c *cluster) filling(name string) bool {
	_, err := os.Stat(filepath.Join(c.disk(name), "toban", "faultdrill"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Fatal(err)
	}
	return err == nil
}

// A drill fills the volume of the primary: that takes no writes, goes on serving those who read, and nothing ends. It
// is over when its time is over, by order, and when the agent begins anew; writes are taken again each time.
func TestADrillFillsAVolume(t *testing.T) {
	const size = 512 << 20
	c, leader := onSmallVolumes(t)
	before := c.postmaster(leader)
	fill := protocol.FaultOrder{Drill: "d", Fault: protocol.FaultFillVolume, For: protocol.MaxFault, Volume: size / 2}
	if err := c.orderFault(leader, fill); err == nil || !strings.Contains(err.Error(), "not the volume's own") {
		t.Errorf("a file system of others is filled: %v", err)
	}
	fill.Volume = size
	c.must(c.orderFault(leader, fill))
	c.refused(leader)
	c.await(leader, "a volume that a drill has filled", func(s protocol.Status) bool {
		return s.Room != nil && s.Room.Drill > size/2
	})
	c.must(c.orderFault(leader, protocol.FaultOrder{Drill: "d", Fault: protocol.FaultUndo}))
	if c.filling(leader) {
		t.Error("its file is there after the order to undo it")
	}
	c.written(leader)

	fill.For = 5 * time.Second
	c.must(c.orderFault(leader, fill))
	c.refused(leader)
	c.written(leader)
	if c.filling(leader) {
		t.Error("its file is there after its time")
	}
	if now := c.postmaster(leader); now != before || c.whole() != leader {
		t.Errorf("the server was started again: %d, before %d", now, before)
	}

	fill.For = protocol.MaxFault
	c.must(c.orderFault(leader, fill))
	c.refused(leader)
	c.kill(leader, syscall.SIGKILL)
	if !c.filling(leader) {
		t.Error("its file is gone with the agent")
	}
	c.startOne(leader)
	next := c.whole()
	if c.filling(leader) {
		t.Error("its file is there in another life of the agent")
	}
	c.written(next)
}
