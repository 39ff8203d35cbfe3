package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// output is how a verb shows what it has to say: as text for people, or as JSON or YAML for programs. Both come from
// one value, whose names of fields are API.
type output struct{ format string }

func (o *output) flags(f *pflag.FlagSet) {
	f.StringVarP(&o.format, "output", "o", "", "json or yaml, for programs (default: text)")
}

func (o *output) check() error {
	switch o.format {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output must be json, yaml or nothing, not %q", o.format)
}

// programs says that the answer is for a program.
func (o *output) programs() bool { return o.format != "" }

// show writes a value as it is asked for; for people by text.
func (o *output) show(out io.Writer, value any, text func(io.Writer) error) error {
	if err := o.check(); err != nil {
		return err
	}
	if !o.programs() {
		return text(out)
	}
	return o.write(out, value)
}

// write writes a value for a program.
func (o *output) write(out io.Writer, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write the answer as JSON: %w", err)
	}
	if o.format == "yaml" {
		if content, err = yaml.JSONToYAML(content); err != nil {
			return fmt.Errorf("write the answer as YAML: %w", err)
		}
	}
	if _, err := fmt.Fprintln(out, strings.TrimRight(string(content), "\n")); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
