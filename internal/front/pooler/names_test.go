package pooler

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// ask asks for an address of a kind, and returns the answer.
func ask(t *testing.T, address, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	conn, err := net.Dial("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	question := dnsmessage.Message{
		Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET},
		},
	}
	text, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(text); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	buffer := make([]byte, 1500)
	n, err := conn.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(buffer[:n]); err != nil {
		t.Fatal(err)
	}
	if answer.ID != 7 || !answer.Response {
		t.Errorf("the answer to another question: %+v", answer.Header)
	}
	return answer
}

// A look-up is answered when an instance leads, with its address, for this moment.
func TestALookUpWaitsForALeader(t *testing.T) {
	elected := make(chan string)
	n, err := listenForNames(func(ctx context.Context) (netip.Addr, error) {
		select {
		case address := <-elected:
			return netip.ParseAddr(address)
		case <-ctx.Done():
			return netip.Addr{}, errors.New("nobody")
		}
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	n.name = "shop.default.svc"
	go n.run(t.Context())
	for name, c := range map[string]struct {
		name, leader string
		kind         dnsmessage.Type
		want         dnsmessage.ResourceBody // nil for none
		code         dnsmessage.RCode
	}{
		"an address": {
			"shop.default.svc.", "10.0.0.7", dnsmessage.TypeA, &dnsmessage.AResource{A: [4]byte{10, 0, 0, 7}}, 0,
		},
		"an address of the other kind": {"shop.default.svc.", "10.0.0.7", dnsmessage.TypeAAAA, nil, 0},
		"an address of IPv6": {
			"shop.default.svc.", "fd00::7", dnsmessage.TypeAAAA,
			&dnsmessage.AAAAResource{AAAA: netip.MustParseAddr("fd00::7").As16()}, 0,
		},
		"another name": {"example.com.", "10.0.0.7", dnsmessage.TypeA, nil, dnsmessage.RCodeNameError},
	} {
		t.Run(name, func(t *testing.T) {
			leads := make(chan struct{})
			go func() { close(leads); elected <- c.leader }()
			answer := ask(t, n.address(), c.name, c.kind)
			select {
			case <-leads:
			default:
				t.Error("it was answered while nobody led")
			}
			switch all := answer.Answers; {
			case answer.RCode != c.code || len(all) > 1 || (len(all) == 1) != (c.want != nil):
				t.Errorf("the answer is %+v", answer)
			case c.want != nil && (all[0].Body.GoString() != c.want.GoString() || all[0].Header.TTL != 0):
				t.Errorf("the answer is %+v, want %+v", all[0], c.want)
			}
		})
	}
}
