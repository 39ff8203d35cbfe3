package running

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/postgres"
)

// mortal is the process of a server that can be killed, is gone then, and can be handed over.
type mortal struct {
	process
	kills *int
}

func (m mortal) Kill(context.Context, bool) error                 { *m.kills++; return nil }
func (m mortal) Gone(context.Context) error                       { return nil }
func (m mortal) HandOver() (h postgres.Handed, _ func(), _ error) { return h, func() {}, nil }

// runs is a server that has been started, as its launcher makes it.
func runs(t *testing.T, process Process) *Server {
	t.Helper()
	r := launch(t, &startable{}).prepare(t.Context(), 1, &Standing{})
	r.Config.started(process)
	return r
}

// A command that stops a server in order waits for who looks after it, and a fence waits for the command. Where who
// looks after it waits for a disk that hangs, the fence did not end either, and nobody else could lead.
func TestAFenceDoesNotWaitForWhoLooksAfterTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mortal{kills: new(int)}
		r := runs(t, server)
		disk, closed := make(chan struct{}), make(chan struct{})
		r.tending.Go(func() { <-disk }) // it writes a file
		go func() { defer close(closed); r.Close() }()
		time.Sleep(time.Hour)
		select {
		case <-closed:
			t.Fatal("a stop in order goes on while somebody works on the server's files")
		default:
		}
		for n := range 2 { // a fence kills twice: the command may be starting a server
			if err := r.Process.Kill(t.Context(), false); err != nil || *server.kills != n+1 {
				t.Fatalf("it was killed %d times: %v", *server.kills, err)
			}
		}
		synctest.Wait()
		select {
		case <-closed:
		default:
			t.Error("what a fence waits for waits for the disk")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Process.Gone(ctx); !errors.Is(err, errTended) {
			t.Errorf("nothing is left, though somebody works on the server's files: %v", err)
		}
		close(disk)
		if err := r.Process.Gone(t.Context()); err != nil {
			t.Errorf("the disk answers: %v", err)
		}
	})
}

// Who breaks a server on purpose, or hands it over, has it itself.
func TestAServerItselfIsFound(t *testing.T) {
	server := mortal{kills: new(int)}
	r := runs(t, server)
	if r.Process == Process(server) || Itself(r.Process) != Process(server) || Itself(server) != Process(server) {
		t.Errorf("it is %v", r.Process)
	}
	if _, err := r.HandOver(&Handed{}); err != nil {
		t.Errorf("it can't be handed over: %v", err)
	}
}
