package running

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/agent/pressure"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// watched is a monitor of a server, with what it has told the machine.
type watched struct {
	*monitor
	server    *answering
	board     *status.Board
	heard     []machine.ServerSeen
	published []protocol.Role
}

// watch looks after a server that has a role.
func watch(t *testing.T, server *answering, primary bool) *watched {
	t.Helper()
	config, _, board := configured1(t)
	w := &watched{server: server, board: board}
	log, flags := slog.New(slog.DiscardHandler), &Flags{}
	s := &Standing{primary: primary, promoted: primary, opened: true, upstream: ha.Ballot{Term: 3, Leader: "db-1"}}
	if primary {
		s.upstream = ha.Ballot{}
	}
	config.wanted = func() protocol.Config { // it runs with that already
		return protocol.Config{Revision: "1", Parameters: map[string]string{"work_mem": "1MB"}}
	}
	hear := func(e machine.Event) {
		if seen, is := e.(machine.ServerSeen); is {
			w.heard = append(w.heard, seen)
		}
	}
	reporter := &reporter{run: 7, standing: s, status: board, full: &flags.full, post: hear}
	chores, _ := chored()
	server.free = 1 << 30
	w.monitor = &monitor{
		server: server, process: process{done: make(chan struct{})}, standing: s, reporter: reporter, config: config,
		wanted: config.wanted, chores: chores, flags: flags, status: board, term: func() uint64 { return 3 },
		ending: &atomic.Bool{}, idle: &Idle{}, publish: func(r protocol.Role) { w.published = append(w.published, r) },
		poke: make(poke, 1), log: log,
		presented: &presented{want: func() (certificate []byte, trusted string, identity protocol.Identity) { return }},
		superseded: &superseded{
			hardState: func() ha.HardState { return ha.HardState{} }, allStream: func() bool { return false }, log: log,
		},
	}
	return w
}

// last is what the machine has been told last.
func (w *watched) last(t *testing.T) machine.ServerSeen {
	t.Helper()
	if len(w.heard) == 0 {
		t.Fatal("the machine has been told nothing")
	}
	return w.heard[len(w.heard)-1]
}

func TestAPrimaryThatAnswersIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answering{state: postgres.State{LSN: "0/5000010", Timeline: 2}, standbys: []string{
			"db-2.cc@3", "db-1.bb@3", "db-1.aa@2", // the last one follows in an earlier term: it does not count
		}}
		w := watch(t, server, true)
		w.observeOnce(t.Context())
		seen, now := w.last(t), w.board.Get()
		if !seen.Answers || seen.Run != 7 || seen.Written != 0x5000010 || seen.Oldest != 0x3000000 ||
			!slices.Equal(seen.Standbys, []ha.Voter{"db-2.cc", "db-1.bb"}) {
			t.Errorf("the machine is told %+v", seen)
		}
		if !now.Ready || now.Role != protocol.RolePrimary || now.Timeline != 2 || now.Oldest != "0/3000000" ||
			!slices.Equal(now.Standbys, []string{"db-1", "db-2"}) {
			t.Errorf("it says that it is %+v", now)
		}
		if !slices.Equal(w.published, []protocol.Role{protocol.RolePrimary}) {
			t.Errorf("published is %v", w.published)
		}
	})
}

// A standby that is being promoted is published as the primary by whoever promotes it. A look that had begun before
// does not take the clients from it again.
func TestAStandbyThatIsBeingPromotedIsNotPublishedAsOne(t *testing.T) {
	for _, promoted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t, &answering{state: postgres.State{InRecovery: true, Streaming: true}}, false)
			w.monitor.chores.report = func(*protocol.KeptWAL) { // in the middle of a look
				if promoted {
					w.monitor.standing.bePrimary()
				}
			}
			w.observeOnce(t.Context())
			if published := len(w.published) > 0; published == promoted {
				t.Errorf("promoted meanwhile %t: published is %v", promoted, w.published)
			}
		})
	}
}

// One late answer may be the agent's own pause: two in a row are a server that hangs.
func TestAServerThatDoesNotAnswerTwiceFails(t *testing.T) {
	broken := errors.New("broken")
	for name, fail := range map[string]func(*answering){
		"it hangs":                  func(s *answering) { s.hangs = true },
		"it answers with an error":  func(s *answering) { s.fails = broken },
		"it lets no session in":     func(s *answering) { s.refuses, s.broken = broken, true },
		"its postmaster alone does": func(s *answering) { s.refuses = broken },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, &answering{}, true)
				w.observeOnce(t.Context())
				time.Sleep(newSessions + time.Millisecond)
				fail(w.server)
				told, began := len(w.heard), time.Now()
				if w.observeOnce(t.Context()); len(w.heard) != told || w.last(t).Failure != "" || len(w.poke) != 1 {
					t.Errorf("after the first one the machine is told %+v", w.last(t))
				}
				w.observeOnce(t.Context())
				took := time.Since(began)
				if seen := w.last(t); seen.Failure == "" || seen.Answers || took > firstAnswer+secondAnswer {
					t.Errorf("after %s the machine is told %+v", took, seen)
				}
				if w.standing.Hangs() != w.server.hangs {
					t.Errorf("when it is ended it is taken for one that hangs: %t", w.standing.Hangs())
				}
				if now := w.board.Get(); now.Ready || now.Reason != ReasonNotAnswering {
					t.Errorf("it says that it is %+v", now)
				}
				w.server.hangs, w.server.fails, w.server.refuses = false, nil, nil
				w.observeOnce(t.Context())
				if seen, now := w.last(t), w.board.Get(); seen.Failure != "" || !seen.Answers || !now.Ready {
					t.Errorf("when it answers again, the machine is told %+v, and it says %+v", seen, now)
				}
			})
		})
	}
}

// stalling watches a primary that has answered, and whose disk takes no writes since.
func stalling(t *testing.T) *watched {
	t.Helper()
	w := watch(t, &answering{}, true)
	w.observeOnce(t.Context())
	time.Sleep(choreInterval + time.Millisecond)
	w.server.stalls = true
	return w
}

// A server that waits for its disk has longer than one that answers nothing from memory.
func TestAPrimaryThatWaitsForItsDiskHasMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stalling(t)
		began := time.Now()
		for range 2 {
			w.observeOnce(t.Context())
		}
		if took := time.Since(began); w.last(t).Failure == "" || took != firstDeadline+secondDeadline {
			t.Errorf("after %s the machine is told %+v", took, w.last(t))
		}
	})
}

// A server that answers, and refuses, lives. What somebody has written into its catalog is undone while a session is
// there. One that lets nobody in at all for another reason has failed.
func TestARefusalIsNotDeath(t *testing.T) {
	for name, c := range map[string]struct {
		code            string
		broken, clients bool // the session is lost; only clients are refused
		failure         bool
		letIn           int
		reason          string
	}{
		"the role may not log in":                  {code: "28000", letIn: 2, reason: ReasonRefuses},
		"the role may not, and no session is left": {code: "28000", broken: true, reason: ReasonRefuses},
		"the database is gone":                     {code: "3D000", broken: true, reason: ReasonRefuses},
		"a library is missing":                     {code: "58P01", clients: true},
		"a file is missing":                        {code: "58P01", failure: true, reason: ReasonNotAnswering},

		"it is in recovery": {code: "57P03", broken: true, failure: true, reason: ReasonNotAnswering},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, &answering{}, true)
				w.observeOnce(t.Context())
				w.config.login = func(context.Context) error { return context.DeadlineExceeded } // it is not judged
				refusal := fmt.Errorf("connect: %w", &pgconn.PgError{Code: c.code})
				if w.server.broken = c.broken; c.clients {
					w.server.refusesClients = refusal
				} else {
					w.server.refuses = refusal
				}
				for range 2 {
					time.Sleep(newSessions + time.Millisecond)
					w.observeOnce(t.Context())
				}
				if w.config.judged == (c.code == "58P01") {
					t.Errorf("it is judged: %t", w.config.judged)
				}
				seen, now := w.last(t), w.board.Get()
				if (seen.Failure != "") != c.failure || w.server.letIn != c.letIn || now.Reason != c.reason {
					t.Errorf("the machine is told %+v, it says %+v, and was told %d times to let us in", seen, now,
						w.server.letIn)
				}
				w.server.refuses, w.server.refusesClients = nil, nil
				w.observeOnce(t.Context())
				if seen, now := w.last(t), w.board.Get(); seen.Failure != "" || !now.Ready ||
					c.reason != "" && now.Reason != "Answers" {
					t.Errorf("then the machine is told %+v, and it says %+v", seen, now)
				}
			})
		})
	}
}

// configurable is a server that answers, and whose configuration can be changed.
type configurable struct {
	*answering
	*settings
}

func (s configurable) Connect(context.Context) (Session, error) { return s, nil }
func (s configurable) ConfigErrors(ctx context.Context) error   { return s.settings.ConfigErrors(ctx) }
func (s configurable) LoadTime(ctx context.Context) (time.Time, error) {
	return s.settings.LoadTime(ctx)
}
func (s configurable) PendingRestart(context.Context) ([]string, error) { return nil, nil }

// A server that refuses what its agent asks for besides what its role is lives, and is told what it is to run with:
// that may be why.
func TestWhatIsRefusedIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, _ := configured1(t)
		w := watch(t, &answering{unwilling: &pgconn.PgError{Code: "XX000"}}, true)
		w.config, w.monitor.server = config, configurable{w.server, server}
		for range 3 {
			w.observeOnce(t.Context())
			synctest.Wait()
		}
		if w.last(t).Failure != "" || w.board.Get().Reason != ReasonRefuses || server.reloads != 1 || !config.judged {
			t.Errorf("the machine is told %+v, and it was reloaded %d times", w.last(t), server.reloads)
		}
		w.server.unwilling = nil
		if w.observeOnce(t.Context()); !w.board.Get().Ready || w.board.Get().Reason != "Answers" {
			t.Errorf("then it says %+v", w.board.Get())
		}
	})
}

// As long as a server refuses something, its status says so, and nothing else between: whoever is told of changes is
// not told the same again and again.
func TestAServerThatRefusesSaysOneThing(t *testing.T) {
	refusal := &pgconn.PgError{Code: "42501"}
	for name, change := range map[string]func(*answering){
		"a chore":            func(s *answering) { s.noSlots = refusal },
		"who streams":        func(s *answering) { s.unwilling = refusal },
		"what is configured": func(s *answering) { s.noIdle = refusal },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, &answering{}, true)
				var said []string
				say := func() { said = append(said, w.board.Get().Reason) }
				w.monitor.publish = func(protocol.Role) { say() } // in the middle of a look
				w.monitor.wanted = func() protocol.Config { return protocol.Config{Idles: true} }
				change(w.server)
				w.observeOnce(t.Context())
				said = nil
				for range 60 { // the chores are due in some of the looks
					time.Sleep(lookInterval)
					w.observeOnce(t.Context())
					say()
				}
				if slices.ContainsFunc(said, func(reason string) bool { return reason != ReasonRefuses }) {
					t.Errorf("it says %q", said)
				}
				w.server.noSlots, w.server.unwilling, w.server.noIdle = nil, nil, nil
				time.Sleep(time.Minute)
				if w.observeOnce(t.Context()); w.board.Get().Reason != "Answers" {
					t.Errorf("in the end it says %q", w.board.Get().Reason)
				}
			})
		})
	}
}

// Who streams from a primary is seen though it refuses a chore; where that itself is refused, nobody is seen to.
func TestWhoStreamsIsSeenThoughAChoreIsRefused(t *testing.T) {
	refusal := &pgconn.PgError{Code: "53400", Message: "all replication slots are in use"}
	for name, c := range map[string]struct {
		change   func(*answering)
		standbys int
		failure  bool
	}{
		"a chore is refused":      {func(s *answering) { s.noSlots = refusal }, 1, false},
		"who streams is":          {func(s *answering) { s.unwilling = refusal }, 0, false},
		"its files can't be read": {func(s *answering) { s.noSlots = &pgconn.PgError{Code: "XX001"} }, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, &answering{standbys: []string{"db-1.bb@3", "db-2.cc@3"}}, true)
				w.observeOnce(t.Context())
				if seen := w.last(t); len(seen.Standbys) != 2 {
					t.Fatalf("at first the machine is told %+v", seen)
				}
				w.server.standbys = w.server.standbys[:1]
				c.change(w.server)
				for range 2 {
					time.Sleep(time.Minute) // the chores are due again
					w.observeOnce(t.Context())
				}
				seen, now := w.last(t), w.board.Get()
				if len(seen.Standbys) != c.standbys || (seen.Failure != "") != c.failure || seen.Answers == c.failure ||
					now.Ready == c.failure {
					t.Errorf("the machine is told %+v, and it says %+v", seen, now)
				}
			})
		})
	}
}

// A standby that refuses what its agent asks for is not known to stream any more, and clients do not read there.
func TestAStandbyThatRefusesIsNotSeenToStream(t *testing.T) {
	for name, change := range map[string]func(*answering){
		"its session": func(s *answering) { s.refuses, s.broken = &pgconn.PgError{Code: "28000"}, true },
		"a question":  func(s *answering) { s.noSlots = &pgconn.PgError{Code: "42501"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, &answering{state: postgres.State{InRecovery: true, Streaming: true}}, false)
				w.observeOnce(t.Context())
				if !w.last(t).Streaming || !w.board.Get().Ready {
					t.Fatalf("at first the machine is told %+v", w.last(t))
				}
				w.server.state.Streaming = false
				change(w.server)
				time.Sleep(time.Minute)
				w.observeOnce(t.Context())
				if seen := w.last(t); seen.Streaming || seen.Failure != "" || w.board.Get().Streaming {
					t.Errorf("the machine is told %+v, and it says %+v", seen, w.board.Get())
				}
			})
		})
	}
}

// A receiver that hangs is killed: nothing else ends it, and the standby would acknowledge nothing any more.
func TestAReceiverThatHangsIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, killed := watch(t, &answering{state: postgres.State{InRecovery: true, Hangs: true}}, false), 0
		w.monitor.process = process{done: make(chan struct{}), killed: &killed}
		looks := func(when string, hangs bool, lasts time.Duration, want int) {
			t.Helper()
			w.server.state.Hangs = hangs
			for began := time.Now(); time.Since(began) < lasts; time.Sleep(time.Second) {
				w.observeOnce(t.Context())
			}
			if killed != want {
				t.Errorf("%s: it was killed %d times", when, killed)
			}
		}
		looks("as after a pause of the machine", true, hangPatience, 0)
		looks("when it is well", false, time.Second, 0)
		looks("not long enough", true, hangPatience, 0)
		looks("for long", true, time.Second, 1)
		looks("soon after that", true, hangPatience-time.Second, 1)
		looks("when it is well again", false, time.Minute, 1)
	})
}

// On a busy node a primary that writes and takes sessions goes on, though the rest of each look takes too long: for ten
// seconds. One that then hangs is found as soon as any other.
func TestAPrimaryThatIsBusyIsNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{}, true)
		w.observeOnce(t.Context())
		w.server.busy = true
		began := time.Now()
		for time.Since(began) < tendPatience-firstDeadline {
			w.observeOnce(t.Context())
			if seen := w.last(t); seen.Failure != "" || len(w.heard) != 1 || len(w.poke) != 1 {
				t.Fatalf("after %s the machine is told %+v", time.Since(began), seen)
			}
		}
		w.server.hangs = true
		if w.observeOnce(t.Context()); w.last(t).Failure != "" {
			t.Errorf("it has not answered once, and the machine is told %+v", w.last(t))
		}
		w.observeOnce(t.Context())
		if seen := w.last(t); seen.Failure == "" {
			t.Errorf("it hangs, and the machine is told %+v", seen)
		}
		w.server.hangs, w.server.busy = false, false
		w.observeOnce(t.Context())
		w.server.busy = true
		for began = time.Now(); time.Since(began) < tendPatience; {
			w.observeOnce(t.Context())
		}
		w.observeOnce(t.Context())
		if seen := w.last(t); seen.Failure == "" {
			t.Errorf("busy for %s, and the machine is told %+v", time.Since(began), seen)
		}
	})
}

// A server that is full answers.
func TestTooManyClientsAreNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{refuses: &pgconn.PgError{Code: "53300"}}, true)
		for range 3 {
			w.observeOnce(t.Context())
			if seen := w.last(t); seen.Failure != "" || seen.Answers {
				t.Errorf("the machine is told %+v", seen)
			}
		}
	})
}

func TestAServerThatIsNotWhatItIsRunAs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{state: postgres.State{InRecovery: true}}, true)
		w.observeOnce(t.Context())
		if now := w.board.Get(); now.Ready || now.Role == protocol.RolePrimary {
			t.Errorf("one that is being promoted says that it is %+v", now)
		}
		w = watch(t, &answering{}, false)
		w.observeOnce(t.Context())
		if !w.heard[0].Unelected || w.board.Get().Ready {
			t.Errorf("of one that was promoted by somebody else the machine is told %+v", w.heard[0])
		}
	})
}

func TestAStandbyIsReadyWhenItStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{state: postgres.State{InRecovery: true, LSN: "0/4000010"}}, false)
		w.board.Change(func(s *protocol.Status) { s.Reason = "Follower" })
		w.observeOnce(t.Context())
		if now := w.board.Get(); now.Ready || now.Role != protocol.RoleStandby || now.Reason != ReasonNotStreaming {
			t.Errorf("it says that it is %+v", now)
		}
		w.server.state.Streaming = true
		w.observeOnce(t.Context())
		if seen := w.last(t); !seen.Streaming || seen.Received != 0x4000010 || seen.Following != 3 || seen.Known {
			t.Errorf("the machine is told %+v", seen)
		}
		w.server.state.Streaming = false
		if w.observeOnce(t.Context()); !w.board.Get().Ready {
			t.Error("a pause in what it receives costs it its readers")
		}
		w.flags.Stale.Store(true)
		if w.observeOnce(t.Context()); w.board.Get().Ready {
			t.Error("it is ready though it has not streamed for long")
		}
	})
}

// A standby that has just been told whom to follow is woken until it streams, and looked at again at once. After that,
// and if it does not come to that for long, it is left alone.
func TestAStandbyThatBeginsToFollowIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{state: postgres.State{InRecovery: true}}, false)
		looks := func(at string, streams bool, wantWoken int, wantAgain bool) {
			t.Helper()
			before := w.server.woken
			w.server.looks, w.server.state.Streaming = 0, streams
			w.observeOnce(t.Context())
			if woken := w.server.woken - before; woken != wantWoken || len(w.poke) == 1 != wantAgain {
				t.Errorf("%s is woken %d times, and looked at again: %v", at, woken, len(w.poke) == 1)
			}
			select {
			case <-w.poke:
			default:
			}
		}
		looks("one that follows for long", false, 0, false)
		w.standing.follow(ha.Ballot{Term: 4, Leader: "db-2"})
		looks("one that begins to follow", false, 1, true)
		looks("one that seems to stream", true, 0, true)
		looks("one whose former timeline has ended", false, 1, true)
		looks("one that seems to stream again", true, 0, true)
		looks("one that streams", true, 0, false)
		w.standing.follow(ha.Ballot{Term: 5, Leader: "db-1"})
		looks("one that has streamed from the former leader", true, 0, true)
		looks("one that seems to stream from the new one", true, 0, true)
		looks("one that streams from the new one", true, 0, false)
		w.standing.follow(ha.Ballot{Term: 6, Leader: "db-2"})
		time.Sleep(streamPatience)
		looks("one that has not streamed for long", false, 0, false)
		w.standing.follow(ha.Ballot{})
		w.observeOnce(t.Context())
		if woken := w.server.woken; woken != 2 {
			t.Errorf("with one that follows nobody it was woken %d times", woken)
		}
	})
}

// The end of the WAL is asked for where nothing more can come, and again at once until it is known.
func TestAStandbyOfNobodyTellsTheEndOfItsWAL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{state: postgres.State{InRecovery: true}, looks: 1}, false)
		w.standing.follow(ha.Ballot{})
		w.observeOnce(t.Context())
		if w.last(t).Known || len(w.poke) != 1 {
			t.Errorf("before it is known, the machine is told %+v", w.last(t))
		}
		w.observeOnce(t.Context())
		if seen := w.last(t); !seen.Known || seen.End != 0x5000010 {
			t.Errorf("the machine is told %+v", seen)
		}
	})
}

// What a standby has to replay is told. Its replay is let alone until that must not wait.
func TestAStandbyTellsWhatItHasToReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{
			state:  postgres.State{InRecovery: true, Streaming: true, LSN: "0/5000018", Replayed: "0/4000018"},
			paused: true,
		}, false)
		w.observeOnce(t.Context())
		if seen := w.last(t); seen.Received != 0x5000018 || seen.Unreplayed != 0x1000000 || seen.Known {
			t.Errorf("the machine is told %+v", seen)
		}
		w.end.asked.Store(true)
		w.observeOnce(t.Context())
		if seen := w.last(t); seen.Received != 0x5000010 || seen.Unreplayed != 0x10 || seen.Known || !w.server.paused {
			t.Errorf("of one that has lost its leader the machine is told %+v", seen)
		}
		w.standing.follow(ha.Ballot{})
		w.observeOnce(t.Context())
		if seen := w.last(t); seen.End != 0x5000010 || seen.Unreplayed != 0x10 || !seen.Known || len(w.poke) != 1 {
			t.Errorf("of one that follows nobody the machine is told %+v", seen)
		}
		w.end.hasten.Store(true)
		w.observeOnce(t.Context())
		if seen := w.last(t); seen.Unreplayed != 0 || w.server.paused {
			t.Errorf("when it must not wait, the machine is told %+v", seen)
		}
	})
}

// A primary is looked at twice as often as a standby, and at once when that is asked for.
func TestHowOftenAServerIsLookedAt(t *testing.T) {
	for primary, want := range map[bool]int{true: 20, false: 10} {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t, &answering{state: postgres.State{InRecovery: !primary, Streaming: true}}, primary)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second-time.Millisecond)
			defer cancel()
			w.run(ctx)
			looks := 0
			for _, seen := range w.heard {
				if seen.Answers {
					looks++
				}
			}
			if looks < want || looks > want+1 { // a standby that has begun to stream is told of at once
				t.Errorf("a primary: %t was looked at %d times in ten seconds", primary, looks)
			}
			if w.session != nil {
				t.Error("its session is still there")
			}
		})
	}
}

// Where the WAL ends is asked for when the last client has gone, once, and of a primary only. Who is let in again may
// commit more, and one that follows another side commits without a client.
func TestTheEndIsAskedForWhenTheLastClientHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answering{state: postgres.State{LSN: "0/5000010", Timeline: 2}, clients: 2, inserted: 0x6000000}
		w := watch(t, server, true)
		wanted := protocol.Config{Revision: "1", Parameters: map[string]string{"work_mem": "1MB"}, Closed: true}
		w.monitor.wanted = func() protocol.Config { return wanted }
		closeFiles(t, w)
		look := func(closed bool, end string) {
			t.Helper()
			w.observeOnce(t.Context())
			if s := w.board.Get(); s.Closed != closed || s.End != end {
				t.Errorf("closed: %t, the end is %q, expected %t and %q", s.Closed, s.End, closed, end)
			}
		}
		look(false, "")
		look(false, "")
		look(true, "0/6000008")
		look(true, "0/6000008")
		server.clients = 1
		look(false, "")
		look(true, "0/6000010")
		server.follows = true
		look(true, "0/6000018")
		look(true, "0/6000020")
		server.follows = false
		look(true, "0/6000020")
		logins := 1 // one who began before the server was closed
		w.monitor.process = process{done: make(chan struct{}), logins: &logins}
		look(false, "")
		look(true, "0/6000028")
		wanted.Closed = false
		look(false, "")
	})
	synctest.Test(t, func(t *testing.T) {
		server := &answering{state: postgres.State{LSN: "0/5000010", Timeline: 2, InRecovery: true, Streaming: true}}
		w := watch(t, server, false)
		w.monitor.wanted = func() protocol.Config {
			return protocol.Config{Revision: "1", Parameters: map[string]string{"work_mem": "1MB"}, Closed: true}
		}
		closeFiles(t, w)
		w.observeOnce(t.Context())
		if s := w.board.Get(); !s.Closed || s.End != "" {
			t.Errorf("of a standby: closed: %t, the end is %q", s.Closed, s.End)
		}
	})
}

// closeFiles has the server's files let no client in.
func closeFiles(t *testing.T, w *watched) {
	t.Helper()
	w.config.withRole = func(s postgres.Settings) (postgres.Settings, error) {
		s.Synchronous, s.Closed = twoOthers.String(), true
		return s, nil
	}
	var err error
	if w.config.settings, err = w.config.settingsOf(w.config.runs); err != nil {
		t.Fatal(err)
	}
	w.config.shut = time.Now()
}

// A primary whose volume gets full ends what was writing, again and again, and once those who read as well; a standby
// only makes a restartpoint. When there is room, it is as before.
func TestAServerWhoseVolumeGetsFull(t *testing.T) {
	for name, primary := range map[string]bool{"a primary": true, "a standby": false} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, &answering{state: postgres.State{InRecovery: !primary}}, primary)
			checkpoints := 0
			w.checkpoint = func() { checkpoints++ }
			w.config.withRole = func(s postgres.Settings) (postgres.Settings, error) {
				s.Synchronous, s.Sparing = twoOthers.String(), w.flags.Sparing.Load()
				return s, nil
			}
			look := func(ended ...bool) {
				t.Helper()
				w.server.ended, w.config.settings.Sparing = nil, w.flags.Sparing.Load() // as after a reload
				w.observeOnce(t.Context())
				spares := w.flags.Sparing.Load() != nil
				if !slices.Equal(w.server.ended, ended) || w.board.Get().ReadOnly != (spares && primary) {
					t.Errorf("it ends %v, and says that it only reads: %v", w.server.ended, w.board.Get().ReadOnly)
				}
			}
			look()
			w.flags.Sparing.Store(&postgres.Sparing{})
			if !primary {
				look()
			} else {
				look(false)
				look(false)
				w.flags.EndReads.Store(true)
				look(true)
			}
			w.flags.Sparing.Store(nil)
			if look(); checkpoints != 1 {
				t.Errorf("it makes %d checkpoints", checkpoints)
			}
		})
	}
}

// What is to be done with a server whose volume gets full, and with one that lets no client in, is done though it
// refuses to say what is in its configuration.
func TestWritersAreEndedThoughTheConfigurationIsRefused(t *testing.T) {
	w := watch(t, &answering{clients: 1}, true)
	closeFiles(t, w)
	w.checkpoint = func() {}
	config, refused := w.config, &settings{reads: &pgconn.PgError{Code: "42501"}}
	w.monitor.wanted = func() protocol.Config { return protocol.Config{Closed: true} }
	w.config.wanted = func() protocol.Config { return protocol.Config{Revision: "2"} }
	w.monitor.server = configurable{w.server, refused}
	w.session = configurable{w.server, refused}
	config.settings.Sparing, config.settings.Closed, config.shut = &postgres.Sparing{}, true, time.Now()
	w.observeOnce(t.Context())
	if w.board.Get().Reason != ReasonRefuses || len(w.server.ended) != 1 || w.server.clients != 0 {
		t.Errorf("it says %+v, has ended those who write %d times, and left %d clients", w.board.Get(),
			len(w.server.ended), w.server.clients)
	}
}

// onABusyMachine watches the server of a primary where tasks wait all the time, by the kernel's word.
func onABusyMachine(t *testing.T, server *answering) *watched {
	t.Helper()
	began := time.Now()
	return underPressure(t, server, func() time.Duration { return time.Since(began) })
}

// underPressure watches the server of a primary where tasks have waited for so long in all, by the kernel's word.
func underPressure(t *testing.T, server *answering, stalled func() time.Duration) *watched {
	t.Helper()
	w := watch(t, server, true)
	w.monitor.looks.pressure = &pressure.Gauge{Stalled: stalled}
	ctx, stop := context.WithCancel(context.Background())
	go func() { _ = w.monitor.looks.pressure.Run(ctx, func() {}) }()
	t.Cleanup(func() {
		stop()
		synctest.Wait()
	})
	return w
}

// slowSessions is a server that takes a while to let a new session in. As a postgres.Server does, it gives that up
// after three seconds.
type slowSessions struct{ *answering }

func (slowSessions) Connect(ctx context.Context) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	<-ctx.Done()
	return nil, fmt.Errorf("connect: %w", ctx.Err())
}

func (s slowSessions) ProveLogin(ctx context.Context) error {
	_, err := s.Connect(ctx)
	return err
}

// On a busy machine a server that has answered not long ago is not taken for one that hangs, though no new session
// comes about.
func TestNewSessionsAreLateOnABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answering{}
		w := onABusyMachine(t, server)
		w.observeOnce(t.Context())
		time.Sleep(newSessions + time.Millisecond)
		w.monitor.server = slowSessions{server}
		for time.Since(w.monitor.looks.answered) < busyPatience-5*time.Second {
			w.monitor.looks.pressure.Late(3 * time.Second)
			if w.observeOnce(t.Context()); w.last(t).Failure != "" {
				t.Fatalf("it answered %s ago: %s", time.Since(w.monitor.looks.answered), w.last(t).Failure)
			}
		}
	})
}

// lateState is a server without a processor: a question takes a while.
type lateState struct {
	*answering
	takes time.Duration
}

func (s *lateState) Connect(ctx context.Context) (Session, error) {
	_, err := s.answering.Connect(ctx)
	return s, err
}

func (s *lateState) StateWithin(ctx, memory context.Context) (postgres.State, error) {
	select {
	case <-time.After(s.takes):
		state, err := s.answering.StateWithin(ctx, memory)
		state.Took = s.takes
		return state, err
	case <-memory.Done():
		return postgres.State{}, memory.Err()
	}
}

// One whose session somebody has ended is asked twice before it is given up, as any other. Whether an error or silence
// came first does not matter: three looks are enough.
func TestASessionThatWasEndedIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{}, true)
		w.observeOnce(t.Context())
		w.server.fails = errors.New("terminating connection due to administrator command")
		w.observeOnce(t.Context())
		w.server.fails, w.server.hangs = nil, true
		began := time.Now()
		if w.observeOnce(t.Context()); w.last(t).Failure != "" || time.Since(began) != firstAnswer {
			t.Errorf("after one question, which took %s, the machine is told %+v", time.Since(began), w.last(t))
		}
		if w.observeOnce(t.Context()); w.last(t).Failure == "" {
			t.Errorf("after %s the machine is told %+v", time.Since(began), w.last(t))
		}
		w.server.hangs = false
		w.observeOnce(t.Context())
		w.server.hangs = true
		w.observeOnce(t.Context())
		w.server.hangs, w.server.fails = false, errors.New("terminating connection due to administrator command")
		if w.observeOnce(t.Context()); w.last(t).Failure == "" {
			t.Error("silence and then an error are not two looks in a row that have failed")
		}
	})
}

// A server that was given up, and that nobody could replace, comes back also where each question takes a while.
func TestOneThatWasGivenUpComesBackSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answering{}
		w := watch(t, server, true)
		w.observeOnce(t.Context())
		w.server.hangs = true
		for range 5 {
			w.observeOnce(t.Context())
		}
		w.server.hangs = false
		w.monitor.server = &lateState{server, secondAnswer + 100*time.Millisecond}
		if w.observeOnce(t.Context()); w.last(t).Failure != "" {
			t.Errorf("the machine is told %+v", w.last(t))
		}
	})
}

// Where a write to the volume does not come back, what a server has in memory may wait for it.
func TestOnASlowVolumeAPrimaryHasTheTimeOfALook(t *testing.T) {
	for name, slow := range map[string]struct {
		from time.Duration // after the question
		took time.Duration
	}{
		"before":     {-1, firstDeadline + firstDeadline},
		"meanwhile":  {firstAnswer / 2, firstAnswer + firstDeadline},
		"at the end": {firstAnswer + secondAnswer/2, firstAnswer + secondAnswer + firstDeadline},
		"not at all": {time.Hour, firstAnswer + secondAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, &answering{}, true)
				w.monitor.looks.slow = &w.flags.Slow
				w.observeOnce(t.Context())
				w.server.hangs = true
				timer := time.AfterFunc(slow.from, func() { w.flags.Slow.Store(true) })
				defer timer.Stop()
				synctest.Wait()
				began := time.Now()
				for looks := 0; w.last(t).Failure == "" && looks < 9; looks++ {
					w.observeOnce(t.Context())
				}
				if took := time.Since(began); w.last(t).Failure == "" || took != slow.took {
					t.Errorf("after %s the machine is told %+v, want it after %s", took, w.last(t), slow.took)
				}
			})
		})
	}
}

// A volume that is slow again and again spares one that hangs once.
func TestAVolumeThatIsSlowNowAndThenSparesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{}, true)
		w.monitor.looks.slow = &w.flags.Slow
		w.observeOnce(t.Context())
		w.server.hangs = true
		looks := 0
		for ; w.last(t).Failure == "" && looks < 9; looks++ {
			w.flags.Slow.Store(false)
			timer := time.AfterFunc(secondAnswer/2, func() { w.flags.Slow.Store(true) })
			w.observeOnce(t.Context())
			timer.Stop()
		}
		if looks != 3 {
			t.Errorf("it is given up after %d looks", looks)
		}
	})
}

// slowFile is a server that says what it has in memory, and waits for its disk with the rest of its state.
type slowFile struct{ *answering }

func (s slowFile) Connect(context.Context) (Session, error) { return s, nil }

func (slowFile) StateWithin(ctx, _ context.Context) (postgres.State, error) {
	<-ctx.Done()
	return postgres.State{Took: time.Millisecond}, ctx.Err()
}

// One that says what it has in memory is not silent, though the rest of its state waits for a disk: two looks are
// enough, and each has its time.
func TestWhoWaitsForAFileIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stalling(t)
		began := time.Now()
		w.observeOnce(t.Context())
		w.monitor.server, w.monitor.session = slowFile{w.server}, slowFile{w.server}
		w.observeOnce(t.Context())
		if took := time.Since(began); w.last(t).Failure == "" || took != firstDeadline+secondDeadline {
			t.Errorf("after %s the machine is told %+v", took, w.last(t))
		}
	})
}

// promoting is a server that is promoted by its agent while it is asked.
type promoting struct {
	*answering
	promote func()
}

func (s promoting) StateWithin(ctx, memory context.Context) (postgres.State, error) {
	s.promote()
	return s.answering.StateWithin(ctx, memory)
}

// One that was made the primary while it was asked is one, and not promoted by somebody else.
func TestOneThatIsMadeThePrimaryMeanwhileIsElected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &answering{}, false)
		w.monitor.session = promoting{w.server, w.standing.bePrimary}
		w.observeOnce(t.Context())
		if seen := w.last(t); seen.Unelected || !seen.Answers || !w.board.Get().Ready {
			t.Errorf("the machine is told %+v", seen)
		}
	})
}

// Where a machine becomes busy at the moment of the question, the kernel says so of the time that it took: it was asked
// last before that.
func TestALateServerIsNoneThatHangsWhereTasksBeginToWait(t *testing.T) {
	for _, takes := range []time.Duration{700 * time.Millisecond, 1100 * time.Millisecond, 2 * time.Second} {
		for _, later := range []time.Duration{0, 300 * time.Millisecond, 900 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				server := &answering{}
				from := time.Now().Add(10*time.Second + later) // from which on tasks wait
				w := underPressure(t, server, func() time.Duration { return max(0, time.Since(from)) })
				w.observeOnce(t.Context())
				w.monitor.session, w.monitor.server = nil, &lateState{server, takes}
				time.Sleep(time.Until(from))
				for range 10 {
					if w.observeOnce(t.Context()); w.last(t).Failure != "" {
						t.Errorf("one that takes %s hangs, %s after a look: %s", takes, later, w.last(t).Failure)
						break
					}
				}
			})
		}
	}
}

// Where tasks wait by the kernel's word, a question that was given up came late, however long it would have taken.
func TestALateServerIsNoneThatHangsWhereTasksWait(t *testing.T) {
	for _, takes := range []time.Duration{1100 * time.Millisecond, 1300 * time.Millisecond, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			server := &answering{}
			w := onABusyMachine(t, server)
			w.observeOnce(t.Context())
			w.monitor.session, w.monitor.server = nil, &lateState{server, takes}
			time.Sleep(10 * time.Second)
			for range 10 {
				if w.observeOnce(t.Context()); w.last(t).Failure != "" {
					t.Errorf("one that takes %s hangs: %s", takes, w.last(t).Failure)
					break
				}
			}
		})
	}
}
