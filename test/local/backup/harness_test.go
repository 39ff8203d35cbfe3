package backup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
	"toban.dev/test/local/aspostgres"
)

// pieceSize is that of the backups here: small, so that there are several of an almost empty server.
const pieceSize = 8 << 20

// deadline is for what must come true: generous, for busy machines.
const deadline = 120 * time.Second

// memory is a bucket.
type memory struct {
	mutex   sync.Mutex
	objects map[string][]byte
	// keepsAll has nothing replaced or removed.
	keepsAll bool
}

func (m *memory) Put(_ context.Context, name string, content []byte) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, ok := m.objects[name]; ok && m.keepsAll {
		return fmt.Errorf("replace %s: %w", name, bucket.ErrDenied)
	}
	m.objects[name] = bytes.Clone(content)
	return nil
}

func (m *memory) Create(_ context.Context, name string, content []byte) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, ok := m.objects[name]; ok {
		return bucket.ErrExists
	}
	m.objects[name] = bytes.Clone(content)
	return nil
}

func (m *memory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	content, ok := m.objects[name]
	if !ok {
		return nil, bucket.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (m *memory) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return m.ListAfter(ctx, prefix, "")
}

func (m *memory) ListAfter(_ context.Context, prefix, after string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		for _, name := range m.names(prefix) {
			if name > after && !yield(bucket.Object{Name: name, Size: int64(len(m.objects[name]))}, nil) {
				return
			}
		}
	}
}

func (m *memory) Delete(_ context.Context, names ...string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.keepsAll {
		return fmt.Errorf("delete %v: %w", names, bucket.ErrDenied)
	}
	for _, name := range names {
		delete(m.objects, name)
	}
	return nil
}

func (m *memory) names(prefix string) (all []string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for name := range m.objects {
		if strings.HasPrefix(name, prefix) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// copied is a bucket with the same objects.
func (m *memory) copied() *memory { return &memory{objects: maps.Clone(m.objects)} }

// node is one server, which listens on a Unix socket only.
type node struct {
	*testing.T
	*postgres.Server
	process *postgres.Process
	log     *bytes.Buffer
}

func newNode(t *testing.T) *node { t.Helper(); return newNodeOf(t, programs(t)) }

// newNodeOf is one of certain programs.
func newNodeOf(t *testing.T, programs postgres.Programs) *node {
	t.Helper()
	folder, err := os.MkdirTemp("", "toban-bk-") //nolint:usetesting // short: a socket's path has at most 107 bytes
	must(t, err)
	n := &node{T: t, log: &bytes.Buffer{}, Server: &postgres.Server{
		Programs: programs, Data: postgres.DataDirectory{Volume: filepath.Join(folder, "volume")},
		Run: filepath.Join(folder, "run"), Port: 5432,
	}}
	must(t, os.MkdirAll(n.Server.Run, 0o700))
	must(t, os.MkdirAll(n.Data.Volume, 0o700))
	t.Cleanup(func() { n.stop(); _ = os.RemoveAll(folder) })
	return n
}

// programs are those of the newest PostgreSQL version that is installed.
func programs(t *testing.T) postgres.Programs {
	t.Helper()
	for major := 18; major >= 15; major-- {
		if p, err := postgres.FindPrograms(t.Context(), major); err == nil {
			return p
		}
	}
	t.Fatal("no PostgreSQL server is installed: apt-get install postgresql")
	return postgres.Programs{}
}

// release is PostgreSQL of a newer version.
func release(t *testing.T, major int) postgres.Programs {
	t.Helper()
	found := aspostgres.Release(major)
	if !filepath.IsAbs(found) {
		t.Skipf("PostgreSQL %d is %s", major, found)
	}
	return postgres.Programs{Dir: found, Major: major, Version: strconv.Itoa(major)}
}

// configure writes the files of a server that everybody on this socket may use.
func (n *node) configure(more map[string]string) {
	n.Helper()
	text := fmt.Sprintf("listen_addresses = ''\nunix_socket_directories = '%s'\nmax_connections = "+
		"30\nshared_buffers = '16MB'\n"+
		"wal_keep_size = '1GB'\nfsync = off\nlog_min_messages = 'debug1'\n", n.Server.Run)
	for name, value := range more {
		text += fmt.Sprintf("%s = '%s'\n", name, value)
	}
	for name, content := range map[string]string{
		"postgresql.conf": text, "pg_hba.conf": "local all all trust\nlocal replication all trust\n",
	} {
		must(n, os.WriteFile(filepath.Join(n.Data.Path(), name), []byte(content), 0o600))
	}
}

func (n *node) begin() {
	n.Helper()
	var err error
	n.process, err = n.Start(n.Context(), n.log)
	must(n, err)
}

func (n *node) ready() {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), deadline)
	defer cancel()
	must(n, n.process.Ready(ctx))
}

func (n *node) stop() {
	if n.process == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	n.process.Stop(ctx, postgres.StopImmediate)
	n.process = nil
	if n.Failed() {
		n.Logf("log of the server in %s:\n%s", n.Data.Path(), n.log)
	}
}

func (n *node) dial() *pgx.Conn {
	n.Helper()
	conn, err := pgx.Connect(n.Context(),
		fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres sslmode=disable", n.Server.Run, n.Port))
	must(n, err)
	return conn
}

func (n *node) do(statements string) {
	n.Helper()
	conn := n.dial()
	defer conn.Close(context.Background())
	_, err := conn.Exec(n.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	must(n, err)
}

func (n *node) ask(query string) string {
	n.Helper()
	conn := n.dial()
	defer conn.Close(context.Background())
	var value *string
	must(n, conn.QueryRow(n.Context(), "select ("+query+")::text").Scan(&value))
	if value == nil {
		return ""
	}
	return *value
}

// contents is what must be the same after a restore, whatever the rows of t.
func (n *node) contents() string {
	n.Helper()
	return n.ask(`select concat_ws(' | ',
		(select string_agg(rolname || rolpassword, ',' order by rolname) from pg_authid where rolpassword is not null),
		(select md5(string_agg(b, ',' order by i)) from big),
		(select string_agg(i::text, ',' order by i) from elsewhere),
		(select pg_relation_filepath('elsewhere') like 'pg_tblspc/%'),
		(select convert_from(lo_get(4711), 'UTF8')), (select count(*) from unlogged))`)
}

// clock is the time by the server's clock, between two commits.
func (n *node) clock() time.Time {
	n.Helper()
	at, err := time.Parse(time.RFC3339Nano, n.ask(take.ServerClock))
	must(n, err)
	time.Sleep(2 * time.Millisecond)
	return at
}

func (n *node) rows() string { return n.ask("select string_agg(i::text, ',' order by i) from t") }

// primary is a server with something of everything, of more than two pieces.
func primary(t *testing.T) *node { t.Helper(); return primaryOf(t, programs(t), nil) }

func primaryOf(t *testing.T, programs postgres.Programs, more map[string]string) *node {
	t.Helper()
	n := newNodeOf(t, programs)
	must(t, n.Initialise(t.Context(), n.log))
	n.configure(more)
	n.begin()
	n.ready()
	space := filepath.Join(filepath.Dir(n.Data.Volume), "space")
	must(t, os.Mkdir(space, 0o700))
	n.do("create tablespace fast location '" + space + "'")
	n.do(`create role alice login password 'wonder'; create role bob login password 'builder';
		create table t (i int primary key); insert into t values (1);
		create table big as select i, md5(i::text) || md5((i + 1)::text) || md5((-i)::text) b
			from generate_series(1, 50000) i;
		create table elsewhere tablespace fast as select generate_series(1, 100) i;
		select lo_from_bytea(4711, 'a large object');
		create unlogged table unlogged (i int)`)
	return n
}

// archive is where a server's backups and WAL go, of one term after the other.
type archive struct {
	*testing.T
	*memory
	source       *node
	socket       string // the folder that the configuration in the backups names
	term         uint64
	timeline     wal.Timeline
	encoder      *format.Encoder
	decoder      *format.Decoder
	onlyParts    bool
	copiedUntil  wal.LSN
	waitedForWAL int
	lastProgress transfer.Progress
}

func newArchive(t *testing.T, source *node, key string) *archive {
	t.Helper()
	a := &archive{T: t, memory: &memory{objects: map[string][]byte{}}, source: source, socket: source.Server.Run,
		term: 1, timeline: 1}
	recipient := ""
	if key != "" {
		identities, err := age.ParseIdentities(strings.NewReader(key))
		must(t, err)
		pair, ok := identities[0].(*age.X25519Identity)
		if !ok {
			t.Fatalf("the key is a %T", identities[0])
		}
		recipient = pair.Recipient().String()
	}
	var err error
	a.encoder, err = format.NewEncoder(recipient)
	must(t, err)
	a.decoder, err = format.NewDecoder(key)
	must(t, err)
	history := `{"term": 1, "starts": [{"term": 1, "lsn": "0/0", "timeline": 1}]}`
	must(t, a.Put(t.Context(), format.TermFolder(1)+format.FileLineage, []byte(history)))
	return a
}

// rotate encrypts from now on for the second of two keys.
func (a *archive) rotate(keys string) {
	a.Helper()
	recipients, err := format.Recipients(keys)
	must(a, err)
	a.encoder, err = format.NewEncoder(recipients[1])
	must(a, err)
}

func (a *archive) replication() *pgconn.Config {
	a.Helper()
	config, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%d user=postgres sslmode=disable",
		a.source.Server.Run, a.source.Port))
	must(a, err)
	return config
}

func (a *archive) options() take.TakeOptions {
	return take.TakeOptions{Server: a.replication(), Bucket: a, Encoder: a.encoder, Term: a.term, Workers: 3,
		PieceSize: pieceSize,
		Progress:  func(p transfer.Progress) { a.lastProgress = p },
		Archived: func(context.Context, wal.Timeline, wal.LSN) (uint64, error) {
			a.waitedForWAL++
			a.archiveWAL()
			return a.term, nil
		}}
}

func (a *archive) take() format.Backup { a.Helper(); return a.takeSince(nil) }

// takeSince takes what has changed since another backup.
func (a *archive) takeSince(parent *format.Backup) format.Backup {
	a.Helper()
	o := a.options()
	o.Parent, o.Decoder = parent, a.decoder
	b, err := take.Take(a.Context(), o)
	must(a, err)
	return b
}

// chain is a backup with those it is the change from.
func (a *archive) chain(b format.Backup) []format.Backup {
	a.Helper()
	c, err := book.Read(a.Context(), a)
	must(a, err)
	chain, err := c.Chain(b.ID)
	must(a, err)
	return chain
}

// archiveWAL archives what has been flushed: whole segments, and what there is of the last.
func (a *archive) archiveWAL() {
	a.Helper()
	flushed, err := wal.ParseLSN(a.source.ask("select pg_current_wal_flush_lsn()"))
	must(a, err)
	s := wal.SegmentAt(a.timeline, a.copiedUntil, wal.SegmentSize)
	if a.copiedUntil == 0 {
		s.Number = 1
	}
	for ; s.Start() < flushed; s.Number++ {
		content, err := os.ReadFile(filepath.Join(a.source.Data.Path(), "pg_wal", s.String()))
		must(a, err)
		end := min(flushed-s.Start(), wal.SegmentSize)
		a.putSegment(s, content[:end])
		a.copiedUntil = s.Start() + end
	}
}

func (a *archive) putSegment(s wal.Segment, content []byte) {
	a.Helper()
	if len(content) == wal.SegmentSize && !a.onlyParts {
		a.putPiece(format.Piece{Segment: s, From: 0, To: wal.SegmentSize}, content)
		return
	}
	const step = 5_000_000 // of no page
	for from := 0; from < len(content); from += step {
		to := min(from+step, len(content))
		a.putPiece(format.Piece{Segment: s, From: uint32(from), To: uint32(to)}, content[from:to])
	}
}

func (a *archive) putPiece(p format.Piece, content []byte) {
	a.Helper()
	sealed, err := a.encoder.Encode(content)
	must(a, err)
	must(a, a.Put(a.Context(), format.TermFolder(a.term)+a.encoder.Name(p.String()), sealed))
}

// announce writes the backup.json of a backup anew.
func (a *archive) announce(b format.Backup) {
	a.Helper()
	text, err := json.Marshal(b)
	must(a, err)
	must(a, a.Put(a.Context(), format.FolderBase+b.ID+"/"+format.FileBackup, text))
}

// restored is a server that begins with a backup; it is not started yet.
type restored struct {
	*node
	recovery *restore.Recovery
	target   book.Target
}

func (a *archive) unpack(b format.Backup, n *node) error {
	spaces := map[uint32]string{}
	for _, s := range b.Tablespaces {
		spaces[s.OID] = filepath.Join(n.Data.Volume, fmt.Sprint(s.OID))
	}
	chain := []format.Backup{b}
	if b.Parent != "" {
		chain = a.chain(b)
	}
	return restore.Unpack(a.Context(), restore.UnpackOptions{Bucket: a, Decoder: a.decoder, Chain: chain,
		Data: n.Data.Path(), Tablespaces: spaces, Scratch: filepath.Join(n.Data.Volume, "scratch"),
		Programs: n.Programs.Dir, Workers: 3})
}

func (a *archive) restore(b format.Backup, target book.Target) *restored {
	a.Helper()
	r := &restored{node: newNodeOf(a.T, a.source.Programs), target: target}
	must(a, a.unpack(b, r.node))
	must(a, restore.VerifyFiles(a.Context(), r.Data.Path(), 3))
	r.recovery = restore.NewRecovery(a.recoverOptions(b, r.node, target, a.plan(b)))
	return r
}

func (a *archive) recoverOptions(
	b format.Backup, n *node, target book.Target, plan book.WALPlan,
) restore.RecoverOptions {
	return restore.RecoverOptions{Bucket: a, Decoder: a.decoder, Plan: plan, Backup: b,
		WAL: filepath.Join(n.Data.Path(), "pg_wal"), Target: target, Ahead: 2, Workers: 3}
}

// recover runs the recovery.
func (r *restored) recover() (restore.Recovered, error) {
	r.Helper()
	if err := r.recovery.Prepare(r.Context()); err != nil {
		return restore.Recovered{}, err
	}
	settings, err := restore.Settings(r.target, 1)
	must(r, err)
	r.configure(settings)
	must(r, os.WriteFile(filepath.Join(r.Data.Path(), "standby.signal"), nil, 0o600))
	r.begin()
	ctx, cancel := context.WithTimeout(r.Context(), deadline)
	defer cancel()
	ctx, end := restore.WhileRunning(ctx, r.process)
	defer end()
	replayer := &restore.LocalReplayer{Server: r.Server}
	defer replayer.Close()
	return r.recovery.Run(ctx, replayer)
}

// finish recovers, and promotes where the target is the end.
func (r *restored) finish() restore.Recovered {
	r.Helper()
	reached, err := r.recover()
	must(r, err)
	if !reached.Ended {
		s, err := r.Connect(r.Context())
		must(r, err)
		defer s.Close()
		must(r, s.Promote(r.Context(), nil))
	}
	return reached
}

func (n *node) eventuallyOutOfRecovery() {
	n.Helper()
	for end := time.Now().Add(deadline); n.ask("pg_is_in_recovery()") != "false"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			n.Fatal("it is still in recovery")
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
