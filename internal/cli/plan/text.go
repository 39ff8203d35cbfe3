package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"toban.dev/internal/cli/show"
	"toban.dev/internal/operator/plan"
)

// fieldWidth is how much of a field's value a line shows, in characters.
const fieldWidth = 50

// writePlan shows what a change of one SampleDB does to a person.
func writePlan(out io.Writer, p plan.Plan) error {
	if err := writeChange(out, p); err != nil {
		return err
	}
	if p.Minors != "" {
		fmt.Fprintf(out, "\n%s\n", p.Minors)
	}
	return nil
}

// writeChange shows what changes, and what follows.
func writeChange(out io.Writer, p plan.Plan) error {
	name := p.Namespace + "/" + p.Name
	if len(p.Steps) == 0 {
		fmt.Fprintf(out, "SampleDB %s stays as it is\n", name)
		return nil
	}
	if len(p.Fields) == 0 {
		fmt.Fprintf(out, "SampleDB %s is made\n", name)
	} else if err := writeFields(out, name, p.Fields); err != nil {
		return err
	}
	if err := writeSteps(out, p.Steps); err != nil {
		return err
	}
	if text := handOverText(p); text != "" {
		fmt.Fprintf(out, "\n%s\n", text)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(out, "\nWarning: %s\n", warning)
	}
	return nil
}

func writeFields(out io.Writer, name string, fields []plan.Field) error {
	fmt.Fprintf(out, "SampleDB %s changes:\n", name)
	return show.Table(out, "show the fields", func(table io.Writer) {
		for _, f := range fields {
			fmt.Fprintf(table, "  %s\t%s -> %s\n", f.Path, shownValue(f.Before), shownValue(f.After))
		}
	})
}

func shownValue(value string) string {
	if value == "" {
		return "(not given)"
	}
	return show.OneLineOf(value, fieldWidth)
}

func writeSteps(out io.Writer, steps []plan.Step) error {
	err := show.Table(out, "show the steps", func(table io.Writer) {
		fmt.Fprintln(table, "\nSTEP\tWHAT\tON\tWRITES\tBECAUSE OF")
		for i, s := range steps {
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", i+1, s.Effect, orDash(s.Instances), s.Writes, orDash(s.Fields))
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	for i, s := range steps {
		if s.Message != "" {
			fmt.Fprintf(out, "%d. %s: %s\n", i+1, s.Effect, s.Message)
		}
	}
	return nil
}

func orDash(words []string) string { return cmp.Or(strings.Join(words, ", "), "-") }

// handOverText says how long a hand-over takes, as far as that is known; "" where there is none.
func handOverText(p plan.Plan) string {
	for _, s := range p.Steps {
		if s.Writes != plan.WritesHandOver {
			continue
		}
		if m := p.HandOver; m != nil {
			return fmt.Sprintf("A hand-over of this database took %.2f s without writes, measured by clients (%s, %s).",
				m.Seconds, m.By, m.At.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("How long a hand-over of this database is without writes was not measured. To measure it: "+
			"kubectl toban drill %s --fault PodDeleted", p.Name)
	}
	return ""
}
