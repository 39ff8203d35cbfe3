package protocol

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// Both ends repeat what was lost at a steady pace: that of the answer, too.
func TestLostPacketsAreRepeatedAtASteadyPaceAtBothEnds(t *testing.T) {
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := (&net.Dialer{Control: thin}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	for end, conn := range map[string]net.Conn{"dialed": dialed, "accepted": accepted} {
		if !isThin(t, conn) {
			t.Errorf("the %s end waits longer after each loss", end)
		}
	}
}

func isThin(t *testing.T, conn net.Conn) bool {
	t.Helper()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("a %T", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var value int
	var asked error
	if err := raw.Control(func(fd uintptr) {
		value, asked = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_THIN_LINEAR_TIMEOUTS)
	}); err != nil || asked != nil {
		t.Fatal(err, asked)
	}
	return value == 1
}
