package mixed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

// writer writes numbered rows to whoever takes them, and remembers those that were acknowledged.
type writer struct {
	*cluster
	mutex sync.Mutex
	acked []int
	gap   outside.Gap
}

// lanes is how many write at a time.
const lanes = 3

func (c *cluster) writeOn() *writer {
	c.Helper()
	c.await("a primary that makes the table", func(found map[string]protocol.Status) bool {
		return slices.ContainsFunc(c.names(), func(name string) bool {
			return leading(found[name]) && c.makeTable(name) == nil
		})
	})
	ctx, stop := context.WithCancel(context.Background())
	w := &writer{cluster: c}
	var wait sync.WaitGroup
	for lane := range lanes {
		wait.Go(func() { w.run(ctx, lane) })
	}
	c.Cleanup(func() { stop(); wait.Wait() })
	return w
}

// makeTable fails where the one that leads makes way meanwhile: it is made on the next one then.
func (c *cluster) makeTable(name string) error {
	conn, err := c.connect(name)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(c.Context(), "create table if not exists acked (id int primary key)")
	return err
}

func (w *writer) run(ctx context.Context, lane int) {
	for id := lane; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		for _, name := range w.names() {
			conn, err := w.connect(name)
			if err != nil {
				continue
			}
			for w.insert(ctx, conn, id) {
				id += lanes
			}
			id += lanes
			_ = conn.Close(context.Background())
		}
	}
}

// insert writes one row. A write that is not answered in time counts for nothing: its connection is given up.
func (w *writer) insert(ctx context.Context, conn *pgx.Conn, id int) bool {
	once, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := conn.Exec(once, "insert into acked values ($1)", id); err != nil {
		return false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.acked = append(w.acked, id)
	w.gap.Note(time.Now())
	return true
}

// inTime holds that writes have never been away for longer than a lost leader takes, since it was last asked.
func (w *writer) inTime() {
	w.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := outside.Lost.Judge(w.gap.Longest()); err != nil {
		w.Error(err)
	}
	w.gap.Forget()
}

// acknowledged are the rows that were, up to now.
func (w *writer) acknowledged() []int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.acked[:len(w.acked):len(w.acked)]
}

// goesOn waits until some more writes are acknowledged, in time, and then looks for each that was before at who leads.
func (w *writer) goesOn() {
	w.Helper()
	before := w.acknowledged()
	for end := time.Now().Add(deadline); len(w.acknowledged()) < len(before)+20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			_, words := w.state()
			w.Fatalf("writes do not go on:\n%s", words)
		}
	}
	w.inTime()
	w.check(w.leader(""), before)
}

// check looks for rows on an instance.
func (w *writer) check(name string, wanted []int) {
	w.Helper()
	conn, err := w.connect(name)
	w.must(err)
	defer conn.Close(context.Background())
	rows, _ := conn.Query(w.Context(), "select id from acked")
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	w.must(err)
	there := make(map[int]bool, len(ids))
	for _, id := range ids {
		there[id] = true
	}
	var lost []int
	for _, id := range wanted {
		if !there[id] {
			lost = append(lost, id)
		}
	}
	if len(lost) > 0 {
		w.Fatalf("%s lacks %d of %d acknowledged rows, the first is %d", name, len(lost), len(wanted), lost[0])
	}
}

// checkAll looks for all acknowledged rows on every instance.
func (w *writer) checkAll() {
	w.Helper()
	w.inTime()
	wanted, leader := w.acknowledged(), w.whole()
	conn, err := w.connect(leader)
	w.must(err)
	var lsn string
	w.must(conn.QueryRow(w.Context(), "select pg_current_wal_lsn()::text").Scan(&lsn))
	_ = conn.Close(context.Background())
	for _, name := range w.names() {
		if name != leader {
			w.awaitReplayed(name, lsn)
		}
		w.check(name, wanted)
	}
}

// awaitReplayed waits until a standby has replayed a position.
func (w *writer) awaitReplayed(name, lsn string) {
	w.Helper()
	conn, err := w.connect(name)
	w.must(err)
	defer conn.Close(context.Background())
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var reached bool
		w.must(conn.QueryRow(w.Context(), "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", lsn).Scan(&reached))
		if reached {
			return
		}
	}
	w.Fatalf("%s has not replayed %s in time", name, lsn)
}
