package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	_ "embed"

	"github.com/spf13/cobra"

	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
)

// topScript asks for a snapshot. Each statement answers with a value in JSON.
//
//go:embed top.sql
var topScript string

type topOptions struct {
	cluster.Cluster
	instance cluster.InstanceChoice
	database string
	watch    bool
	interval time.Duration
}

// Top is `toban top`: what the sessions of a server do now.
func Top() *cobra.Command {
	var o topOptions
	c := &cobra.Command{
		Use:   "top NAME",
		Short: "Show what the sessions of a SampleDB do, who blocks whom, and the slowest statements",
		Long: "Asks the primary by psql in its Pod, with your own rights in Kubernetes: you need the right to\n" +
			"create pods/exec. The session has the rights of pg_monitor only. The statements that took most time\n" +
			"are those of pg_stat_statements, if the extension is in the database of --database.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), c.OutOrStdout(), args[0]) },
	}
	f := c.Flags()
	o.Flags(f)
	f.StringVarP(&o.database, "database", "d", "", "where pg_stat_statements is (default: that of the application)")
	f.BoolVar(&o.instance.Replica, "replica", false, "ask a standby")
	f.StringVar(&o.instance.Name, "instance", "", "ask this instance, whatever its role")
	f.BoolVarP(&o.watch, "watch", "w", false, "show it again and again")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "how often, with --watch")
	c.MarkFlagsMutuallyExclusive("replica", "instance")
	return c
}

func (o *topOptions) run(ctx context.Context, out io.Writer, name string) error {
	for {
		shown, err := o.snapshot(ctx, name)
		if err != nil {
			return err
		}
		if o.watch {
			show.Clear(out)
		}
		if err := o.Output.Show(out, shown, shown.write); err != nil || !o.watch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.interval):
		}
	}
}

// CleanTop is a snapshot of the primary, in which statements and names of applications are cleaned.
func CleanTop(
	ctx context.Context, at cluster.Cluster, name string, statement, text func(string) string,
) (any, error) {
	shown, err := (&topOptions{Cluster: at}).snapshot(ctx, name)
	if err != nil {
		return nil, err
	}
	shown.clean(statement, text)
	return shown, nil
}

// snapshot asks an instance.
func (o *topOptions) snapshot(ctx context.Context, name string) (shownTop, error) {
	db, pod, err := o.Server(ctx, name, o.instance)
	if err != nil {
		return shownTop{}, err
	}
	database := o.database
	if database == "" {
		database = cluster.AppDatabase(db)
	}
	answer, err := o.Ask(ctx, pod, cluster.Question{
		Application: "kubectl toban top", Database: database, Script: topScript,
	})
	if err != nil {
		return shownTop{}, err
	}
	shown := shownTop{Namespace: db.Namespace, Name: db.Name, Instance: pod, Database: database}
	return shown, shown.read(answer)
}

// shownTop is a snapshot of a server.
type shownTop struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Instance  string `json:"instance"`
	// Database is the one that was asked for the statements.
	Database string `json:"database"`
	topServer
	// States are how many sessions of clients are in which state.
	States []topState `json:"states"`
	// Sessions are those that do something or hold a transaction open, the longest first; at most 30.
	Sessions []topSession `json:"sessions"`
	// Blocked are the sessions that wait for a lock of another, the longest first; at most 30.
	Blocked []topBlocked `json:"blocked"`
	// Statements are those that took most time in all, at most 10; nil where pg_stat_statements can't be read there.
	Statements []topStatement `json:"statements"`
}

// topServer is the server as a whole.
type topServer struct {
	// At is the server's clock, Role primary or standby.
	At   time.Time `json:"at"`
	Role string    `json:"role"`
	// Connections are those of clients, MaxConnections how many there may be.
	Connections    int `json:"connections"`
	MaxConnections int `json:"maxConnections"`
}

// topState is a state of sessions, as in pg_stat_activity.
type topState struct {
	State    string `json:"state"`
	Wait     string `json:"wait,omitempty"`
	Sessions int    `json:"sessions"`
}

// topSession is the session of a client.
type topSession struct {
	PID         int    `json:"pid"`
	User        string `json:"user,omitempty"`
	Database    string `json:"database,omitempty"`
	Application string `json:"application,omitempty"`
	Client      string `json:"client,omitempty"`
	State       string `json:"state,omitempty"`
	// Wait is what it waits for, as type:event.
	Wait string `json:"wait,omitempty"`
	// TransactionSeconds is how long its transaction is open, StatementSeconds how long the state lasts.
	TransactionSeconds float64 `json:"transactionSeconds,omitempty"`
	StatementSeconds   float64 `json:"statementSeconds,omitempty"`
	// Statement is the last one that it was given, or its beginning.
	Statement string `json:"statement,omitempty"`
}

// topBlocked is a session that waits for others.
type topBlocked struct {
	PID         int     `json:"pid"`
	WaitSeconds float64 `json:"waitSeconds"`
	// Lock is the mode that it wants, and of what.
	Lock      string `json:"lock,omitempty"`
	Statement string `json:"statement,omitempty"`
	// By are the sessions that it waits for.
	By []topSession `json:"by"`
}

// topStatement is a statement of pg_stat_statements.
type topStatement struct {
	User         string  `json:"user,omitempty"`
	Database     string  `json:"database,omitempty"`
	Calls        int64   `json:"calls"`
	TotalSeconds float64 `json:"totalSeconds"`
	MeanSeconds  float64 `json:"meanSeconds"`
	Rows         int64   `json:"rows"`
	Statement    string  `json:"statement"`
}

// read takes the answers to the script in: the server, states, sessions, who is blocked and, where they can be read,
// statements.
func (s *shownTop) read(answer []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(answer))
	for _, part := range []any{&s.topServer, &s.States, &s.Sessions, &s.Blocked} {
		if err := decoder.Decode(part); err != nil {
			return fmt.Errorf("understand the server's answer %.200q: %w", answer, err)
		}
	}
	if err := decoder.Decode(&s.Statements); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("understand the server's answer %.200q: %w", answer, err)
	}
	return nil
}

// clean has all statements and names of applications cleaned.
func (s *shownTop) clean(statement, text func(string) string) {
	sessions := func(list []topSession) {
		for i := range list {
			list[i].Statement = statement(list[i].Statement)
			list[i].Application = text(list[i].Application)
		}
	}
	sessions(s.Sessions)
	for i := range s.Blocked {
		s.Blocked[i].Statement = statement(s.Blocked[i].Statement)
		sessions(s.Blocked[i].By)
	}
	for i := range s.Statements {
		s.Statements[i].Statement = statement(s.Statements[i].Statement)
	}
}
