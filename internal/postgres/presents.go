package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// Presented is what a server shows to who connects with TLS.
type Presented struct {
	// Certificate is its own (DER), Authorities the names (DER) of those whose certificates it takes.
	Certificate []byte
	Authorities [][]byte
}

// requestTLS asks for TLS (SSLRequest in PostgreSQL's documentation, 53.7).
var requestTLS = []byte{0, 0, 0, 8, 4, 210, 22, 47}

// Presents begins a connection over TCP, as a client does, and sees what the server shows. The server has read its
// certificates by then, which nothing else tells: it goes on with the former ones where it can't read new ones.
func (s *Server) Presents(ctx context.Context) (Presented, error) {
	host := s.Listen
	if host == "" || host == "*" {
		host = "127.0.0.1"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(s.Port)))
	if err != nil {
		return Presented{}, fmt.Errorf("see which certificate the server shows: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	out, err := presented(ctx, conn)
	if err != nil {
		return Presented{}, fmt.Errorf("see which certificate the server shows: %w", err)
	}
	return out, nil
}

func presented(ctx context.Context, conn net.Conn) (Presented, error) {
	if _, err := conn.Write(requestTLS); err != nil {
		return Presented{}, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return Presented{}, err
	}
	if answer[0] != 'S' {
		return Presented{}, errors.New("it takes no TLS")
	}
	var out Presented
	client := tls.Client(conn, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // it is to be seen, whatever it is; nothing is said to the server
		GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			out.Authorities = request.AcceptableCAs
			return &tls.Certificate{}, nil
		},
	})
	if err := client.HandshakeContext(ctx); err != nil {
		return Presented{}, err
	}
	out.Certificate = client.ConnectionState().PeerCertificates[0].Raw
	if client.CloseWrite() == nil { // in order: a connection that breaks off is in the server's log
		_, _ = io.Copy(io.Discard, client)
	}
	return out, nil
}
