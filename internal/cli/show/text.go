package show

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OneLineOf is a text on one line of at most so many characters.
func OneLineOf(text string, most int) string {
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > most {
		return string(words[:most-1]) + "…"
	}
	return string(words)
}

// Span is a time in seconds, with three digits that count.
func Span(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	d := time.Duration(seconds * float64(time.Second))
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		if d >= unit {
			return d.Round(unit / 10).String()
		}
	}
	return d.Round(time.Microsecond).String()
}

// At is a moment as people read it.
func At(t *metav1.Time) string {
	if t == nil {
		return "a moment that is not known yet"
	}
	return t.UTC().Format(time.RFC3339)
}

// Table writes lines whose columns, with tabs between them, stand below each other. what says in an error what was
// being done.
func Table(out io.Writer, what string, lines func(out io.Writer)) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	lines(table)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
