package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// step is the interval of the tests' samples.
const step = 5 * time.Minute

var label = regexp.MustCompile(`{{ \$labels\.(\w+) }}`)

// promtoolTests raise each alert and end it again.
func promtoolTests(alerts []alert) map[string]any {
	var tests []map[string]any
	for _, a := range alerts {
		tests = append(tests, a.test())
		for _, r := range a.again {
			a.labels, a.shows, a.series = r.labels, r.shows, r.series
			tests = append(tests, a.test())
		}
	}
	return map[string]any{
		"rule_files": []string{"../../config/monitoring/rules.yaml"}, "evaluation_interval": step.String(),
		"tests": tests,
	}
}

func (a alert) test() map[string]any {
	after := duration(a.after)
	raised := int(after/step) + 4
	var input []map[string]string
	for _, s := range a.series {
		input = append(input, map[string]string{
			"series": s.name, "values": fmt.Sprintf("%s %s", repeat(s.raised, raised), repeat(s.ended, 4)),
		})
	}
	labels := map[string]string{"severity": a.severity}
	for k, v := range a.labels {
		labels[k] = v
	}
	shows := a.shows
	if shows == nil {
		shows = map[string]string{"summary": label.ReplaceAllStringFunc(a.summary, func(m string) string {
			return a.labels[label.FindStringSubmatch(m)[1]]
		}), "todo": a.todo}
	}
	at := func(steps int, alerts ...any) map[string]any {
		return map[string]any{"alertname": a.name, "eval_time": (time.Duration(steps) * step).String(),
			"exp_alerts": alerts}
	}
	return map[string]any{
		"name": a.name, "interval": step.String(), "input_series": input,
		"alert_rule_test": []any{
			at(raised-1, map[string]any{"exp_labels": labels, "exp_annotations": with(shows, "runbook", runbook)}),
			at(raised + 3),
		},
	}
}

func repeat(value string, times int) string {
	return strings.TrimSpace(strings.Repeat(value+" ", times))
}

// duration is one as Prometheus writes it, with days.
func duration(text string) time.Duration {
	var days int
	if _, err := fmt.Sscanf(text, "%dd", &days); err == nil && strings.HasSuffix(text, "d") {
		return time.Duration(days) * 24 * time.Hour
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err) // the texts are constants here
	}
	return d
}
