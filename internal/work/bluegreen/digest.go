package bluegreen

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// buckets is how many sums a digest has.
const buckets = 4096

// hash is that of a row.
type hash [sha256.Size]byte

func (h hash) bucket() int { return int(binary.BigEndian.Uint16(h[:]) % buckets) }

// digest sums up the rows of a table, in whatever order they come: by the hash of each, in the bucket that this names.
type digest struct {
	rows int64
	sums [buckets][2]uint64
	rest []byte
}

// Write takes what COPY sends: lines, one for each row, in which a line's end is written otherwise.
func (d *digest) Write(p []byte) (int, error) {
	lines(&d.rest, p, func(line []byte) {
		h := hash(sha256.Sum256(line))
		sum := &d.sums[h.bucket()]
		sum[0] += binary.BigEndian.Uint64(h[8:])
		sum[1] += binary.BigEndian.Uint64(h[16:])
		d.rows++
	})
	return len(p), nil
}

// lines calls a function for each whole line, and keeps the rest.
func lines(rest *[]byte, p []byte, do func(line []byte)) {
	for {
		line, more, ended := bytes.Cut(p, []byte("\n"))
		if !ended {
			*rest = append(*rest, line...)
			return
		}
		if len(*rest) > 0 {
			line = append(*rest, line...)
			*rest = (*rest)[:0]
		}
		do(line)
		p = more
	}
}

// differ are the buckets in which two digests differ.
func (d *digest) differ(other *digest) (all []int) {
	for i := range d.sums {
		if d.sums[i] != other.sums[i] {
			all = append(all, i)
		}
	}
	return all
}

// picker keeps the rows of some buckets: how often each is there, and the beginning of it, which is its key.
type picker struct {
	buckets map[int]bool
	key     int
	found   map[hash]*pick
	rest    []byte
}

type pick struct {
	key string
	n   int
}

func (x *picker) Write(p []byte) (int, error) {
	lines(&x.rest, p, func(line []byte) {
		h := hash(sha256.Sum256(line))
		if !x.buckets[h.bucket()] {
			return
		}
		if x.found[h] == nil {
			x.found[h] = &pick{key: keyOf(line, x.key)}
		}
		x.found[h].n++
	})
	return len(p), nil
}

// longestKey is how much of a key is told.
const longestKey = 200

// keyOf are the first values of a line, or all of them where there is no key.
func keyOf(line []byte, columns int) string {
	values := bytes.Split(line, []byte("\t"))
	if columns > 0 {
		values = values[:min(columns, len(values))]
	}
	text := bytes.Join(values, []byte(", "))
	return string(text[:min(len(text), longestKey)])
}

// without are the keys of rows that this one has, and the other one has not, or not as often.
func (x *picker) without(other *picker) (keys []string) {
	for h, p := range x.found {
		n := 0
		if o := other.found[h]; o != nil {
			n = o.n
		}
		for range p.n - n {
			keys = append(keys, p.key)
		}
	}
	return keys
}

// formats are how values are written while rows are read: the same on both sides, whatever a database has set.
const formats = `set local datestyle = 'ISO, MDY'; set local intervalstyle = 'postgres'; set local timezone = 'UTC';
	set local extra_float_digits = 1; set local bytea_output = 'hex'; set local xmloption = 'content';
	set local lc_monetary = 'C'`

// read sums up a table in the snapshot that a session has.
func read(ctx context.Context, conn *pgx.Conn, t table) (*digest, error) {
	d := &digest{}
	if _, err := conn.PgConn().CopyTo(ctx, d, t.copy()); err != nil {
		return nil, fmt.Errorf("read %s: %w", t, err)
	}
	return d, nil
}

// readPicked reads the rows of some buckets.
func readPicked(ctx context.Context, conn *pgx.Conn, t table, wanted []int) (*picker, error) {
	x := &picker{buckets: map[int]bool{}, key: len(t.Key), found: map[hash]*pick{}}
	for _, b := range wanted {
		x.buckets[b] = true
	}
	if _, err := conn.PgConn().CopyTo(ctx, x, t.copy()); err != nil {
		return nil, fmt.Errorf("read %s again: %w", t, err)
	}
	return x, nil
}
