package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/pki"
	"toban.dev/internal/pki/pkitest"
	"toban.dev/internal/protocol"
)

// serverName is what clients call the servers by: the host in NAME-app.
const serverName = "db.test.svc"

// uri is the one that the Secret NAME-app would have for the role reader.
func (c *cluster) uri() string {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: c.config.Cluster, Namespace: c.config.Namespace},
		Spec: v1.SampleDBSpec{Init: &v1.InitSpec{Database: "postgres", Owner: "reader"}}}
	secret := desired.AppSecret(db, desired.AppRevision(db, 0, "", "", 0), "r", nil)
	return string(secret.Data[naming.KeyURI])
}

// authorities is a file with authorities, as a Pod has it mounted.
func (c *cluster) authorities(authorities ...[]byte) string {
	c.Helper()
	path := filepath.Join(c.TempDir(), naming.KeyCA)
	var text []byte
	for _, a := range authorities {
		text = append(text, a...)
	}
	c.must(os.WriteFile(path, text, 0o600))
	return path
}

// ask has psql ask an instance by a URI. The names in it are in no DNS here.
func (c *cluster) ask(instance, uri string) (string, error) {
	c.Helper()
	ordinal, _ := naming.Ordinal(instance)
	command := exec.CommandContext(c.Context(), c.client("psql"),
		"-XAtc", "select current_user", uri)
	command.Env = append(os.Environ(), "PGHOSTADDR="+c.host(ordinal), "PGCONNECT_TIMEOUT=10")
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// session is one of pgx's by a URI, and the certificate that it was shown.
func (c *cluster) session(instance, uri string) (*pgx.Conn, *x509.Certificate, error) {
	c.Helper()
	config, err := pgx.ParseConfig(uri)
	if err != nil {
		return nil, nil, err
	}
	ordinal, _ := naming.Ordinal(instance)
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{c.host(ordinal)}, nil }
	conn, err := pgx.ConnectConfig(c.Context(), config)
	if err != nil {
		return nil, nil, err
	}
	secure, ok := conn.PgConn().Conn().(*tls.Conn)
	if !ok {
		c.Fatalf("the connection is a %T", conn.PgConn().Conn())
	}
	return conn, secure.ConnectionState().PeerCertificates[0], nil
}

// called is a URI with another host.
func called(uri, host string) string { return strings.Replace(uri, "@db.test.svc:", "@"+host+":", 1) }

// knowing is a URI with another file.
func knowing(uri, file string) string { return uri + "&sslrootcert=" + file }

// The connection strings are those of NAME-app, letter by letter but for where the file lies.
func TestTheConnectionStringsVerifyTheServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.form()
	c.exec("db-0", createReader)
	ours := c.authorities(c.authority.CertPEM())
	theirs := c.authorities(pkitest.NewRoot(t, "other").PEM)
	both := c.authorities(pkitest.NewRoot(t, "other").PEM, c.authority.CertPEM())
	for name, in := range map[string]struct{ uri, psql, pgx string }{
		"with the authority":     {knowing(c.uri(), ours), "", ""},
		"with two authorities":   {knowing(c.uri(), both), "", ""},
		"without the file":       {c.uri(), "does not exist", "unable to read CA file"},
		"with another authority": {knowing(c.uri(), theirs), "certificate verify failed", "unknown authority"},
		"by a name that it has not": {
			called(knowing(c.uri(), ours), "db.example.com"), "does not match host name", "not db.example.com",
		},
		"by a client that looks away": {c.uri() + "&sslmode=require&sslrootcert=", "", ""},
	} {
		out, err := c.ask("db-0", in.uri)
		if (err == nil) != (in.psql == "") || err == nil && out != "reader" || !strings.Contains(out, in.psql) {
			t.Errorf("%s, psql: %v, %s", name, err, out)
		}
		conn, _, err := c.session("db-0", in.uri)
		if (err == nil) != (in.pgx == "") || err != nil && !strings.Contains(err.Error(), in.pgx) {
			t.Errorf("%s, pgx: %v", name, err)
		}
		if conn != nil {
			c.must(conn.Close(t.Context()))
		}
	}
}

// works says that a session is the same as before.
func (c *cluster) works(conn *pgx.Conn, what string) {
	c.Helper()
	var one int
	if err := conn.QueryRow(c.Context(), "select 1").Scan(&one); err != nil {
		c.Errorf("%s: a session that was open has ended: %v", what, err)
	}
}

func TestANameOfOnesOwnComesUnderAnOpenSession(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.form()
	c.exec("db-0", createReader)
	uri, process := knowing(c.uri(), c.authorities(c.authority.CertPEM())), c.postmaster("db-0")
	open, _, err := c.session("db-0", uri)
	c.must(err)
	defer open.Close(t.Context())
	outside := called(uri, "db.example.com")
	if out, err := c.ask("db-0", outside); err == nil {
		t.Fatalf("it has the name already: %s", out)
	}
	c.config.ServerNames = append(c.config.ServerNames, "db.example.com")
	c.sync()
	c.until("the server has the name", func() error {
		out, err := c.ask("db-0", outside)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	if out, err := c.ask("db-0", uri); err != nil {
		t.Errorf("by its former name: %v, %s", err, out)
	}
	c.works(open, "with another name")
	if c.postmaster("db-0") != process {
		t.Error("the server was restarted")
	}
}

// until waits until something is so.
func (c *cluster) until(what string, try func() error) {
	c.Helper()
	limit := time.Now().Add(90 * time.Second)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(limit) {
			c.Fatalf("%s: %v", what, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// give writes the user's Secret as the kubelet does.
func (c *cluster) give(g pki.Given) {
	c.write("given/shop-tls/tls.crt", g.Certificate)
	c.write("given/shop-tls/tls.key", g.Key)
	c.write("given/shop-tls/ca.crt", g.Authority)
}

// awaitShown waits until clients of an instance are shown a certificate.
func (c *cluster) awaitShown(instance, uri string, want *x509.Certificate) {
	c.Helper()
	c.until(instance+" shows the certificate", func() error {
		conn, shown, err := c.session(instance, uri)
		if err != nil {
			return err
		}
		c.must(conn.Close(c.Context()))
		if !shown.Equal(want) {
			return fmt.Errorf("it shows %s of %s", shown.SerialNumber, shown.Issuer)
		}
		return nil
	})
}

func refuses(words string) func(protocol.Status) bool {
	return func(s protocol.Status) bool {
		c := s.Certificate
		return c != nil && c.Secret == "shop-tls" && strings.Contains(c.Refusal, words)
	}
}

// A certificate of the user's is shown to clients and standbys, renewed under open sessions, and one that does not fit
// is told and not taken.
func TestACertificateOfTheUsers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	root := pkitest.NewRoot(t, "company")
	names := []string{serverName, c.host(0), c.host(1), c.host(2)}
	first := root.Issue(t, names)
	c.config.Certificate = &protocol.Certificate{Secret: "shop-tls", Names: names[:1]}
	c.config.Given = string(root.PEM)
	c.give(first)
	c.form()
	leader := c.leader()
	c.exec(leader, createReader)
	uri := knowing(c.uri(), c.authorities(root.PEM))
	for _, name := range c.names() {
		c.awaitShown(name, uri, pkitest.Leaf(t, first))
	}
	if out, err := c.ask(leader, uri); err != nil {
		t.Errorf("psql: %v, %s", err, out)
	}
	open, _, err := c.session(leader, uri)
	c.must(err)
	defer open.Close(t.Context())
	process := c.postmaster(leader)

	second := root.Issue(t, names)
	c.give(second)
	for _, name := range c.names() {
		c.awaitShown(name, uri, pkitest.Leaf(t, second))
	}
	for words, bad := range map[string]pki.Given{
		"not valid for " + c.host(2): root.Issue(t, names[:3]),
		"does not lead to an authority": {
			Certificate: second.Certificate, Key: second.Key, Authority: pkitest.NewRoot(t, "other").PEM,
		},
		"tls.key is not the key": {Certificate: second.Certificate, Key: first.Key, Authority: second.Authority},
	} {
		c.give(bad)
		c.await(leader, "refuses it: "+words, refuses(words))
		c.awaitShown(leader, uri, pkitest.Leaf(t, second))
	}
	c.works(open, "with another certificate")
	if c.postmaster(leader) != process {
		t.Error("the server was restarted")
	}
	c.give(second)

	// Standbys know a primary that shows it: the one that was primary follows another.
	c.kill(leader, syscall.SIGKILL)
	next := c.leader(leader)
	c.awaitShown(next, uri, pkitest.Leaf(t, second))
	c.startOne(leader)
	c.await(leader, "streams again", streaming)
	info, err := c.query(leader, "select conninfo from pg_stat_wal_receiver")
	c.must(err)
	if !strings.Contains(info, "sslmode=verify-full") {
		t.Errorf("a standby connects with %s", info)
	}
}
