// Package monitoring reads the expressions of config/monitoring, for tests that ask whether a Prometheus has what they
// name.
package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Expression is one of a rule or a dashboard. Alert says that it has an answer only while the alert is raised.
type Expression struct {
	Where, Text string
	Alert       bool
}

// Expressions are all of config/monitoring below root. Namespace and sampledb stand for what is chosen in a dashboard.
func Expressions(root, namespace, sampledb string) ([]Expression, error) {
	out, err := ofRules(filepath.Join(root, "config/monitoring/rules.yaml"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "config/monitoring/dashboards/*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the dashboards: %w", err)
	}
	chosen := strings.NewReplacer("$namespace", namespace, "$sampledb", sampledb)
	for _, file := range files {
		more, err := ofDashboard(file)
		if err != nil {
			return nil, err
		}
		for _, e := range more {
			out = append(out, Expression{e.Where, chosen.Replace(e.Text), false})
		}
	}
	return out, nil
}

func ofRules(file string) ([]Expression, error) {
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Record, Expr string }
		}
	}
	if err := read(file, &rules); err != nil {
		return nil, err
	}
	var out []Expression
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			out = append(out, Expression{r.Alert + r.Record, r.Expr, r.Alert != ""})
		}
	}
	return out, nil
}

func ofDashboard(file string) ([]Expression, error) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := read(file, &dashboard); err != nil {
		return nil, err
	}
	var out []Expression
	for _, p := range dashboard.Panels {
		for _, t := range p.Targets {
			out = append(out, Expression{filepath.Base(file) + ", " + p.Title, t.Expr, false})
		}
	}
	return out, nil
}

func read(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if filepath.Ext(file) == ".json" {
		err = json.Unmarshal(text, into)
	} else {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("understand %s: %w", file, err)
	}
	return nil
}

var (
	name   = regexp.MustCompile(`\b(?:pg_|pgbouncer_|toban[_:])[a-z0-9_:]+|\bup\b`)
	quoted = regexp.MustCompile(`"[^"]*"`)
)

// Metrics are the metrics that an expression names.
func (e Expression) Metrics() []string {
	return name.FindAllString(quoted.ReplaceAllString(e.Text, `""`), -1)
}
