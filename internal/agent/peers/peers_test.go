package peers

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// network has an answer for each host, which takes a second or longer.
type network struct {
	mutex   sync.Mutex
	longer  time.Duration
	answers map[string]protocol.Status
	silent  string   // nothing comes back from this host
	news    []string // hosts that were told something
}

func (n *network) reach(ctx context.Context, host string) (protocol.Status, error) {
	select {
	case <-time.After(time.Second + n.longer):
	case <-ctx.Done():
		return protocol.Status{}, ctx.Err()
	}
	n.mutex.Lock()
	silent := n.silent == host
	n.mutex.Unlock()
	if silent {
		<-ctx.Done()
		return protocol.Status{}, ctx.Err()
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	status, ok := n.answers[host]
	if !ok {
		return status, syscall.ECONNREFUSED
	}
	return status, nil
}

func (n *network) Status(ctx context.Context, host string) (protocol.Status, error) {
	return n.reach(ctx, host)
}

func (n *network) News(ctx context.Context, host string, _ protocol.Status) (protocol.Status, error) {
	n.mutex.Lock()
	n.news = append(n.news, host)
	n.mutex.Unlock()
	return n.reach(ctx, host)
}

func (n *network) Vote(ctx context.Context, host string, _ ha.VoteRequest) (ha.VoteReply, error) {
	_, err := n.reach(ctx, host)
	return ha.VoteReply{Granted: err == nil}, err
}

func (n *network) ProposeConfiguration(ctx context.Context, host string, _ protocol.Proposal) (ha.AcceptReply, error) {
	_, err := n.reach(ctx, host)
	return ha.AcceptReply{Accepted: err == nil}, err
}

func (n *network) Close() {}

// meeting is db-0 among three, and the events it hears.
func meeting(answers map[string]protocol.Status) (*Peers, *network, func() []machine.Event) {
	n, mutex, heard := &network{answers: answers}, sync.Mutex{}, []machine.Event(nil)
	members := func() []protocol.Member {
		return []protocol.Member{
			{Name: "db-0", Host: "h0"}, {Name: "db-1", Host: "h1", Address: "a1"}, {Name: "db-2", Host: "h2"},
		}
	}
	p := New("db-0", n, members, func(e machine.Event) {
		mutex.Lock()
		defer mutex.Unlock()
		heard = append(heard, e)
	})
	p.CountFrom(time.Now())
	return p, n, func() []machine.Event {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(heard)
	}
}

// Where an instance may be silent for longer, an answer is waited for as much longer.
func TestAnAnswerOfABusyMachineIsWaitedFor(t *testing.T) {
	for slack, want := range map[time.Duration]bool{0: false, 2 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			p, n, heard := meeting(map[string]protocol.Status{"a1": {Name: "db-1"}})
			n.longer = answerDeadline // after a second
			p.Slack = func() time.Duration { return slack }
			go func() { _ = p.Run(ctx) }()
			time.Sleep(2 * answerDeadline)
			stop()
			synctest.Wait()
			if answered := slices.ContainsFunc(heard(), func(e machine.Event) bool {
				_, is := e.(machine.PeerAnswered)
				return is
			}); answered != want {
				t.Errorf("with a slack of %s, an answer after 6 s is heard: %v", slack, answered)
			}
		})
	}
}

// lost has no route to any address, and reaches no DNS server.
type lost struct{ *network }

func (lost) Status(_ context.Context, host string) (protocol.Status, error) {
	if strings.HasPrefix(host, "h") {
		time.Sleep(time.Second)
		return protocol.Status{}, &net.DNSError{Err: "i/o timeout", Name: host, IsTimeout: true}
	}
	return protocol.Status{}, syscall.EHOSTUNREACH
}

// That a name can't be looked up takes nothing from what its address has told.
func TestAnAddressRefusesWithoutDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p, n, heard := meeting(nil)
		p.client = lost{n}
		go func() { _ = p.Run(ctx) }()
		time.Sleep(10 * time.Second)
		stop()
		time.Sleep(2 * time.Second)
		refused := map[string]bool{}
		for _, e := range heard() {
			if r, is := e.(machine.PeerRefused); is {
				refused[r.Name] = true
			}
		}
		if !refused["db-1"] || refused["db-2"] {
			t.Errorf("refused by db-1, and nothing is known of db-2: %v", refused)
		}
	})
}

func TestPeersAreAskedEachByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p, _, heard := meeting(map[string]protocol.Status{"a1": {Name: "db-1", Boot: "x", Number: 3, Term: 4}})
		go func() { _ = p.Run(ctx) }()
		time.Sleep(heartbeat / 2)
		stop() // after one question to each
		synctest.Wait()
		time.Sleep(10 * time.Second)
		if len(heard()) > 0 {
			t.Errorf("those who were asked by one that has ended have said %v", heard())
		}
		go func() { _ = p.Run(t.Context()) }()
		time.Sleep(1100 * time.Millisecond)
		var answered, refused int
		for _, e := range heard() {
			switch e := e.(type) {
			case machine.PeerAnswered:
				answered++
				if e.Status.Name != "db-1" || e.Status.Peer.Ballot.Term != 4 || e.Asked < 10*time.Second {
					t.Errorf("it hears %+v", e)
				}
			case machine.PeerRefused:
				refused++
				if e.Name != "db-2" {
					t.Errorf("%s is not there", e.Name)
				}
			}
		}
		if answered == 0 || refused == 0 {
			t.Errorf("heard %+v", heard())
		}
		if s, ok := p.Last("db-1"); !ok || s.Number != 3 || p.LastAddress("db-1") != "a1" {
			t.Errorf("the last of it is %+v by %q", s, p.LastAddress("db-1"))
		}
	})
}

// Addresses are given to new Pods: what another one says by it is nobody's, and the name is tried next.
func TestAnAnswerUnderAnothersNameIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, heard := meeting(map[string]protocol.Status{"a1": {Name: "other-7"}, "h1": {Name: "db-1"}})
		member := protocol.Member{Name: "db-1", Host: "h1", Address: "a1"}
		p.ask(t.Context(), member)
		got := heard()
		if answered, ok := got[0].(machine.PeerAnswered); !ok || len(got) != 1 || answered.Status.Name != "db-1" {
			t.Errorf("it hears %+v", got)
		}
		if address := p.Address(member); address != "" {
			t.Errorf("it is reached by %q", address)
		}
		if _, known := p.Last("other-7"); known {
			t.Error("the other one counts")
		}
	})
}

// When a Pod is being deleted, the operator does not know its address any more. Its process has it to its end: a
// standby that streams from there must not leave, for the name may be gone and it would not get back.
func TestAProcessKeepsItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := protocol.Status{Name: "db-1", Boot: "x"}
		answers := map[string]protocol.Status{"a1": status, "h1": status}
		p, _, _ := meeting(answers)
		known := protocol.Member{Name: "db-1", Host: "h1", Address: "a1"}
		deleted := protocol.Member{Name: "db-1", Host: "h1"}
		p.ask(t.Context(), known)
		p.ask(t.Context(), deleted)
		if address := p.Address(deleted); address != "a1" {
			t.Errorf("the process is reached by %q", address)
		}
		for name, hears := range map[string]func(protocol.Status){
			"answers": func(next protocol.Status) {
				answers["h1"] = next
				p.ask(t.Context(), deleted)
			},
			"tells": p.OnStatus,
		} {
			p.ask(t.Context(), known)
			hears(protocol.Status{Name: "db-1", Boot: "y"})
			if address := p.Address(deleted); address != "" {
				t.Errorf("another process %s, and is reached by %q", name, address)
			}
		}
	})
}

// A question by the second way is as old as itself: that the first way was waited for before makes no answer older.
func TestAnAnswerIsAsOldAsItsOwnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, n, heard := meeting(map[string]protocol.Status{"h1": {Name: "db-1"}})
		n.silent = "a1"
		p.ask(t.Context(), protocol.Member{Name: "db-1", Host: "h1", Address: "a1"})
		got := heard()
		if answered, ok := got[0].(machine.PeerAnswered); !ok || answered.Asked != nextWay {
			t.Errorf("what is heard after %s, of a question that was asked after %s, is %+v",
				time.Since(p.began), nextWay, got)
		}
	})
}

// An address at which nothing answers is waited for once. A vote has no time for that.
func TestAnAddressThatDidNotAnswerIsNotWaitedFor(t *testing.T) {
	former := protocol.Member{Name: "db-1", Host: "h1", Address: "a1"}
	for name, c := range map[string]struct {
		before func(p *Peers)
		votes  bool
	}{
		"it has not been tried yet":        {func(*Peers) {}, false},
		"the name answered in its place":   {func(p *Peers) { p.ask(context.Background(), former) }, true},
		"the name answered to news":        {func(p *Peers) { p.reached(former, "h1") }, true},
		"another address is known by then": {func(p *Peers) { p.silent["db-1"] = "a0" }, false},
		"the address has answered since": {func(p *Peers) {
			p.reached(former, "h1")
			p.reached(former, "a1")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, n, _ := meeting(map[string]protocol.Status{"h1": {Name: "db-1"}})
				n.silent, n.longer = "a1", -500*time.Millisecond
				c.before(p)
				reply, err := p.Vote(t.Context(), former, ha.VoteRequest{}, voteDeadline)
				if reply.Granted != c.votes {
					t.Errorf("the vote is %v: %v", reply.Granted, err)
				}
			})
		})
	}
}

func TestWhatWasOvertakenOnTheWayIsNotTaken(t *testing.T) {
	said := func(boot string, number uint64) protocol.Status {
		return protocol.Status{Name: "db-1", Boot: boot, Number: number}
	}
	for name, c := range map[string]struct {
		second protocol.Status
		told   bool
		want   protocol.Status
	}{
		"a later answer":                    {said("x", 4), false, said("x", 4)},
		"an earlier answer":                 {said("x", 2), false, said("x", 3)},
		"an answer after a restart":         {said("y", 1), false, said("y", 1)},
		"later news":                        {said("x", 4), true, said("x", 4)},
		"earlier news":                      {said("x", 2), true, said("x", 3)},
		"news after a restart":              {said("y", 1), true, said("y", 1)},
		"news of one that nobody has heard": {protocol.Status{Name: "db-2", Number: 9}, true, said("x", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, heard := meeting(nil)
			p.handleAnswer(answer{status: said("x", 3), address: "a1"})
			if c.told {
				p.OnStatus(c.second)
			} else {
				p.handleAnswer(answer{status: c.second, address: "a1"})
			}
			if got, _ := p.Last("db-1"); !reflect.DeepEqual(got, c.want) || len(heard()) != 2 {
				t.Errorf("the last is %+v, after %d events", got, len(heard()))
			}
			if _, known := p.Last("db-2"); known {
				t.Error("one that was never reached is known")
			}
		})
	}
}

func TestAllOthersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, n, heard := meeting(map[string]protocol.Status{"a1": {Name: "db-1"}, "h2": {Name: "db-2"}})
		p.Broadcast(t.Context(), protocol.Status{Name: "db-0"})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		slices.Sort(n.news)
		if !slices.Equal(n.news, []string{"a1", "h2"}) || len(heard()) != 2 {
			t.Errorf("told were %v, and %d have answered", n.news, len(heard()))
		}
	})
}

func TestAVoterThatDoesNotAnswerInTimeHasNotVoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, n, _ := meeting(map[string]protocol.Status{"h1": {Name: "db-1"}})
		n.longer = time.Millisecond
		began := time.Now()
		_, err := p.Vote(t.Context(), protocol.Member{Name: "db-1", Host: "h1"}, ha.VoteRequest{}, voteDeadline)
		if err == nil || time.Since(began) > voteDeadline {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestTheNextWayIsTriedWhenOneFailsOrIsSlow(t *testing.T) {
	both := ways{[]string{"address", "name"}, nextWay}
	for name, c := range map[string]struct {
		takes map[string]time.Duration // 0: it fails at once
		want  string
		after time.Duration
	}{
		"the address answers": {
			map[string]time.Duration{"address": time.Second, "name": time.Second}, "address", time.Second,
		},
		"the address fails": {map[string]time.Duration{"address": 0, "name": time.Second}, "name", time.Second},
		"the address does not answer": {
			map[string]time.Duration{"address": time.Hour, "name": time.Second}, "name", nextWay + time.Second,
		},
		"the address is slow, yet first": {
			map[string]time.Duration{"address": 2 * time.Second, "name": time.Minute}, "address", 2 * time.Second,
		},
		"neither": {map[string]time.Duration{"address": 0, "name": 0}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := reach(t.Context(), both, answerDeadline,
					func(ctx context.Context, host string) (string, error) {
						if c.takes[host] == 0 {
							return "", errors.New("refused")
						}
						select {
						case <-time.After(c.takes[host]):
							return host, nil
						case <-ctx.Done():
							return "", ctx.Err()
						}
					})
				if got != c.want || (err == nil) != (c.want != "") || time.Since(began) != c.after {
					t.Errorf("%q answers after %v, %v", got, time.Since(began), err)
				}
			})
		})
	}
}

func TestWhatTheMachineHearsOfAStatus(t *testing.T) {
	for name, c := range map[string]struct {
		leading bool
		written wal.LSN
	}{
		"of a leader":  {true, 0x2000000},
		"of a standby": {false, 0}, // what it has is its position: its WAL may be another timeline's
	} {
		t.Run(name, func(t *testing.T) {
			s := protocol.Status{
				Name: "db-1", Boot: "x", Number: 3, Term: 4, Leader: "db-1", LSN: "0/2000000", Oldest: "0/1000000",
				Streaming: true, Resigned: true, Election: protocol.Election{
					Voter: "db-1.b", Leading: c.leading, LeaderLost: true, Configuration: ha.Configuration{Term: 4},
					Silence: time.Second,
				},
			}
			want := machine.PeerStatus{
				Name: "db-1", Boot: "x", Number: 3, Configuration: ha.Configuration{Term: 4}, Silence: time.Second,
				Peer: ha.Peer{
					Voter: "db-1.b", Ballot: ha.Ballot{Term: 4, Leader: "db-1"}, Leading: c.leading, Oldest: 0x1000000,
					Written: c.written, Streaming: true, Resigned: true, LeaderLost: true,
				},
			}
			if got := said(s); !reflect.DeepEqual(got, want) {
				t.Errorf("it hears %+v, want %+v", got, want)
			}
		})
	}
}
