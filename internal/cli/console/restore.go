package console

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Ways are the ways back to a moment, to be copied.
type Ways struct {
	// Beside makes a new SampleDB, InPlace sets this one back, Table brings one table back while the database serves.
	Beside  Way `json:"beside"`
	InPlace Way `json:"inPlace"`
	Table   Way `json:"table"`
}

// Way is a command, and the manifest that does the same.
type Way struct {
	Command  string `json:"command"`
	Manifest string `json:"manifest,omitempty"`
	// Problem is why there is no manifest.
	Problem string `json:"problem,omitempty"`
}

// Asked is what a person wants back.
type Asked struct {
	Database *v1.SampleDB
	// To is the moment (RFC 3339), Into the name of a new SampleDB, Table that of a table.
	To, Into, Table string
}

// check says what is wrong with it, for people.
func (a Asked) check() error {
	if _, err := time.Parse(time.RFC3339, a.To); err != nil {
		return fmt.Errorf("%q is no moment: give a time with its zone, such as 2026-11-20T03:15:00+09:00", a.To)
	}
	return nil
}

// into is the name of the new SampleDB: the given one, or one made from the database's.
func (a Asked) into() string {
	if a.Into != "" {
		return a.Into
	}
	const suffix = "-restored"
	name := a.Database.Name
	return strings.TrimRight(name[:min(len(name), naming.MaxName-len(suffix))], "-") + suffix
}

// cloner makes the SampleDB of a restore beside, as the verb does.
type cloner func(db *v1.SampleDB, into, to string) (*v1.SampleDB, error)

// waysOf are the ways back. Flags are those with which every command reaches the cluster.
func waysOf(a Asked, flags []string, clone cloner) (Ways, error) {
	if err := a.check(); err != nil {
		return Ways{}, err
	}
	restore := func(more ...string) string {
		args := append([]string{"restore", a.Database.Name}, more...)
		return command(append(args, "--to", a.To), a.Database.Namespace, flags)
	}
	table := a.Table
	if table == "" {
		table = "TABLE"
	}
	out := Ways{
		Beside:  Way{Command: restore("--into", a.into())},
		InPlace: Way{Command: restore()},
		Table:   Way{Command: restore("--table", table)},
	}
	made, err := clone(a.Database, a.into(), a.To)
	if err != nil {
		out.Beside.Problem = err.Error()
	} else if out.Beside.Manifest, err = manifest(made); err != nil {
		return out, err
	}
	if out.InPlace.Manifest, err = inPlacePatch(a); err != nil {
		return out, err
	}
	out.Table.Manifest, err = manifest(&v1.DatabaseRestore{
		TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "DatabaseRestore"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Database.Namespace, Name: naming.DatabaseRestore(a.Database.Name, a.moment()),
		},
		Spec: v1.DatabaseRestoreSpec{SampleDB: a.Database.Name, Tables: []string{table},
			Target: &v1.RestoreTarget{Time: a.To}, Mode: v1.RestoreBeside,
			Deadline: metav1.Duration{Duration: 24 * time.Hour}},
	})
	return out, err
}

func (a Asked) moment() time.Time {
	at, _ := time.Parse(time.RFC3339, a.To) // check has tried it
	return at
}

// inPlacePatch are the fields of the SampleDB that set it back. Whoever applies them confirms by the name in them.
func inPlacePatch(a Asked) (string, error) {
	return asYAML(map[string]any{"spec": map[string]any{"restore": map[string]any{
		"id": "to-" + a.moment().UTC().Format("20060102-150405"), "confirm": a.Database.Name,
		"target": map[string]any{"time": a.To}, "before": v1.BeforeKeep,
	}}})
}

// manifest is an object as one writes it: without a status and what the API server adds.
func manifest(object any) (string, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("write the manifest: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		return "", fmt.Errorf("write the manifest: %w", err)
	}
	delete(fields, "status")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	return asYAML(prune(fields))
}

// prune takes out what has no content: Go writes empty structs.
func prune(fields map[string]any) map[string]any {
	for key, value := range fields {
		inner, ok := value.(map[string]any)
		if !ok {
			continue
		}
		if prune(inner); len(inner) == 0 {
			delete(fields, key)
		}
	}
	return fields
}

func asYAML(fields any) (string, error) {
	content, err := yaml.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("write the manifest as YAML: %w", err)
	}
	return string(content), nil
}

// plain are words that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:+=@%,-]+$`)

// command is a line for a shell that calls a verb.
func command(args []string, namespace string, flags []string) string {
	words := []string{"kubectl", "toban"}
	for _, arg := range append(append(args, "--namespace", namespace), flags...) {
		if !plain.MatchString(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
