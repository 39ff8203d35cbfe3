package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"toban.dev/test/outside"
)

// bench is what pgbench says of its runs.
type bench struct {
	transactions int64
	tps          float64
}

var (
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	perSecond = regexp.MustCompile(`tps = ([0-9.]+)`)
)

func readPgbench(text string) bench {
	var b bench
	if m := processed.FindStringSubmatch(text); m != nil {
		b.transactions, _ = strconv.ParseInt(m[1], 10, 64) // digits
	}
	if m := perSecond.FindStringSubmatch(text); m != nil {
		b.tps, _ = strconv.ParseFloat(m[1], 64) // a number
	}
	return b
}

// pause is how long to wait before pgbench is started again: it ends when its
// connections break.
const pause = 100 * time.Millisecond

// load keeps pgbench's TPC-B running until the context ends, starting it again
// whenever its connections break, and adds up what it says.
func load(ctx context.Context, access outside.Access, each time.Duration) bench {
	var sum bench
	var busy float64
	for ctx.Err() == nil {
		// pgbench ends by itself, so that it always tells how much it did.
		text, _ := outside.Pgbench(context.WithoutCancel(ctx), access,
			"--client=4", "--jobs=2", "--no-vacuum", fmt.Sprintf("--time=%d", int(each.Seconds())))
		b := readPgbench(text)
		sum.transactions += b.transactions
		if b.tps > 0 {
			busy += float64(b.transactions) / b.tps
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	if busy > 0 {
		sum.tps = float64(sum.transactions) / busy
	}
	return sum
}
