package local

import (
	"context"
	"crypto/tls"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// uses says that an instance shows certificates of one authority and trusts exactly some.
func uses(issuer *pki.Authority, trusted ...*pki.Authority) func(protocol.Status) bool {
	var ids []string
	for _, a := range trusted {
		ids = append(ids, a.ID())
	}
	return func(s protocol.Status) bool {
		return s.Identity != nil && s.Identity.Issuer == issuer.ID() && slices.Equal(s.Identity.Trusted, ids)
	}
}

// trusting has the operator and the agents trust some authorities.
func (c *cluster) trusting(operator func() (tls.Certificate, error), trusted ...*pki.Authority) {
	c.Helper()
	c.config.Authority = ""
	for _, a := range trusted {
		c.config.Authority += string(a.CertPEM())
	}
	roots, err := pki.Pool(c.config.Authority)
	c.must(err)
	c.operator = protocol.NewClient(pki.ClientTLS(operator, roots, naming.IdentityInstance), naming.PortAgent)
	c.sync()
}

// operatorCertificate is one of the operator's.
func (c *cluster) operatorCertificate(seed byte) func() (tls.Certificate, error) {
	c.Helper()
	authority, err := pki.NewAuthority(slices.Repeat([]byte{seed}, 32), "operator", time.Now())
	c.must(err)
	leaf, err := authority.Issue(naming.IdentityOperator, nil, time.Now())
	c.must(err)
	return leaf.TLS
}

// pid is the process of a session. It fails where the session has ended.
func (c *cluster) pid(session *pgx.Conn) (pid int) {
	c.Helper()
	c.must(session.QueryRow(c.Context(), "select pg_backend_pid()").Scan(&pid))
	return pid
}

// The authority of servers that run is replaced: nothing restarts, no session and no stream ends, and at the end the
// former authority opens nothing.
func TestTheAuthorityIsReplacedUnderServersThatRun(t *testing.T) {
	t.Parallel()
	c := formed(t, 2)
	c.await("db-1", "streaming", streaming)
	former, operator := c.authority, c.operatorCertificate(9)
	successor, err := pki.NewAuthority(slices.Repeat([]byte{8}, 32), "test 1", time.Now())
	c.must(err)
	session, err := c.connect("db-0")
	c.must(err)
	defer session.Close(context.Background())
	const receiver = "select pid from pg_stat_wal_receiver"
	stream, err := c.query("db-1", receiver)
	c.must(err)
	backend, servers := c.pid(session), []int{c.postmaster("db-0"), c.postmaster("db-1")}
	names := []string{"db-0", "db-1"}
	for _, name := range names {
		c.await(name, "using the first authority", uses(former, former))
	}

	c.trusting(operator, former, successor)
	for _, name := range names {
		c.await(name, "trusting both", uses(former, former, successor))
	}
	c.opens("db-1", former, true)
	c.opens("db-1", successor, true)

	c.authority = successor
	c.writeAuthority()
	for _, name := range names {
		c.await(name, "using the new one", uses(successor, former, successor))
	}
	c.opens("db-0", former, true)

	c.trusting(operator, successor)
	for _, name := range names {
		c.await(name, "trusting the new one alone", uses(successor, successor))
		c.opens(name, former, false)
		c.opens(name, successor, true)
	}
	if now := c.pid(session); now != backend {
		t.Errorf("the session had the process %d and has %d", backend, now)
	}
	if now := []int{c.postmaster("db-0"), c.postmaster("db-1")}; !slices.Equal(now, servers) {
		t.Errorf("the servers were %v and are %v", servers, now)
	}
	if now, err := c.query("db-1", receiver); err != nil || now != stream {
		t.Errorf("the stream had the process %s and has %s: %v", stream, now, err)
	}
	// A stream that is opened now is between certificates of the new one.
	c.exec("db-0", "select pg_terminate_backend(pid) from pg_stat_replication")
	c.awaitQuery("db-0", "select issuer_dn from pg_stat_ssl join pg_stat_replication using (pid)", "/CN=test 1")
	c.await("db-1", "streaming again", streaming)
}

// opens says whether certificates of an authority open an instance's server and its agent.
func (c *cluster) opens(name string, authority *pki.Authority, want bool) {
	c.Helper()
	ordinal, _ := naming.Ordinal(name)
	trusted, err := pki.Pool(c.config.Authority)
	c.must(err)
	as := func(identity string) *tls.Config {
		leaf, err := authority.Issue(identity, nil, time.Now())
		c.must(err)
		return pki.ClientTLS(leaf.TLS, trusted, naming.IdentityInstance)
	}
	config, err := pgx.ParseConfig("host=" + c.host(ordinal) + " user=postgres dbname=postgres")
	c.must(err)
	config.Port, config.TLSConfig, config.Fallbacks = naming.PortPostgreSQL, as(naming.IdentityInit), nil
	conn, err := pgx.ConnectConfig(c.Context(), config)
	if err == nil {
		_ = conn.Close(c.Context())
	}
	if (err == nil) != want {
		c.Errorf("the server of %s lets in who has the key: %v, want %v (%v)", name, err == nil, want, err)
	}
	agent := protocol.NewClient(as(naming.IdentityInstance), naming.PortAgent)
	defer agent.Close()
	if _, err := agent.Status(c.Context(), c.host(ordinal)); (err == nil) != want {
		c.Errorf("the agent of %s answers who has the key: %v, want %v (%v)", name, err == nil, want, err)
	}
}
