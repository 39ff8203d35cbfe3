package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Output is how a verb shows what it has to say: as text for people, or as JSON or YAML for programs. Both come from
// one value, whose names of fields are API.
type Output struct {
	// Format is json, yaml, or "" for text; some verbs have others.
	Format string
}

// Flags adds the flag for it.
func (o *Output) Flags(f *pflag.FlagSet) {
	f.StringVarP(&o.Format, "output", "o", "", "json or yaml, for programs (default: text)")
}

// Check is an error where it is asked for as something else.
func (o *Output) Check() error {
	switch o.Format {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output must be json, yaml or nothing, not %q", o.Format)
}

// Programs says that the answer is for a program.
func (o *Output) Programs() bool { return o.Format != "" }

// Show writes a value as it is asked for; for people by text.
func (o *Output) Show(out io.Writer, value any, text func(io.Writer) error) error {
	if err := o.Check(); err != nil {
		return err
	}
	if !o.Programs() {
		return text(out)
	}
	return o.Write(out, value)
}

// Write writes a value for a program.
func (o *Output) Write(out io.Writer, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write the answer as JSON: %w", err)
	}
	if o.Format == "yaml" {
		if content, err = yaml.JSONToYAML(content); err != nil {
			return fmt.Errorf("write the answer as YAML: %w", err)
		}
	}
	if _, err := fmt.Fprintln(out, strings.TrimRight(string(content), "\n")); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

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
