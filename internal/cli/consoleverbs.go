package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	_ "embed"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/backup"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/console"
	"toban.dev/internal/cli/logs"
	"toban.dev/internal/cli/restore"
	"toban.dev/internal/cli/servers"
)

// consoleVerbs are what the console does, by the functions of other verbs.
type consoleVerbs struct{ cluster.Cluster }

var _ console.Verbs = consoleVerbs{}

// Logs are the last lines that `toban logs` shows for programs.
func (v consoleVerbs) Logs(ctx context.Context, namespace, name, instance string, lines int64) ([]byte, error) {
	return logs.Last(ctx, v.In(namespace), name, instance, lines)
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
	return restore.CloneOf(v.In(db.Namespace), db, into, to)
}

// Do asks for what a verb asks for, and does not wait: the page shows what comes of it.
func (v consoleVerbs) Do(ctx context.Context, a console.Action) (string, error) {
	var out bytes.Buffer
	var err error
	switch at := v.In(a.Namespace); a.What {
	case console.DoSwitchover:
		err = servers.AskSwitchover(ctx, at, &out, a.Name, a.Instance)
	case console.DoBackup:
		err = backup.Ask(ctx, at, &out, a.Name)
	case console.DoRestart:
		err = servers.AskRestart(ctx, at, &out, a.Name, a.Instance)
	default:
		err = fmt.Errorf("there is no action %q", a.What)
	}
	return strings.TrimSpace(out.String()), err
}
