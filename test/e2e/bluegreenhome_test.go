//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

// Whatever is killed while the new version comes home, it does come home: the Pods that have the former side stop
// following and follow again, the one that upgrades its data, the primary of either side, and the operator when sides
// change. Nothing acknowledged is lost, and nothing is left of the second side.
func TestLongBlueGreenComesHomeKilled(t *testing.T) {
	s := beginAlone(t)
	rows, before, check := s.changesToGreen(3)
	k := &homeKiller{story: s, name: "shop", killed: map[string]bool{}}
	s.run("annotate", "sampledb", "shop", naming.AnnotationAcceptUpgrade+"=yes")
	must(t, outside.Until(s.ctx, 2*sidesPatience, k.look))
	for _, part := range []string{partLeave, v1.UpgradeUpgrading, v1.UpgradeStarting, partReturn, partCompare} {
		if !k.killed[part] {
			t.Errorf("nothing was killed while %s", part)
		}
	}
	s.clientsAreOn("shop", "shop", 18)
	s.sides("shop", v1.UpgradeUpgraded, v1.SideBlue)
	rows.add(s, 5)
	rows.expect(s, "17:10 18:25")
	s.noSecondSide("shop", before, rows.access.Database)
	s.ready("shop")
	check(outside.OperatorLost)
}

// The parts of coming home, besides the steps of the upgrade of the data.
const (
	partLeave   = "blue stops following"
	partReturn  = "blue follows again"
	partCompare = "all rows are compared"
)

// partOf is the part of coming home that an upgrade is in.
func partOf(db v1.SampleDB) string {
	step, serves := stepOf(db)
	if step != v1.SidesComingHome || serves != v1.SideGreen {
		return step
	}
	for words, part := range map[string]string{
		"Blue stops following": partLeave, "All rows of both": partCompare,
		"The data of blue is upgraded": db.Status.Upgrade.Step,
	} {
		if strings.HasPrefix(db.Status.Upgrade.Message, words) {
			return part
		}
	}
	return step
}

// homeKiller kills something in the parts of coming home, once in each.
type homeKiller struct {
	*story
	name, part string
	killed     map[string]bool
	failed     int
}

// look kills what is to be killed in the present part, and complains until blue serves.
func (k *homeKiller) look(ctx context.Context) error {
	db, err := k.SampleDB(ctx, k.name)
	if err != nil {
		return err
	}
	if part := partOf(db); part != k.part {
		k.part = part
		k.Logf("%s: %s", time.Now().Format("15:04:05.0"), part)
	}
	if _, serves := stepOf(db); serves == v1.SideBlue {
		return nil
	}
	switch {
	case k.part == v1.UpgradeFailed:
		if k.failed++; k.failed > 5 {
			k.Fatalf("it has failed again and again: %s", db.Status.Upgrade.Message)
		}
		k.triesAgainAtHome()
	case !k.killed[k.part]:
		k.killed[k.part] = k.kill(db)
	}
	if k.killed[v1.UpgradeStarting] && !k.killed[partReturn] && k.part != partCompare {
		k.killed[partReturn] = k.killReturn(ctx)
	}
	return fmt.Errorf("killed while %v; the upgrade is %+v", k.killed, db.Status.Upgrade)
}

// kill kills what is to be killed in the present part, and says whether that was there.
func (k *homeKiller) kill(db v1.SampleDB) bool {
	k.Helper()
	switch k.part {
	case partLeave:
		return k.killPods(naming.LabelComponent+"="+naming.ComponentSides, thatRun)
	case v1.UpgradeUpgrading:
		return k.killPods(naming.LabelComponent+"="+naming.ComponentUpgrade, thatRun)
	case v1.UpgradeStarting:
		return k.killPods(labels.FormatLabels(naming.InstanceSelector(k.name)), notEndedYet) // it lasts for two seconds
	case partCompare:
		primary := naming.RoleSelector(naming.Green(k.name), string(protocol.RolePrimary))
		return k.killPods(labels.FormatLabels(primary), thatRun)
	case v1.SidesChangingBack:
		(&killer{story: k.story, what: "operator"}).kill(db)
		k.Logf("the operator was killed while sides change")
		return true
	}
	return false
}

// returnPatience is for how long only the Pod is looked for that has blue follow again, and not how the upgrade is.
const returnPatience = 20 * time.Second

// killReturn kills the Pod that has blue follow again, and says whether it was there. That step comes after the start
// of the upgraded data and lasts for about a second, so that a status hardly ever shows it: it is the Pod that is
// awaited, also before it runs.
func (k *homeKiller) killReturn(ctx context.Context) bool {
	k.Helper()
	return outside.Until(ctx, returnPatience, func(context.Context) error {
		if !k.killWork(protocol.SidesReturn) {
			return fmt.Errorf("no Pod has blue follow again")
		}
		return nil
	}) == nil
}

// triesAgainAtHome asks for the upgrade of the data once more, and waits until it has begun.
func (k *homeKiller) triesAgainAtHome() {
	k.Helper()
	k.run("annotate", "sampledb", k.name, "--overwrite", naming.AnnotationUpdate+"=now")
	k.until(func(ctx context.Context) error {
		db, err := k.SampleDB(ctx, k.name)
		if err == nil && partOf(db) == v1.UpgradeFailed {
			err = fmt.Errorf("it is not tried again yet: %s", db.Status.Upgrade.Message)
		}
		return err
	})
}
