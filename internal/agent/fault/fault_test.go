package fault

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent"
	"toban.dev/internal/agent/kube"
	"toban.dev/internal/agent/running"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/protocol"
)

// brittle is a server that notes what is done to it.
type brittle struct {
	running.Process
	mutex sync.Mutex
	done  []string
	fails error
}

func (b *brittle) note(what string) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.done = append(b.done, what)
	return b.fails
}

// fail has what is done to it fail from now on, with nil no more. What takes a fault back later runs beside the test.
func (b *brittle) fail(with error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.fails = with
}

func (b *brittle) take() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	out := b.done
	b.done = nil
	return out
}

func (b *brittle) Crash() error    { return b.note("crash") }
func (b *brittle) Hang() error     { return b.note("hang") }
func (b *brittle) Continue() error { return b.note("continue") }

func (b *brittle) Fill(size int64) error { return b.note(fmt.Sprintf("fill %d", size)) }
func (b *brittle) Empty() error          { return b.note("empty") }

func (b *brittle) Cut()     { _ = b.note("cut") }
func (b *brittle) Restore() { _ = b.note("restore") }

// breaking is what breaks an instance whose server is brittle, and its volume.
func breaking(server running.Process, die func()) *faults {
	var current atomic.Pointer[running.Server]
	if server != nil {
		current.Store(&running.Server{Process: server})
	}
	volume, ok := server.(fillable)
	if !ok {
		volume = &brittle{}
	}
	api, _ := server.(cuttable)
	archive := &protocol.Archive{Bucket: bucket.Config{S3: &bucket.S3{Bucket: "b"}}}
	return &faults{
		Breakable: agent.Breakable{
			Current: &current, Die: die, Log: slog.New(slog.DiscardHandler),
			Config: func() protocol.Config { return protocol.Config{Archive: archive} },
			Role:   func() protocol.Role { return protocol.RoleStandby },
		},
		volume: volume, api: api, store: api,
	}
}

// Without this, a FaultDrill would find no Kubernetes API around an instance.
var _ cuttable = (*kube.Cluster)(nil)

func TestAServerIsKilledByOrder(t *testing.T) {
	server := &brittle{}
	if err := breaking(server, nil).Do(protocol.FaultOrder{Fault: protocol.FaultKillServer}); err != nil {
		t.Fatal(err)
	}
	if got := server.take(); !slices.Equal(got, []string{"crash"}) {
		t.Errorf("it was done: %q", got)
	}
}

// Between the choice and the order another may have been elected.
func TestAnInstanceOfAnotherRoleIsNotBroken(t *testing.T) {
	server := &brittle{}
	order := protocol.FaultOrder{Fault: protocol.FaultKillServer, Role: protocol.RolePrimary}
	if err := breaking(server, nil).Do(order); err == nil || len(server.take()) > 0 {
		t.Errorf("a standby is broken as the primary: %v", err)
	}
	order.Role = protocol.RoleStandby
	if err := breaking(server, nil).Do(order); err != nil || len(server.take()) != 1 {
		t.Errorf("a standby is not broken as one: %v", err)
	}
}

func TestAServerThatHangsByOrderGoesOnByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &brittle{}
		f := breaking(server, nil)
		hang := protocol.FaultOrder{Fault: protocol.FaultHangServer, For: 10 * time.Second}
		if err := f.Do(hang); err != nil {
			t.Fatal(err)
		}
		if err := f.Do(hang); err == nil {
			t.Error("it hangs twice")
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if got := server.take(); !slices.Equal(got, []string{"hang"}) {
			t.Errorf("it was done: %q", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := server.take(); !slices.Equal(got, []string{"continue"}) {
			t.Errorf("it was done: %q", got)
		}
		if err := f.Do(hang); err != nil {
			t.Errorf("it can't hang again: %v", err)
		}
	})
}

func TestAHangIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &brittle{}
		f := breaking(server, nil)
		undo := protocol.FaultOrder{Fault: protocol.FaultUndo}
		if err := f.Do(undo); err != nil || len(server.take()) > 0 {
			t.Errorf("there was something to undo, %v", err)
		}
		if err := f.Do(protocol.FaultOrder{Fault: protocol.FaultHangServer, For: time.Minute}); err != nil {
			t.Fatal(err)
		}
		server.fail(errors.New("no"))
		if err := f.Do(undo); err == nil {
			t.Error("nobody says that it could not be undone")
		}
		time.Sleep(undoAgain)
		synctest.Wait()
		server.fail(nil)
		if err := f.Do(undo); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := server.take(); !slices.Equal(got, []string{"hang", "continue", "continue", "continue"}) {
			t.Errorf("it was done: %q", got)
		}
	})
}

func TestAVolumeIsFilledByOrderForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		volume := &brittle{}
		f := breaking(volume, nil)
		fill := protocol.FaultOrder{Fault: protocol.FaultFillVolume, For: 10 * time.Second, Volume: 7}
		if err := f.Do(fill); err != nil {
			t.Fatal(err)
		}
		if err := f.Do(protocol.FaultOrder{Drill: "b", Fault: protocol.FaultHangServer, For: time.Second}); err == nil {
			t.Error("faults of two drills last at once")
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := volume.take(); !slices.Equal(got, []string{"fill 7", "empty"}) {
			t.Errorf("it was done: %q", got)
		}
		if f.Clear(); !slices.Equal(volume.take(), []string{"empty"}) {
			t.Error("what an agent before has left stays")
		}
	})
}

// Several faults of one drill last at once. Each is over when its time is over, and by order all are.
func TestFaultsOfOneDrillLastTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instance := &brittle{}
		f := breaking(instance, nil)
		begin := func(fault protocol.Fault, lasts time.Duration) {
			if err := f.Do(protocol.FaultOrder{Drill: "a", Fault: fault, For: lasts}); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(when string, want ...string) {
			synctest.Wait()
			if got := instance.take(); !slices.Equal(got, want) {
				t.Errorf("%s was done %q, want %q", when, got, want)
			}
		}
		begin(protocol.FaultCutAPI, time.Minute)
		begin(protocol.FaultHangServer, 10*time.Second)
		begin(protocol.FaultFillVolume, time.Minute)
		expect("first", "cut", "hang", "fill 0")
		time.Sleep(11 * time.Second)
		expect("after the time of one", "continue")
		if _, err := f.Rest(); !errors.Is(err, running.ErrBusy) {
			t.Errorf("the moment is good: %v", err)
		}
		if err := f.Do(protocol.FaultOrder{Drill: "a", Fault: protocol.FaultUndo}); err != nil {
			t.Fatal(err)
		}
		expect("by order", "empty", "restore")
		begin(protocol.FaultCutAPI, time.Second)
		time.Sleep(2 * time.Minute)
		expect("again", "cut", "restore")
	})
}

// One that can't be taken back keeps no other from that, and is tried again.
func TestEachFaultIsTakenBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instance := &brittle{}
		f := breaking(instance, nil)
		for _, fault := range []protocol.Fault{protocol.FaultHangServer, protocol.FaultCutAPI} {
			if err := f.Do(protocol.FaultOrder{Fault: fault, For: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		instance.fail(errors.New("no"))
		if err := f.Do(protocol.FaultOrder{Fault: protocol.FaultUndo}); err == nil {
			t.Error("nobody says that one could not be undone")
		}
		instance.fail(nil)
		time.Sleep(2 * undoAgain)
		synctest.Wait()
		if got := instance.take(); !slices.Equal(got, []string{"hang", "cut", "restore", "continue", "continue"}) {
			t.Errorf("it was done: %q", got)
		}
		if release, err := f.Rest(); err != nil {
			t.Errorf("something lasts: %v", err)
		} else {
			release()
		}
	})
}

// What can't be taken back together is not ordered together.
func TestWhichFaultsExcludeEachOther(t *testing.T) {
	hang, pause := protocol.FaultHangServer, protocol.FaultPauseReplay
	for _, c := range []struct {
		first, second protocol.Fault
		drill         string
		says          string
	}{
		{hang, pause, "a", "a server that hangs"},
		{pause, hang, "a", "a server that hangs"},
		{protocol.FaultCutAPI, protocol.FaultCutAPI, "a", "already"},
		{protocol.FaultCutAPI, hang, "b", "cut-api lasts already"},
		{protocol.FaultCutAPI, hang, "a", ""},
		{protocol.FaultCutAPI, protocol.FaultCutArchive, "a", ""},
		{protocol.FaultCutArchive, protocol.FaultCutArchive, "a", "already"},
		{protocol.FaultFillVolume, pause, "a", ""},
	} {
		lasts := &lastingFault{fault: c.first, drill: "a"}
		got := lasts.excludes(protocol.FaultOrder{Drill: c.drill, Fault: c.second})
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s of %s after %s: %q", c.second, c.drill, c.first, got)
		}
	}
}

// A fault that could not be begun as a whole does not stay as it is.
func TestAFaultThatFailsIsTakenBack(t *testing.T) {
	volume := &brittle{fails: errors.New("no")}
	f := breaking(volume, nil)
	if err := f.Do(protocol.FaultOrder{Fault: protocol.FaultFillVolume, For: time.Minute}); err == nil {
		t.Error("it is done")
	}
	if got := volume.take(); !slices.Equal(got, []string{"fill 0", "empty"}) {
		t.Errorf("it was done: %q", got)
	}
}

// A program that does not know of a fault could not take it back.
func TestNoOtherProgramWhileAFaultLasts(t *testing.T) {
	server := &brittle{}
	f := breaking(server, nil)
	if err := f.Do(protocol.FaultOrder{Fault: protocol.FaultHangServer, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Rest(); !errors.Is(err, running.ErrBusy) {
		t.Errorf("the moment is good: %v", err)
	}
	f.End()
	release, err := f.Rest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Rest(); !errors.Is(err, running.ErrBusy) { // as while a fault is at work, which may take long
		t.Errorf("the moment is good: %v", err)
	}
	release()
}

// The store of the archive is cut for a while, and apart from the API. Where there is no archive, or none that is
// reached over a network, that is said.
func TestTheStoreOfTheArchiveIsCutByOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := breaking(nil, nil)
		store := &brittle{}
		f.store = store
		cut := protocol.FaultOrder{Drill: "a", Fault: protocol.FaultCutArchive, For: 10 * time.Second}
		if err := f.Do(cut); err != nil {
			t.Fatal(err)
		}
		if got := store.take(); !slices.Equal(got, []string{"cut"}) {
			t.Errorf("it was done: %q", got)
		}
		if _, err := f.Rest(); !errors.Is(err, running.ErrBusy) {
			t.Errorf("the moment is good: %v", err)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := store.take(); !slices.Equal(got, []string{"restore"}) {
			t.Errorf("it was done: %q", got)
		}
		for words, archive := range map[string]*protocol.Archive{
			"has no archive": nil, "is a folder": {Bucket: bucket.Config{Folder: "/archive"}},
		} {
			f.Config = func() protocol.Config { return protocol.Config{Archive: archive} }
			if err := f.Do(cut); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("an instance that %s: %v", words, err)
			}
		}
		if got := store.take(); len(got) > 0 {
			t.Errorf("it was done: %q", got)
		}
	})
}

func TestAnAgentEndsByOrderAfterItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var died atomic.Bool // it dies beside the test
		f := breaking(nil, func() { died.Store(true) })
		if err := f.Do(protocol.FaultOrder{Fault: protocol.FaultKillAgent}); err != nil || died.Load() {
			t.Fatalf("it died: %v, %v", died.Load(), err)
		}
		time.Sleep(dieAfter)
		synctest.Wait()
		if !died.Load() {
			t.Error("it lives")
		}
	})
}

func TestWhatCannotBeBrokenIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		server running.Process
		order  protocol.FaultOrder
	}{
		"no server":      {nil, protocol.FaultOrder{Fault: protocol.FaultKillServer}},
		"another server": {struct{ running.Process }{}, protocol.FaultOrder{Fault: protocol.FaultKillServer}},
		"no API":         {nil, protocol.FaultOrder{Fault: protocol.FaultCutAPI, For: time.Second}},
		"unknown":        {&brittle{}, protocol.FaultOrder{Fault: "fire"}},
		"for ever":       {&brittle{}, protocol.FaultOrder{Fault: protocol.FaultHangServer, For: time.Hour}},
		"for no time":    {&brittle{}, protocol.FaultOrder{Fault: protocol.FaultHangServer}},
	} {
		if err := breaking(c.server, func() { t.Error("it died") }).Do(c.order); err == nil {
			t.Errorf("%s: it is done", name)
		}
	}
}
