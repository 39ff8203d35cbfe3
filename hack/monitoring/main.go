// Command monitoring writes the alerts, recording rules and dashboards of config/monitoring, and promtool's tests of
// the alerts. The texts of alerts about conditions are the "To do" of their reasons, so that no reason is forgotten.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const (
	folder   = "config/monitoring"
	header   = "# Written by make generate (hack/monitoring). Don't edit it.\n"
	testFile = "test/monitoring/alerts.test.yaml"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

func run() error {
	alerts, err := allAlerts()
	if err != nil {
		return err
	}
	groups := map[string]any{"groups": []any{
		map[string]any{"name": "toban.recorded", "rules": recorded},
		map[string]any{"name": "toban.alerts", "rules": rulesOf(alerts)},
	}}
	for path, content := range map[string]any{
		folder + "/rules.yaml": groups,
		folder + "/prometheusrule.yaml": map[string]any{
			"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
			"metadata": map[string]any{"name": "toban", "labels": map[string]string{"app.kubernetes.io/name": "toban"}},
			"spec":     groups,
		},
		testFile: promtoolTests(alerts),
	} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("encode %s: %w", path, err)
		}
		if err := write(path, header+string(text)); err != nil {
			return err
		}
	}
	for _, d := range dashboards {
		text, err := json.MarshalIndent(d.grafana(), "", " ")
		if err != nil {
			return fmt.Errorf("encode the dashboard %s: %w", d.name, err)
		}
		if err := write(folder+"/dashboards/"+d.name+".json", string(text)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // for everybody
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
