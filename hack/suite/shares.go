package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// share is one of several parts of about the same length: 2/12 is the second of twelve.
type share struct{ number, of int }

func (s share) String() string { return fmt.Sprintf("%d/%d", s.number, s.of) }

func parseShare(text string) (share, error) {
	number, of, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	m, err2 := strconv.Atoi(of)
	if !ok || err != nil || err2 != nil || n < 1 || n > m {
		return share{}, fmt.Errorf("SHARE=%q is not a share: the second of twelve is SHARE=2/12", text)
	}
	return share{n, m}, nil
}

// shareOut divides pieces into so many shares that take about the same time: the longest first, each into the share
// that is shortest so far.
func shareOut(pieces []piece, shares int, last record) [][]piece {
	sorted := slices.Clone(pieces)
	slices.SortFunc(sorted, func(a, b piece) int {
		return cmp.Or(cmp.Compare(last.cost(b), last.cost(a)), strings.Compare(a.name, b.name))
	})
	parts := make([][]piece, shares)
	length := make([]float64, shares)
	for _, p := range sorted {
		i := slices.Index(length, slices.Min(length))
		parts[i] = append(parts[i], p)
		length[i] += last.cost(p)
	}
	return parts
}

// cost is for how long a piece takes the machine, in seconds.
func (r record) cost(p piece) float64 {
	seconds := p.guess
	if ran, ok := r[p.name]; ok {
		seconds = ran.seconds
	}
	return float64(seconds) / p.beside
}

func (r record) costs(pieces []piece) time.Duration {
	sum := 0.0
	for _, p := range pieces {
		sum += r.cost(p)
	}
	return time.Duration(sum * float64(time.Second)).Round(time.Minute)
}

// next is the share that is due: the oldest one, and where nobody has recorded a run since, one that depends on how
// many commits there were, so that another one comes next.
func next(pieces []piece, shares int, last record, commits int) share {
	due := oldest(pieces, shares, last)
	due.number = (due.number-1+commits)%shares + 1
	return due
}

// oldest is the share with the piece that ran longest ago, or never. As each run that is recorded makes its pieces the
// youngest, all have run when as many runs as there are shares have been recorded.
func oldest(pieces []piece, shares int, last record) share {
	parts := shareOut(pieces, shares, last)
	first := 0
	for i := range parts {
		if last.since(parts[i]).Before(last.since(parts[first])) {
			first = i
		}
	}
	return share{first + 1, shares}
}
