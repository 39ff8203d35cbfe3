package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"toban.dev/hack/conditions"
)

// conditionAlert says how an alert about a condition is raised. without says why there is none.
type conditionAlert struct{ severity, after, says, without string }

// readySays is without, of a condition that Ready waits for.
const readySays = "Ready has its reason"

// ofSampleDB has every type of condition of a SampleDB.
var ofSampleDB = map[string]conditionAlert{
	"Ready":             {warning, "15m", "is not as its spec wants it", ""},
	"Available":         {critical, "1m", "has no primary that takes writes", ""},
	"Durable":           {critical, "10m", "could lose commits with one instance", ""},
	"OnTime":            {warning, "15m", "has instances on busy machines, or that have much WAL to replay", ""},
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
	"UpToDate":          {info, "8d", "runs a PostgreSQL version that is old", ""},
	"CollationsCurrent": {warning, "30m", "may have indexes that are out of order", ""},
	"QueriesAnswered":   {warning, "15m", "has a query for metrics that fails", ""},
	"DrillsPassed":      {warning, "15m", "has not passed its last drill, or has none that its spec wants", ""},
	"ReadersReady":      {warning, "15m", "has readers that are not ready", ""},
	"PoolerReady":       {warning, "15m", "has a pooler of which not all Pods take clients", ""},
	"SurvivesZoneLoss":  {info, "1d", "takes no writes while one of its zones is lost", ""},
	"PrimaryPreferred":  {info, "1d", "is led by an instance that is not the preferred one", ""},

	"Initialized":          {without: readySays},
	"ConfigurationApplied": {without: readySays},
	"StorageReady":         {without: readySays},
	"Restored":             {without: readySays},
	"Upgraded":             {without: readySays},
	"SideClosed":           {without: "of a second side, which is closed or open as its upgrade wants it"},
	"Complete":             {without: "of a DatabaseBackup, of which kinds.go has it"},
	"Verified":             {without: "of a DatabaseBackup, of which kinds.go has it"},
	"Passed":               {without: "of a FaultDrill; TobanDrillNotPassed is the alert"},
}

// todo is what a user does about a reason.
type todo struct{ reason, text string }

// aboutConditions are the alerts about conditions of all kinds.
func aboutConditions() ([]alert, error) {
	var out []alert
	for _, k := range kinds {
		types, groups, err := conditions.Read(k.file)
		if err != nil {
			return nil, err //nolint:wrapcheck // it says of which file
		}
		about, err := k.about(types, groups)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		out = append(out, about...)
	}
	return out, nil
}

// about are the alerts about its conditions. A type that is missing in its alerts fails make generate.
func (k kind) about(types []conditions.Constant, groups []conditions.Group) ([]alert, error) {
	var out []alert
	for _, c := range types {
		how, known := k.alerts[c.Value]
		switch {
		case !known && k.reasons == nil:
			return nil, fmt.Errorf("the condition %s has no alert: give it one in the kind's alerts, or say why not",
				c.Value)
		case known && how.without == "":
			out = append(out, k.alert(c.Value, how, k.reasonsOf(c.Value, groups)))
		}
	}
	return out, k.told(out, groups)
}

// reasonsOf are the reasons of a type of condition, without those of one that is said in other alerts: Ready has the
// reason of any condition without an alert.
func (k kind) reasonsOf(of string, groups []conditions.Group) []todo {
	var out []todo
	for _, g := range groups {
		mine := k.typesOf(g)
		takes := slices.Contains(mine, of) || of == "Ready" && slices.ContainsFunc(mine, func(other string) bool {
			return k.alerts[other].without == readySays
		})
		for _, r := range g.Constants {
			if k.reasons != nil && !slices.Contains(k.reasons[of], r.Value) {
				continue
			}
			if takes || strings.Contains(r.Says, "also a reason of") && strings.Contains(r.Says, of) {
				out = append(out, todo{r.Value, r.Todo})
			}
		}
	}
	return out
}

// typesOf are the conditions that a group's heading names: "Reasons of Ready and Available of a database …".
func (k kind) typesOf(g conditions.Group) []string {
	var out []string
	for _, word := range strings.FieldsFunc(g.Heading, func(r rune) bool { return r == ' ' || r == ',' }) {
		if _, known := k.alerts[word]; known {
			out = append(out, word)
		}
	}
	return out
}

// told fails where a reason with something to do is in no alert, unless its condition says why there is none. Of a kind
// with chosen reasons it fails where there is no such reason.
func (k kind) told(alerts []alert, groups []conditions.Group) error {
	missing := func(reason string) bool {
		return !slices.ContainsFunc(alerts, func(a alert) bool { return strings.Contains(a.todo, `"`+reason+`"`) })
	}
	if k.reasons != nil {
		return k.chosenAreKnown(groups)
	}
	for _, g := range groups {
		types := k.typesOf(g)
		if len(types) == 0 {
			return fmt.Errorf("%q names no condition", g.Heading)
		}
		if slices.ContainsFunc(types, func(t string) bool { return k.alerts[t].without != "" }) {
			continue
		}
		for _, r := range g.Constants {
			if !idle(todo{r.Value, r.Todo}) && missing(r.Value) {
				return fmt.Errorf("the reason %s is in no alert", r.Value)
			}
		}
	}
	return nil
}

// chosenAreKnown fails where a chosen reason does not exist, for instance because it was renamed.
func (k kind) chosenAreKnown(groups []conditions.Group) error {
	for of, chosen := range k.reasons {
		if found := k.reasonsOf(of, groups); len(found) != len(chosen) {
			return fmt.Errorf("of the reasons %q of %s there are only %v", chosen, of, found)
		}
	}
	return nil
}

func idle(t todo) bool { return strings.HasPrefix(t.text, "nothing") }

var nameOfUser = regexp.MustCompile(`\bNAME\b`)

// alert is the one about a type of condition. A reason for which there is nothing to do raises none. What is to be done
// is looked up when the alert is shown, so that an alert goes on when the reason changes.
func (k kind) alert(of string, how conditionAlert, all []todo) alert {
	labels := fmt.Sprintf(`type="%s"`, of)
	var words []string
	var quiet []string
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
			nameOfUser.ReplaceAllString(t.text, "{{ .Labels."+k.label+" }}")))
	}
	expr := fmt.Sprintf("%s_condition{%s} != 1", k.metric, labels)
	if len(quiet) > 0 {
		expr += fmt.Sprintf("\nunless on (namespace, %s)\n"+`%s_condition_reason{%s, reason=~"%s"}`,
			k.label, k.metric, labels, strings.Join(quiet, "|"))
	}
	if k.while != "" {
		expr += fmt.Sprintf("\nand on (namespace, %s)\n%s", k.label, k.while)
	}
	summary := k.subject + " %s/%s " + how.says
	return alert{
		name: "Toban" + k.prefix + of, severity: how.severity, after: how.after, expr: expr,
		summary: fmt.Sprintf(summary, "{{ $labels.namespace }}", "{{ $labels."+k.label+" }}"),
		todo: fmt.Sprintf(`{{ range printf "%[1]s_condition_reason{namespace='%%s',%[2]s='%%s',type='%[3]s'}"`+
			` $labels.namespace $labels.%[2]s | query }}{{ .Labels.reason }}: %[4]s{{ end }}`, k.metric, k.label, of,
			strings.Join(words, "")),
		labels: map[string]string{"namespace": "shop", k.label: "x", "type": of},
		shows: map[string]string{
			"summary": fmt.Sprintf(summary, "shop", "x"),
			"todo":    first.reason + ": " + nameOfUser.ReplaceAllString(first.text, "x"),
		},
		series: k.played("x", of, first.reason, true),
		never:  k.never(of, first.reason, quiet),
	}
}

// played are the series of a condition of an object with a reason, in which the alert is raised and ends. With there,
// what has to be there while it is raised is.
func (k kind) played(name, of, reason string, there bool) []series {
	about := func(labels string) string {
		return fmt.Sprintf(`{namespace="shop", %s="%s"%s}`, k.label, name, labels)
	}
	kind := fmt.Sprintf(`, type="%s"`, of)
	out := []series{
		{k.metric + "_condition" + about(kind), "0", "1"},
		{k.metric + "_condition_reason" + about(kind+`, reason="`+reason+`"`), "1", "1"},
	}
	if k.while != "" && there {
		out = append(out, series{k.while + about(""), "1", "1"})
	}
	return out
}

// never are series that raise no alert: of an object for each reason for which there is nothing to do, and of one of
// which what has to be there while it is raised is not.
func (k kind) never(of, reason string, quiet []string) []series {
	var out []series
	for _, q := range quiet {
		out = append(out, k.played("quiet-"+q, of, q, true)...)
	}
	if k.while != "" {
		out = append(out, k.played("gone", of, reason, false)...)
	}
	return out
}
