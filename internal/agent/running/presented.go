package running

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// presentedDeadline is how long a server may take to present its certificate.
const presentedDeadline = 500 * time.Millisecond

// presented sees what the server shows and trusts, and puts it into the status: a rotation of the authority goes on by
// that. The agent shows and trusts the same from the moment that the files are there. Only the monitor uses it.
type presented struct {
	// want says what is to be shown and trusted, presents what the server shows.
	want     func() (certificate []byte, trusted string, identity protocol.Identity)
	presents func(ctx context.Context) (postgres.Presented, error)
	// reload has the server read its files once more.
	reload func()
	status *status.Board
	log    *slog.Logger

	// reloaded is when that was asked for last.
	reloaded time.Time
	// certificate and trusted are those that were seen last.
	certificate []byte
	trusted     string
}

// observe looks until the server shows what it is to.
func (s *presented) observe(ctx context.Context) {
	certificate, trusted, identity := s.want()
	if bytes.Equal(certificate, s.certificate) && trusted == s.trusted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presentedDeadline)
	defer cancel()
	now, err := s.presents(ctx)
	if err != nil {
		s.log.Debug("it is not known which certificate the server shows", "error", err.Error())
		return
	}
	if !bytes.Equal(now.Certificate, certificate) || !names(now.Authorities, trusted) {
		if time.Since(s.reloaded) > choreInterval { // it has not read them yet
			s.reloaded = time.Now()
			s.reload()
		}
		return
	}
	s.certificate, s.trusted = certificate, trusted
	s.status.Change(func(s *protocol.Status) { s.Identity = &identity })
}

// names says that the authorities (PEM) have these names, and no others.
func names(shown [][]byte, trusted string) bool {
	var want [][]byte
	for _, c := range pki.Certificates([]byte(trusted)) {
		want = append(want, c.RawSubject)
	}
	in := func(all [][]byte) func([]byte) bool {
		return func(one []byte) bool {
			return slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(one, other) })
		}
	}
	missing := func(all [][]byte) func([]byte) bool {
		has := in(all)
		return func(one []byte) bool { return !has(one) }
	}
	return !slices.ContainsFunc(want, missing(shown)) && !slices.ContainsFunc(shown, missing(want))
}
