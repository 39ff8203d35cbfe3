//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

// What can't follow is named before anything is made, and the database serves on. When it is mended, a second side is
// made; when it is not wanted any more, it goes without a trace. No client sees anything of all that.
func TestLongBlueGreenCancelled(t *testing.T) {
	s := begin(t)
	s.apply(twoSided("shop", 1, windowClosed()))
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", "")
	access := s.access("shop", naming.ReadWriteService("shop"))
	s.sql("shop", "CREATE TABLE keyless (n int)")
	clients, err := outside.StartClients(s.ctx, 1, access.Connect)
	must(t, err)
	t.Cleanup(clients.Stop)
	before := s.traces("shop", access.Database)

	s.patch("shop", `{"version":18}`)
	words := s.condition("shop", v1.ConditionUpgraded, "False", v1.ReasonUpgradeFailed)
	if !strings.Contains(words, "keyless") {
		t.Errorf("it says %q", words)
	}
	s.noSecondSide("shop", before, access.Database)
	s.condition("shop", v1.ConditionAvailable, "True", "")
	must(t, clients.AwaitMore(s.ctx, patience, 50))

	s.sql("shop", "ALTER TABLE keyless ADD PRIMARY KEY (n)")
	s.asksAgain("shop")
	s.sides("shop", v1.SidesReady, v1.SideBlue)
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "shop")
		if err == nil && !readyForTheWindow(db) {
			err = fmt.Errorf("it does not wait for the window: %+v", db.Status.Upgrade)
		}
		return err
	})
	db, err := s.SampleDB(s.ctx, "shop")
	must(t, err)
	if db.Status.Upgrade.WayBack != v1.WayBackCancel {
		t.Errorf("before sides change the way back is %q", db.Status.Upgrade.WayBack)
	}
	if during := s.traces("shop", access.Database); !strings.Contains(during, "slot toban_to_green") ||
		!strings.Contains(during, "schema toban_sides") {
		t.Errorf("while the second side follows, the databases list\n%s", during)
	}

	s.patch("shop", `{"version":17}`)
	s.ready("shop")
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "shop")
		step, serves := stepOf(db)
		if err == nil && (step != "" && step != v1.UpgradeFailed || serves != v1.SideBlue) {
			err = fmt.Errorf("the upgrade is %+v", db.Status.Upgrade)
		}
		return err
	})
	s.noSecondSide("shop", before, access.Database)
	s.clientsAreOn("shop", "shop", 17)
	must(t, clients.AwaitMore(s.ctx, patience, 50))
	must(t, clients.LoseNothing(s.ctx))
	must(t, clients.SeeNoError())
}

// Whatever is killed while a second side is made and follows, the upgrade goes on, or has failed and can be asked for
// again: the operator, what compares the rows, and the primary of either side. After another primary was elected, all
// rows are compared anew. Nothing acknowledged is lost.
func TestLongBlueGreenKilled(t *testing.T) {
	s := beginAlone(t)
	s.apply(twoSided("shop", 3, windowClosed()))
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", "")
	s.sql("shop", "CREATE TABLE held (n int PRIMARY KEY)")
	check := s.writing("shop")
	k := &sidesKiller{story: s, name: "shop", killed: map[string]bool{}}
	s.patch("shop", `{"version":18}`)
	must(t, outside.Until(s.ctx, 2*sidesPatience, k.look))
	for _, step := range []string{
		v1.SidesPublishing, v1.SidesCopying, v1.SidesFollowing, v1.SidesComparing, v1.SidesReady,
	} {
		if !k.killed[step] {
			t.Errorf("nothing was killed at %s", step)
		}
	}
	s.opensWindow("shop")
	s.sides("shop", v1.SidesChanged, v1.SideGreen)
	s.clientsAreOn("shop", naming.Green("shop"), 18)
	check(outside.Lost)
}

// readyForTheWindow says that all is done before sides change, which waits for the window.
func readyForTheWindow(db v1.SampleDB) bool {
	step, _ := stepOf(db)
	return step == v1.SidesReady && strings.Contains(db.Status.Upgrade.Message, "in the next window")
}

// asksAgain asks for an upgrade that has failed once more, and waits until it has begun. Sides change in the window
// all the same.
func (s *story) asksAgain(name string) {
	s.Helper()
	s.run("annotate", "sampledb", name, "--overwrite", naming.AnnotationUpdate+"="+naming.UpdateInWindow)
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if step, _ := stepOf(db); err == nil && step == v1.UpgradeFailed {
			err = fmt.Errorf("it is not tried again yet: %s", db.Status.Upgrade.Message)
		}
		return err
	})
}

// sidesKiller kills something when a blue/green upgrade comes to certain steps, once at each.
type sidesKiller struct {
	*story
	name   string
	step   string
	killed map[string]bool
	// anew says that rows were compared after the last kill, failed how often the upgrade has failed.
	anew   bool
	failed int
}

// look kills what is to be killed at the present step, and complains until all is done, and done anew, before sides
// change.
func (k *sidesKiller) look(ctx context.Context) error {
	db, err := k.SampleDB(ctx, k.name)
	if err != nil {
		return err
	}
	step, _ := stepOf(db)
	if step != k.step {
		k.step = step
		k.Logf("%s", step)
	}
	switch {
	case step == v1.UpgradeFailed:
		if k.failed++; k.failed > 5 {
			k.Fatalf("it has failed again and again: %s", db.Status.Upgrade.Message)
		}
		k.Logf("it has failed: %s", db.Status.Upgrade.Message)
		k.asksAgain(k.name)
	case !k.killed[step]:
		k.kill(db, step)
	}
	k.anew = k.anew || step == v1.SidesComparing && k.killed[v1.SidesReady]
	if !k.anew || !readyForTheWindow(db) {
		return fmt.Errorf("killed at %v, compared after that: %v; the upgrade is %+v", k.killed, k.anew,
			db.Status.Upgrade)
	}
	return nil
}

// kill kills what is to be killed at a step.
func (k *sidesKiller) kill(db v1.SampleDB, step string) {
	k.Helper()
	done := true
	switch step {
	case v1.SidesPublishing, v1.SidesCopying:
		(&killer{story: k.story, what: "operator"}).kill(db)
	case v1.SidesFollowing:
		done = k.killPrimary(k.name)
	case v1.SidesComparing:
		done = k.killComparison()
	case v1.SidesReady:
		done = k.killPrimary(naming.Green(k.name))
	default:
		return
	}
	k.killed[step] = done
	k.Logf("something was killed at %s: %v", step, done)
}

// killPrimary kills that of a side, and waits until another one is elected. It says whether there was one.
func (s *story) killPrimary(side string) bool {
	s.Helper()
	before, err := s.SampleDB(s.ctx, side)
	if err != nil || before.Status.Primary == "" {
		s.Logf("%s has no primary to be killed: %v", side, err)
		return false
	}
	(&killer{story: s, what: "primary"}).kill(before)
	s.electedAfter(before)
	return true
}

// killComparison kills the Pod that compares the rows, while a transaction keeps it from a table. It says whether
// there was one.
func (k *sidesKiller) killComparison() bool {
	k.Helper()
	session, err := k.access(k.name, naming.ReadWriteService(k.name)).Patient().Connect(k.ctx)
	must(k.T, err)
	defer session.Close(k.ctx)
	holds, err := session.Begin(k.ctx)
	must(k.T, err)
	_, err = holds.Exec(k.ctx, "INSERT INTO held SELECT count(*) FROM held")
	must(k.T, err)
	killed := false
	k.until(func(ctx context.Context) error {
		if killed = k.killPods(naming.LabelComponent+"="+naming.ComponentSides, thatRun); killed {
			return nil
		}
		db, err := k.SampleDB(ctx, k.name)
		if step, _ := stepOf(db); err == nil && step == v1.SidesComparing {
			err = fmt.Errorf("no Pod compares rows yet")
		}
		return err
	})
	must(k.T, holds.Commit(k.ctx))
	return killed
}

// The phases of Pods that are killed: those that run, and those that also may not run yet.
const (
	thatRun     = "status.phase=Running"
	notEndedYet = "status.phase!=Succeeded,status.phase!=Failed"
)

// killPods kills the Pods with some labels and phases, and says whether there were any.
func (s *story) killPods(selector, phases string) bool {
	s.Helper()
	pods, err := s.Kubectl(s.ctx, "get", "pods", "-l", selector, "--field-selector="+phases, "-o", "name")
	must(s.T, err)
	return s.killNamed(strings.Fields(pods))
}

// killWork kills the Pods that do some work on the sides of an upgrade, or are about to, and says whether there were
// any. Their names and labels do not tell the work, but their command does.
func (s *story) killWork(work protocol.SidesWork) bool {
	s.Helper()
	lines, err := s.Kubectl(s.ctx, "get", "pods", "-l", naming.LabelComponent+"="+naming.ComponentSides,
		"--field-selector="+notEndedYet, "-o",
		`jsonpath={range .items[*]}pod/{.metadata.name} {.spec.containers[0].command}{"\n"}{end}`)
	must(s.T, err)
	var pods []string
	for line := range strings.Lines(lines) {
		if pod, command, _ := strings.Cut(line, " "); strings.Contains(command, strconv.Quote(string(work))) {
			pods = append(pods, pod)
		}
	}
	return s.killNamed(pods)
}

// killNamed kills Pods, and says whether one was still there.
func (s *story) killNamed(pods []string) bool {
	s.Helper()
	if len(pods) == 0 {
		return false
	}
	killed, err := s.Kubectl(s.ctx, append([]string{
		"delete", "--wait=false", "--grace-period=0", "--force", "--ignore-not-found", "-o", "name",
	}, pods...)...)
	must(s.T, err)
	if killed != "" {
		s.Logf("killed: %s", strings.TrimSpace(killed))
	}
	return killed != ""
}
