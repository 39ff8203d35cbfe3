package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	_ "embed"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/console"
)

// consoleVerbs are what the console does, by the functions of other verbs: those that are there.
type consoleVerbs struct {
	cluster.Cluster
	logs    func(ctx context.Context, at cluster.Cluster, name, instance string, lines int64) ([]byte, error)
	clone   func(at cluster.Cluster, db *v1.SampleDB, into, to string) (*v1.SampleDB, error)
	actions map[string]action
}

// action asks for what a verb asks for, and does not wait.
type action func(ctx context.Context, at cluster.Cluster, out io.Writer, name, instance string) error

// errNoVerb is said of a verb that this program does not have.
var errNoVerb = errors.New("this program has no verb for it")

// at are those in a cluster.
func (v consoleVerbs) at(c cluster.Cluster) consoleVerbs {
	v.Cluster = c
	return v
}

var _ console.Verbs = consoleVerbs{}

// Logs are the last lines that `toban logs` shows for programs.
func (v consoleVerbs) Logs(ctx context.Context, namespace, name, instance string, lines int64) ([]byte, error) {
	if v.logs == nil {
		return nil, errNoVerb
	}
	return v.logs(ctx, v.In(namespace), name, instance, lines)
}

// replicationScript asks a primary for its standbys, which call themselves by the instance, its volume and the term
// (internal/ha).
//
//go:embed replication.sql
var replicationScript string

// Replication asks the primary as `toban top` does.
func (v consoleVerbs) Replication(ctx context.Context, namespace, name string) (out console.Replication, err error) {
	at := v.In(namespace)
	_, pod, err := at.Server(ctx, name, cluster.InstanceChoice{})
	if err != nil {
		return out, err
	}
	answer, err := at.Ask(ctx, pod, cluster.Question{
		Application: "kubectl toban console", Database: cluster.DatabasePostgres, Script: replicationScript,
	})
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
	if v.clone == nil {
		return nil, errNoVerb
	}
	return v.clone(v.In(db.Namespace), db, into, to)
}

// Do asks for what a verb asks for, and does not wait: the page shows what comes of it.
func (v consoleVerbs) Do(ctx context.Context, a console.Action) (string, error) {
	ask, is := v.actions[a.What]
	if !is {
		return "", fmt.Errorf("there is no action %q", a.What)
	}
	var out bytes.Buffer
	err := ask(ctx, v.In(a.Namespace), &out, a.Name, a.Instance)
	return strings.TrimSpace(out.String()), err
}
