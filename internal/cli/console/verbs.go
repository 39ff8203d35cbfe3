package console

import (
	"context"
	"errors"
	"fmt"

	v1 "toban.dev/api/v1"
)

// Verbs are what `kubectl toban` does, with the rights of its user. Each names the namespace of a database first.
type Verbs interface {
	// Logs are the last lines of an instance's log, or of all instances, as JSON objects, one a line.
	Logs(ctx context.Context, namespace, name, instance string, lines int64) ([]byte, error)
	// Replication asks the primary how far its standbys are.
	Replication(ctx context.Context, namespace, name string) (Replication, error)
	// Clone is the SampleDB that a restore beside makes.
	Clone(db *v1.SampleDB, into, to string) (*v1.SampleDB, error)
	// Do does what is asked for, without waiting for its end, and says so.
	Do(ctx context.Context, action Action) (said string, err error)
}

// Action is a change that a person asks for.
type Action struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// What is switchover, backup or restart.
	What string `json:"what"`
	// Instance is the one that should lead, or whose server is restarted; "" for any, or all.
	Instance string `json:"instance,omitempty"`
	// Confirm is the name of the database, as the person has typed it.
	Confirm string `json:"confirm,omitempty"`
}

// The values of Action.What.
const (
	DoSwitchover = "switchover"
	DoBackup     = "backup"
	DoRestart    = "restart"
)

// args are those of the verb.
func (a Action) args() ([]string, error) {
	args := []string{a.What, a.Name}
	switch {
	case a.Name == "" || a.Namespace == "":
		return nil, errors.New("say of which SampleDB: give namespace and name")
	case a.What == DoSwitchover && a.Instance != "":
		args = append(args, "--to", a.Instance)
	case a.What == DoRestart && a.Instance != "":
		args = append(args, "--instance", a.Instance)
	case a.What != DoSwitchover && a.What != DoBackup && a.What != DoRestart:
		return nil, fmt.Errorf("there is no action %q: there are switchover, backup and restart", a.What)
	}
	return args, nil
}

// confirmed is an error where the person has not typed the name.
func (a Action) confirmed() error {
	if a.Confirm != a.Name {
		return fmt.Errorf("type the name %s to confirm: %q is another one", a.Name, a.Confirm)
	}
	return nil
}
