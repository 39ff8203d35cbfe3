package cli

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oneLineOf is a text on one line of at most so many characters.
func oneLineOf(text string, most int) string {
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > most {
		return string(words[:most-1]) + "…"
	}
	return string(words)
}

// span is a time in seconds, with three digits that count.
func span(seconds float64) string {
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

// at is a moment as people read it.
func at(t *metav1.Time) string {
	if t == nil {
		return "a moment that is not known yet"
	}
	return t.UTC().Format(time.RFC3339)
}
