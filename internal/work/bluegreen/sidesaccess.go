package bluegreen

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/work/initjob"
	"toban.dev/internal/work/pod"
)

// sideAccess is how a Pod reaches one side, and how the other side does.
type sideAccess struct {
	name, folder string
	hosts        []string
	// given are the authorities by which its servers are known besides its own, shows a folder with another one.
	given, shows string
	port         uint16
	// newest is the newer one of the major versions of both sides.
	newest int
	// servers is the file with the authorities in the servers of the other side.
	servers string

	mu  sync.Mutex
	tls *tls.Config
	// last is the host that took writes when it was asked last.
	last string
	// password is that of the role of links, "" before it is made.
	password string
}

func (a *sideAccess) side() Side {
	return Side{Name: a.name, Newest: a.newest, Connect: a.connect, Reach: a.reach, Standby: a.standby}
}

var errNoHosts = errors.New("it has no hosts")

// connect opens a superuser's session with the host that takes writes. The one that has taken them before is asked
// first: one that does not answer takes seconds.
func (a *sideAccess) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	config, hosts, err := a.way()
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", a.name, err)
	}
	var failed []error
	for _, host := range hosts {
		conn, err := initjob.Superuser(ctx, []string{host}, a.port, config, database)
		if err == nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.last = host
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("connect to %s: %w", a.name, errors.Join(failed...))
}

// standby opens a superuser's session with an instance, by its name.
func (a *sideAccess) standby(ctx context.Context, name string) (*pgx.Conn, error) {
	config, hosts, err := a.way()
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	for _, host := range hosts {
		if strings.HasPrefix(host, name+".") {
			return initjob.SuperuserAt(ctx, host, a.port, config, "postgres")
		}
	}
	return nil, fmt.Errorf("connect to %s: %w", name, ErrNoStandby)
}

// way says by which certificates which hosts are asked.
func (a *sideAccess) way() (*tls.Config, []string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.hosts) == 0 {
		return nil, nil, errNoHosts
	}
	if a.tls == nil {
		config, err := a.config()
		if err != nil {
			return nil, nil, err
		}
		a.tls = config
	}
	hosts := slices.Clone(a.hosts)
	if i := slices.Index(hosts, a.last); i > 0 {
		hosts[0], hosts[i] = hosts[i], hosts[0]
	}
	return a.tls, hosts, nil
}

// config shows certificates of the side's own authority.
func (a *sideAccess) config() (*tls.Config, error) {
	if a.shows == "" {
		return pod.InitTLS(a.folder, a.given)
	}
	shown, err := pod.NewIssuer(a.shows, naming.IdentityInit)
	if err != nil {
		return nil, err
	}
	trusted, err := shown.Trusted()
	if err != nil {
		return nil, err
	}
	return pod.InitTLS(a.folder, pki.Union(string(trusted), a.given))
}

// reach is how a server of the other side connects, for libpq. It sends its password to nobody but a server with a
// certificate of that host, and not in the clear.
func (a *sideAccess) reach(database string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	pairs := []string{
		"host=" + strings.Join(a.hosts, ","), fmt.Sprintf("port=%d", a.port), "user=" + Role,
		"dbname=" + libpqValue(database), "sslmode=verify-full", "sslrootcert=" + libpqValue(a.servers),
		"sslcertmode=disable", "require_auth=scram-sha-256", "target_session_attrs=read-write", "connect_timeout=3",
		"keepalives_idle=5", "keepalives_interval=2", "keepalives_count=3", "tcp_user_timeout=10000",
	}
	if a.password != "" {
		pairs = append(pairs, "password="+a.password)
	}
	return strings.Join(pairs, " ")
}

// libpqValue is a value in a connection string.
func libpqValue(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// logIn has the other side able to log in: with a role, and with a password that nobody but both servers keeps.
func (a *sideAccess) logIn(ctx context.Context) error {
	if err := EnsureRole(ctx, a.side()); err != nil {
		return err
	}
	password := rand.Text()
	verifier, err := scram.Literal(password)
	if err != nil {
		return err
	}
	if err := SetPassword(ctx, a.side(), verifier); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.password = password
	return nil
}
