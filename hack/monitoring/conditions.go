package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"toban.dev/hack/conditions"
)

// conditionAlert says how an alert about a condition of a SampleDB is raised. without says why there is none.
type conditionAlert struct{ severity, after, says, without string }

// conditionAlerts has every type of condition. A type that is missing fails make generate.
var conditionAlerts = map[string]conditionAlert{
	"Ready":             {warning, "15m", "is not as its spec wants it", ""},
	"Available":         {critical, "1m", "has no primary that takes writes", ""},
	"Durable":           {critical, "10m", "could lose commits with one instance", ""},
	"HasRoom":           {warning, "10m", "has a volume that gets short, or keeps much WAL", ""},
	"PasswordRotated":   {warning, "30m", "does not have the new password yet", ""},
	"CertificateServed": {warning, "15m", "does not show the certificate that it was given", ""},
	"AuthorityRotated":  {warning, "1d", "still trusts its former authority", ""},
	"RootReplaced":      {info, "7d", "still needs a former root secret of the operator", ""},
	"Archiving":         {critical, "10m", "does not archive its WAL", ""},
	"RetentionApplied":  {warning, "1h", "can't remove old backups", ""},
	"KeysHeld":          {critical, "10m", "lacks a key that its archive needs", ""},
	"Scheduled":         {warning, "1h", "has no backup as new as it should be", ""},
	"Intact":            {critical, "10m", "has a broken object in its archive", ""},
	"Copied":            {warning, "1h", "has no copy of its archive that is up to date", ""},
	"UpToDate":          {info, "1d", "runs a PostgreSQL version that is old", ""},
	"CollationsCurrent": {warning, "30m", "may have indexes that are out of order", ""},
	"QueriesAnswered":   {warning, "15m", "has a query for metrics that fails", ""},
	"DrillsPassed":      {warning, "15m", "has not passed its last drill, or has none that its spec wants", ""},
	"ReadersReady":      {warning, "15m", "has readers that are not ready", ""},
	"PoolerReady":       {warning, "15m", "has a pooler of which not all Pods take clients", ""},
	"SurvivesZoneLoss":  {info, "1d", "takes no writes while one of its zones is lost", ""},
	"PrimaryPreferred":  {info, "1d", "is led by an instance that is not the preferred one", ""},

	"Initialized":          {without: "Ready has its reason"},
	"ConfigurationApplied": {without: "Ready has its reason"},
	"StorageReady":         {without: "Ready has its reason"},
	"Restored":             {without: "Ready has its reason"},
	"Upgraded":             {without: "Ready has its reason"},
	"Complete":             {without: "of a DatabaseBackup, whose SampleDB has Scheduled"},
	"Verified":             {without: "of a DatabaseBackup; TobanBackupNotVerified is the alert"},
	"Passed":               {without: "of a FaultDrill; TobanDrillNotPassed is the alert"},
}

// todo is what a user does about a reason.
type todo struct{ reason, text string }

// aboutConditions are the alerts about conditions.
func aboutConditions() ([]alert, error) {
	types, groups, err := conditions.Read("api/v1/conditions.go")
	if err != nil {
		return nil, err //nolint:wrapcheck // it says of which file
	}
	var out []alert
	for _, c := range types {
		how, known := conditionAlerts[c.Value]
		switch {
		case !known:
			return nil, fmt.Errorf("the condition %s has no alert: give it one in conditionAlerts, or say "+
				"why not", c.Value)
		case how.without == "":
			out = append(out, how.alert(c.Value, reasonsOf(c.Value, groups)))
		}
	}
	return out, told(out, groups)
}

// reasonsOf are the reasons of a type of condition, without those of one that is said in other alerts: Ready has the
// reason of any condition without an alert.
func reasonsOf(kind string, groups []conditions.Group) []todo {
	var out []todo
	for _, g := range groups {
		mine := typesOf(g)
		takes := slices.Contains(mine, kind) || kind == "Ready" && slices.ContainsFunc(mine, func(other string) bool {
			return conditionAlerts[other].without == "Ready has its reason"
		})
		for _, r := range g.Constants {
			if takes || strings.Contains(r.Says, "also a reason of") && strings.Contains(r.Says, kind) {
				out = append(out, todo{r.Value, r.Todo})
			}
		}
	}
	return out
}

// typesOf are the conditions that a group's heading names: "Reasons of Ready and Available of a database …".
func typesOf(g conditions.Group) []string {
	var out []string
	for _, word := range strings.FieldsFunc(g.Heading, func(r rune) bool { return r == ' ' || r == ',' }) {
		if _, known := conditionAlerts[word]; known {
			out = append(out, word)
		}
	}
	return out
}

// told fails where a reason with something to do is in no alert, unless its condition says why there is none.
func told(alerts []alert, groups []conditions.Group) error {
	for _, g := range groups {
		types := typesOf(g)
		if len(types) == 0 {
			return fmt.Errorf("%q names no condition", g.Heading)
		}
		if slices.ContainsFunc(types, func(t string) bool { return conditionAlerts[t].without != "" }) {
			continue
		}
		for _, r := range g.Constants {
			if !idle(todo{r.Value, r.Todo}) && !slices.ContainsFunc(alerts,
				func(a alert) bool { return strings.Contains(a.todo, `"`+r.Value+`"`) }) {
				return fmt.Errorf("the reason %s is in no alert", r.Value)
			}
		}
	}
	return nil
}

func idle(t todo) bool { return strings.HasPrefix(t.text, "nothing") }

var nameOfUser = regexp.MustCompile(`\bNAME\b`)

// alert is the one about a type of condition. A reason for which there is nothing to do raises none. What is to be done
// is looked up when the alert is shown, so that an alert goes on when the reason changes.
func (how conditionAlert) alert(kind string, all []todo) alert {
	labels := fmt.Sprintf(`type="%s"`, kind)
	var quiet, words []string
	var first *todo
	for _, t := range all {
		if idle(t) {
			quiet = append(quiet, t.reason)
			continue
		}
		if first == nil {
			first = &t
		}
		words = append(words, fmt.Sprintf(`{{ if eq .Labels.reason "%s" }}%s{{ end }}`, t.reason,
			nameOfUser.ReplaceAllString(t.text, "{{ .Labels.sampledb }}")))
	}
	expr := fmt.Sprintf("toban_sampledb_condition{%s} != 1", labels)
	if len(quiet) > 0 {
		expr += fmt.Sprintf("\nunless on (namespace, sampledb)\n"+`toban_sampledb_condition_reason{%s, reason=~"%s"}`,
			labels, strings.Join(quiet, "|"))
	}
	about := func(labels string) string {
		return fmt.Sprintf(`{namespace="shop", sampledb="x", type="%s"%s}`, kind, labels)
	}
	return alert{
		name: "Toban" + kind, severity: how.severity, after: how.after, expr: expr,
		summary: "SampleDB {{ $labels.namespace }}/{{ $labels.sampledb }} " + how.says,
		todo: fmt.Sprintf(`{{ range printf "toban_sampledb_condition_reason{namespace='%%s',sampledb='%%s',type='%s'}"`+
			` $labels.namespace $labels.sampledb | query }}{{ .Labels.reason }}: %s{{ end }}`, kind, strings.Join(words,
			"")),
		labels: map[string]string{"namespace": "shop", "sampledb": "x", "type": kind},
		shows: map[string]string{
			"summary": "SampleDB shop/x " + how.says,
			"todo":    first.reason + ": " + nameOfUser.ReplaceAllString(first.text, "x"),
		},
		series: []series{
			{"toban_sampledb_condition" + about(""), "0", "1"},
			{"toban_sampledb_condition_reason" + about(`, reason="`+first.reason+`"`), "1", "1"},
		},
	}
}
