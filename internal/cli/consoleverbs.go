package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/console"
)

// consoleVerbs are what the console does, by the functions of other verbs.
type consoleVerbs struct{ cluster }

var _ console.Verbs = consoleVerbs{}

// Logs are the last lines that `toban logs` shows for programs.
func (v consoleVerbs) Logs(ctx context.Context, namespace, name, instance string, lines int64) ([]byte, error) {
	o := logsOptions{cluster: v.in(namespace), instance: instance, tail: lines}
	o.output.format = "json"
	api, err := o.connect()
	if err != nil {
		return nil, err
	}
	pods, err := o.chosen(ctx, api, name)
	if err != nil {
		return nil, err
	}
	open, err := o.opener()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = o.showAll(ctx, &out, pods, open)
	return out.Bytes(), err
}

// replicationScript asks a primary for its standbys, which call themselves by the instance, its volume and the term
// (internal/ha).
//
//go:embed replication.sql
var replicationScript string

// Replication asks the primary as `toban top` does.
func (v consoleVerbs) Replication(ctx context.Context, namespace, name string) (out console.Replication, err error) {
	at := v.in(namespace)
	_, pod, err := at.server(ctx, name, instanceChoice{})
	if err != nil {
		return out, err
	}
	answer, err := at.ask(ctx, pod, question{"kubectl toban console", databasePostgres, replicationScript})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, fmt.Errorf("understand the server's answer %.200q: %w", answer, err)
	}
	return out, nil
}

// Clone is the SampleDB that `toban restore --into` makes.
func (v consoleVerbs) Clone(db *v1.SampleDB, into, to string) (*v1.SampleDB, error) {
	o := &restoreToOptions{cluster: v.in(db.Namespace), to: to, into: into}
	target, err := o.target()
	if err != nil {
		return nil, err
	}
	r := restoreTo{restoreToOptions: o, from: origin{name: db.Name, db: db}, target: target}
	spec, err := r.newSpec()
	if err != nil {
		return nil, err
	}
	return &v1.SampleDB{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "SampleDB"},
		ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: into},
		Spec:       spec,
	}, nil
}

// Do asks for what a verb asks for, and does not wait: the page shows what comes of it.
func (v consoleVerbs) Do(ctx context.Context, a console.Action) (string, error) {
	var out bytes.Buffer
	var err error
	switch at := v.in(a.Namespace); a.What {
	case console.DoSwitchover:
		err = (&switchoverOptions{cluster: at, to: a.Instance}).run(ctx, &out, a.Name)
	case console.DoBackup:
		err = (&backupOptions{cluster: at, deadline: backupDeadline}).run(ctx, &out, a.Name)
	case console.DoRestart:
		err = (&restartOptions{watched: watched{cluster: at}, instance: a.Instance}).run(ctx, &out, a.Name)
	default:
		err = fmt.Errorf("there is no action %q", a.What)
	}
	return strings.TrimSpace(out.String()), err
}
