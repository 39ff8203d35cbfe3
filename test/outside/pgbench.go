package outside

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Pgbench runs PostgreSQL's own benchmark against a database, and returns what it printed.
func Pgbench(ctx context.Context, access Access, args ...string) (string, error) {
	command := exec.CommandContext(ctx, pgbenchPath(), args...)
	command.Env = append(os.Environ(), access.Environment()...)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("pgbench: %w: %s", err, out)
	}
	return string(out), nil
}

// pgbenchPath is where Debian has it: not on the PATH.
func pgbenchPath() string {
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); err == nil && len(found) > 0 {
		return found[len(found)-1]
	}
	return "pgbench"
}

// Bench is what pgbench says of its runs.
type Bench struct {
	Transactions int64
	// TPS is how many there were a second, while it ran.
	TPS float64
}

var (
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	perSecond = regexp.MustCompile(`tps = ([0-9.]+)`)
)

func readPgbench(text string) Bench {
	var b Bench
	if m := processed.FindStringSubmatch(text); m != nil {
		b.Transactions, _ = strconv.ParseInt(m[1], 10, 64) // digits
	}
	if m := perSecond.FindStringSubmatch(text); m != nil {
		b.TPS, _ = strconv.ParseFloat(m[1], 64) // a number
	}
	return b
}

const (
	// pgbenchPause is how long to wait before pgbench is started again: it ends when its connections break.
	pgbenchPause = 100 * time.Millisecond
	// pgbenchHangs is how much longer than it was told pgbench may take: its server may be gone without a word.
	pgbenchHangs = 30 * time.Second
)

// PgbenchAgain keeps pgbench's TPC-B running until the context ends, starting it again whenever its connections break,
// and adds up what it says. Each run ends by itself, so that it always tells how much it did.
func PgbenchAgain(ctx context.Context, access Access, each time.Duration, args ...string) Bench {
	var sum Bench
	var busy float64
	args = append(args, "--no-vacuum", fmt.Sprintf("--time=%d", int(each.Seconds())))
	for ctx.Err() == nil {
		b := pgbenchOnce(ctx, access, each, args)
		sum.Transactions += b.Transactions
		if b.TPS > 0 {
			busy += float64(b.Transactions) / b.TPS
		}
		select {
		case <-ctx.Done():
		case <-time.After(pgbenchPause):
		}
	}
	if busy > 0 {
		sum.TPS = float64(sum.Transactions) / busy
	}
	return sum
}

func pgbenchOnce(ctx context.Context, access Access, each time.Duration, args []string) Bench {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), each+pgbenchHangs)
	defer cancel()
	text, _ := Pgbench(ctx, access, args...) // what has broken is no error here
	return readPgbench(text)
}
