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
		if len(a.never) > 0 && duration(a.after) <= time.Hour { // longer ones take long to play
			a.series = a.never
			tests = append(tests, a.silent())
		}
	}
	return map[string]any{
		"rule_files": []string{"../../config/monitoring/rules.yaml"}, "evaluation_interval": step.String(),
		"tests": tests,
	}
}

// raisedIn is in how many steps an alert is raised for sure.
func (a alert) raisedIn() int { return int(duration(a.after)/step) + 4 }

// input are the series of its test.
func (a alert) input() []map[string]string {
	var out []map[string]string
	for _, s := range a.series {
		out = append(out, map[string]string{
			"series": s.name, "values": fmt.Sprintf("%s %s", repeat(s.raised, a.raisedIn()), repeat(s.ended, 4)),
		})
	}
	return out
}

// at is what is expected of it after so many steps.
func (a alert) at(steps int, alerts ...any) map[string]any {
	return map[string]any{
		"alertname": a.name, "eval_time": (time.Duration(steps) * step).String(), "exp_alerts": alerts,
	}
}

// silent tests that its series do not raise it.
func (a alert) silent() map[string]any {
	return map[string]any{
		"name": a.name, "interval": step.String(), "input_series": a.input(),
		"alert_rule_test": []any{a.at(a.raisedIn() - 1)},
	}
}

// test tests that its series raise it and end it.
func (a alert) test() map[string]any {
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
	raised := a.raisedIn()
	return map[string]any{
		"name": a.name, "interval": step.String(), "input_series": a.input(),
		"alert_rule_test": []any{
			a.at(raised-1, map[string]any{"exp_labels": labels, "exp_annotations": with(shows, "runbook", runbook)}),
			a.at(raised + 3),
		},
	}
}

// repeat is a value that many times; one that grows ("0+1") does so each time.
func repeat(value string, times int) string {
	if strings.Contains(value, "+") {
		return fmt.Sprintf("%sx%d", value, times-1)
	}
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
