package server_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const countReceivers = "select count(*) from pg_stat_activity where backend_type = 'walreceiver'"

// loadBatches are how many batches load writes as fast as it can: about a gigabyte.
const loadBatches = 300

// load writes until it is told to stop: as fast as it can at first, and then so little that it fills no disk.
func (n *node) load() (stop func()) {
	n.Helper()
	n.do("create table if not exists load (id bigserial, t text)")
	ctx, cancel := context.WithCancel(n.Context())
	done := make(chan struct{})
	conn := n.dial()
	go func() {
		defer close(done)
		defer conn.Close(context.Background())
		rows := 5000
		for batch := 0; ctx.Err() == nil; batch++ {
			if batch >= loadBatches {
				rows = 1
				time.Sleep(10 * time.Millisecond)
			}
			if _, err := conn.Exec(ctx, "insert into load (t) select repeat(md5(i::text), 1 + i % 40) from "+
				"generate_series(1, $1) i", rows); err != nil {
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

func TestReceivingUnderLoadStopsForGoodWhenTheTermIsRevoked(t *testing.T) {
	primary, standbys := pair(t, 1)
	standby := standbys[0]
	stop := primary.load()
	defer stop()
	standby.eventually("it has replayed some load",
		func() bool { return standby.ask("select to_regclass('load')") != "" })

	must(t, standby.Revoke(2))
	begin := time.Now()
	must(t, standby.process.StopReceiving(within(t, deadline)))
	t.Logf("StopReceiving took %v", time.Since(begin))
	received := standby.state().Received
	// Its configuration still names the primary: receivers begin again and again, find
	// no key, and so never get as far as this view.
	if n := standby.ask("select count(*) from pg_stat_wal_receiver where status = 'streaming'"); n != "0" {
		t.Errorf("%s receivers are left", n)
	}
	standby.eventually("a new receiver failed for want of a key", func() bool {
		return strings.Contains(standby.log.String(), "certificate present, but not private key file")
	})
	if got := standby.state(); got.Received != received || got.Streaming {
		t.Errorf("after the term was revoked it received up to %s, streams: %v; before: %s",
			got.Received, got.Streaming, received)
	}
	if err := standby.Configure(standby.settings); err == nil {
		t.Error("the revoked term was configured again")
	}
	standby.follow(primary, 2)
	standby.streams()
}

func TestReceivingStopsWithoutHurryingASilentClient(t *testing.T) {
	primary, standbys := pair(t, 1)
	standby := standbys[0]
	standby.patient = true
	standby.follow(primary, 1)
	standby.eventually("it gives clients time",
		func() bool { return standby.ask("current_setting('authentication_timeout')") == "10min" })
	silent, err := net.Dial("tcp", net.JoinHostPort(standby.Listen, strconv.Itoa(standby.Port)))
	must(t, err)
	defer silent.Close()
	must(t, standby.Revoke(2))
	must(t, standby.process.StopReceiving(within(t, deadline))) // it would wait for the client for ten minutes
	must(t, silent.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	var timeout net.Error
	if _, err := silent.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("the client was thrown out: %v", err)
	}
}

func TestAStoppedReceiverIsAnErrorAndNotSilence(t *testing.T) {
	_, standbys := pair(t, 1)
	standby := standbys[0]
	pid, err := strconv.Atoi(standby.ask("select pid from pg_stat_wal_receiver"))
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	must(t, standby.Revoke(2))
	if err := standby.process.StopReceiving(within(t, 200*time.Millisecond)); err == nil {
		t.Error("a stopped receiver was taken for none")
	}
	must(t, syscall.Kill(pid, syscall.SIGCONT))
	must(t, standby.process.StopReceiving(within(t, deadline)))
}

// A receiver that hangs goes on saying that it streams. It is not believed for longer than it would wait itself.
func TestAReceiverThatHangsDoesNotStream(t *testing.T) {
	_, standbys := pair(t, 1)
	standby := standbys[0]
	standby.settings.Parameters["wal_receiver_timeout"] = "1s"
	must(t, standby.Configure(standby.settings))
	must(t, standby.process.Reload())
	standby.eventually("it has read that", func() bool {
		return standby.ask("current_setting('wal_receiver_timeout')") == "1s"
	})
	for range 30 { // nobody writes
		standby.streams()
		time.Sleep(100 * time.Millisecond)
	}
	pid, err := strconv.Atoi(standby.ask("select pid from pg_stat_wal_receiver"))
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	if !standby.state().Streaming {
		t.Error("it does not stream any more at once")
	}
	standby.eventually("it does not stream", func() bool { return !standby.state().Streaming })
	if says := standby.ask("select status from pg_stat_wal_receiver"); says != "streaming" {
		t.Errorf("it says %q by itself", says)
	}
	must(t, standby.process.KillReceiver())
	standby.eventually("a new one streams", func() bool {
		s, err := standby.Connect(t.Context())
		if err != nil {
			return false // it begins anew
		}
		defer s.Close()
		state, err := s.State(t.Context())
		return err == nil && state.Streaming
	})
}

func TestAStandbyChangesItsUpstreamWithoutARestart(t *testing.T) {
	primary, standbys := pair(t, 2)
	standby := standbys[1]
	started := standby.ask("select pg_postmaster_start_time()")
	standby.follow(nil, 0)
	standby.eventually("it follows nobody", func() bool {
		return standby.ask(countReceivers) == "0" && standby.ask("select current_setting('primary_conninfo')") == ""
	})
	standbys[0].slots(standby)
	standbys[0].follow(nil, 0) // who follows somebody lets nobody follow it
	standby.follow(standbys[0], 2)
	standby.streams()
	if host := standby.ask("select sender_host from pg_stat_wal_receiver"); host != standbys[0].Listen {
		t.Errorf("it follows %s", host)
	}
	standby.follow(primary, 3)
	standby.eventually("it follows the primary again",
		func() bool { return standby.ask("select sender_host from pg_stat_wal_receiver") == primary.Listen })
	if now := standby.ask("select pg_postmaster_start_time()"); now != started {
		t.Error("it was restarted")
	}
	// A slot is in use until its sender has noticed that nobody receives any more.
	standbys[0].eventually("a standby that shall have no slots has none", func() bool {
		standbys[0].slots()
		return standbys[0].ask("select count(*) from pg_replication_slots") == "0"
	})
}
