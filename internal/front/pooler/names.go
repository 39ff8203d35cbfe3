package pooler

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"toban.dev/internal/protocol"
)

// names answers PgBouncer's look-ups of the name of servers, by DNS on a loopback address. An answer waits until an
// instance confirms that it leads: so PgBouncer's clients wait, too, while none does. To let it connect in vain would
// have it refuse clients until it has connected again (server_login_retry).
type names struct {
	conn net.PacketConn
	name string // of servers, before run
	// leader waits for the address of an instance that leads.
	leader func(context.Context) (netip.Addr, error)
	log    *slog.Logger
}

// listenForNames listens on a port that is free.
func listenForNames(leader func(context.Context) (netip.Addr, error), log *slog.Logger) (*names, error) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return nil, fmt.Errorf("listen for look-ups: %w", err)
	}
	return &names{conn: conn, leader: leader, log: log}, nil
}

func (n *names) address() string { return n.conn.LocalAddr().String() }

// run answers until ctx ends.
func (n *names) run(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = n.conn.Close() })()
	buffer := make([]byte, 1500)
	for ctx.Err() == nil {
		length, from, err := n.conn.ReadFrom(buffer)
		if err != nil {
			continue // closed, or a client that is gone
		}
		var question dnsmessage.Message
		if err := question.Unpack(buffer[:length]); err != nil || len(question.Questions) != 1 {
			continue
		}
		go n.answer(ctx, question, from)
	}
}

// answer answers one look-up. One that is asked again while it waits gets as many answers.
func (n *names) answer(ctx context.Context, message dnsmessage.Message, to net.Addr) {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	address, err := n.leader(ctx)
	if err != nil {
		return // it is asked again
	}
	text, err := n.answerTo(message, address)
	if err != nil {
		n.log.Warn("could not answer a look-up", "error", err.Error())
		return
	}
	_, _ = n.conn.WriteTo(text, to) // who is gone asks again
}

// lookupPatience is for how long a look-up waits: longer than any client.
const lookupPatience = protocol.WakeLimit + time.Minute

// answerTo is the answer to a question for an address, which is true now and no longer. The other kind of address there
// is none of.
func (n *names) answerTo(question dnsmessage.Message, address netip.Addr) ([]byte, error) {
	asked := question.Questions[0]
	answer := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: question.ID, Response: true, Authoritative: true, RecursionDesired: question.RecursionDesired,
			RecursionAvailable: true,
		},
		Questions: question.Questions,
	}
	header := dnsmessage.ResourceHeader{Name: asked.Name, Type: asked.Type, Class: asked.Class, TTL: 0}
	switch {
	case asked.Name.String() != n.name+".":
		answer.RCode = dnsmessage.RCodeNameError
	case asked.Type == dnsmessage.TypeA && address.Is4():
		answer.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: address.As4()}}}
	case asked.Type == dnsmessage.TypeAAAA && address.Is6():
		answer.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}}}
	}
	text, err := answer.Pack()
	if err != nil {
		return nil, fmt.Errorf("write the answer to a look-up: %w", err)
	}
	return text, nil
}
