package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"toban.dev/internal/front/route"
)

// mostSaid is how much of what a client has said before the server has answered is kept, in bytes. A client of
// PostgreSQL waits for an answer long before that.
const mostSaid = 64 << 10

// passage is one client on its way to a leader.
type passage struct {
	client net.Conn
	// ended is called when the passage is over: the client has gone, or is not to be passed on.
	ended context.CancelFunc

	mutex sync.Mutex
	// server is the connection to the instance of a route, nil while there is none.
	server net.Conn
	to     route.Route
	// said is what the client has said, until the server has answered.
	said     []byte
	answered bool
	// ends is how often a server has ended the connection without having said anything.
	ends int
}

// listen passes on what the client says. Until the server has answered it is kept, for another server.
func (p *passage) listen() {
	buffer := make([]byte, 4<<10)
	for {
		n, err := p.client.Read(buffer)
		if err != nil {
			p.clientGone()
			return
		}
		server, done := p.keep(buffer[:n])
		if server == nil {
			continue
		}
		if _, err := server.Write(buffer[:n]); err != nil && done {
			return // who reads from the server notices
		}
		if done {
			_, _ = io.Copy(server, p.client) // who reads from the server notices
			closeWrite(server)
			return
		}
	}
}

// keep keeps what the client has said, and tells where it goes at once. It is done when the server has answered.
func (p *passage) keep(said []byte) (server net.Conn, done bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.answered {
		return p.server, true
	}
	p.said = append(p.said, said...)
	if len(p.said) > mostSaid {
		p.endLocked()
	}
	return p.server, false
}

// clientGone has the server know that no more comes.
func (p *passage) clientGone() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.ended()
	if p.server != nil {
		closeWrite(p.server)
	}
}

// through passes on what the server answers, until it ends. It is false where the server had not said anything when
// it broke, or when another leads: then the next server gets what the client has said.
func (p *passage) through(server net.Conn, to route.Route) (served bool) {
	defer server.Close()
	if err := p.begin(server, to); err != nil {
		return false
	}
	first := make([]byte, 4<<10)
	n, err := server.Read(first)
	if n == 0 && err != nil && p.mayRestart(err) {
		return false
	}
	p.answer()
	if n > 0 {
		if _, err := p.client.Write(first[:n]); err != nil {
			return true
		}
	}
	_, _ = io.Copy(p.client, server) // either has gone
	return true
}

// begin has the server hear what the client has said so far.
func (p *passage) begin(server net.Conn, to route.Route) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.server, p.to = server, to
	_, err := server.Write(p.said)
	if err != nil {
		p.server = nil
	}
	return err
}

// mostEnds is how often a server may end a connection in order without having said anything, and the client is passed
// on to one again. One that is being stopped does that, and one that does not understand the client, always.
const mostEnds = 3

// mayRestart has the client wait for another server, if it may, because of how one has ended the connection.
func (p *passage) mayRestart(err error) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if errors.Is(err, io.EOF) {
		if p.ends++; p.ends > mostEnds {
			return false
		}
	}
	p.server = nil
	return true
}

// answer notes that the server has said something: from now on the client has a session with it.
func (p *passage) answer() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.answered, p.said = true, nil
}

// leave ends the connection to the server if another instance leads now. One that leads again knows better itself
// whether its sessions go on.
func (p *passage) leave(now route.Route) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.server != nil && p.to.Term < now.Term && p.to.Instance != now.Instance {
		_ = p.server.Close()
	}
}

// giveUp ends the passage if nothing is heard any more of the instance to which it goes.
func (p *passage) giveUp(silence func(instance string) time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.server != nil && silence(p.to.Instance) > silent {
		p.endLocked()
	}
}

// end ends both sides.
func (p *passage) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.endLocked()
}

func (p *passage) endLocked() {
	p.ended()
	_ = p.client.Close()
	if p.server != nil {
		_ = p.server.Close()
	}
}

// closeWrite tells a server that no more comes; it ends then.
func closeWrite(server net.Conn) {
	if half, ok := server.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = server.Close()
}
