package psql

import (
	"cmp"
	"errors"
	"os"

	"github.com/spf13/cobra"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/postgres/sql"
)

type psqlOptions struct {
	cluster.Cluster
	instance       cluster.InstanceChoice
	user, database string
	// app says that the session begins as the application's role.
	app bool
}

// PSQL is `toban psql`: a session with the server of an instance.
func PSQL() *cobra.Command {
	var o psqlOptions
	c := &cobra.Command{
		Use:   "psql NAME [-- PSQL-ARGUMENT...]",
		Short: "Open a psql session with a SampleDB",
		Long: "Runs psql in the Pod of the primary, with your own rights in Kubernetes: you need the right to\n" +
			"create pods/exec. No password is needed, and none is read. Statements may come from the standard\n" +
			"input. The exit code is that of psql.\n\n" +
			"  kubectl toban psql shop\n" +
			"  echo 'SELECT 1' | kubectl toban psql shop\n" +
			"  kubectl toban psql shop --app -- -c 'SELECT * FROM orders'\n\n" +
			"Without --app and --user you are the superuser postgres, and a name without a schema is PostgreSQL's\n" +
			"own: write public.orders. With them the session begins as another role and has its rights, but SET\n" +
			"ROLE NONE makes it the superuser: they prevent mistakes, and protect nothing.",
		Args: func(c *cobra.Command, args []string) error {
			if named := args[:dash(c, args)]; len(named) != 1 {
				return errors.New("give the name of one SampleDB, and arguments of psql after --")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0], args[1:]) },
	}
	f := c.Flags()
	o.Reach(f)
	f.StringVar(&o.user, "user", "", "the role that the session begins as (default: the superuser postgres)")
	f.BoolVar(&o.app, "app", false, "begin as the application's role (spec.init.owner)")
	f.StringVarP(&o.database, "database", "d", "", "the database (default: that of the application)")
	f.BoolVar(&o.instance.Replica, "replica", false, "connect to a standby, which only reads")
	f.StringVar(&o.instance.Name, "instance", "", "connect to this instance, whatever its role")
	c.MarkFlagsMutuallyExclusive("replica", "instance")
	c.MarkFlagsMutuallyExclusive("app", "user")
	return c
}

// dash is how many arguments are before "--".
func dash(c *cobra.Command, args []string) int {
	if n := c.ArgsLenAtDash(); n >= 0 {
		return n
	}
	return len(args)
}

func (o *psqlOptions) run(c *cobra.Command, name string, args []string) (err error) {
	db, pod, err := o.Server(c.Context(), name, o.instance)
	if err != nil {
		return err
	}
	terminal, err := show.OpenTerminal(c.InOrStdin(), c.OutOrStdout())
	if err != nil {
		return err
	}
	if terminal != nil {
		defer func() { err = errors.Join(err, terminal.Close()) }()
	}
	return cluster.Execution{
		Pod: pod, Command: o.command(db, args, terminal != nil), In: c.InOrStdin(),
		Out: show.Passed(c.OutOrStdout(), terminal), Err: c.ErrOrStderr(), Terminal: terminal,
	}.Run(c.Context(), &o.Cluster)
}

// command is what runs in the container. Its environment has the folder of the socket and the superuser already. What a
// person types is not left there as a history.
func (o *psqlOptions) command(db *v1.SampleDB, args []string, terminal bool) []string {
	command := []string{"env", "PSQL_HISTORY=/dev/null", "PGAPPNAME=kubectl toban psql", PSQLOptions(o.role(db))}
	if terminal {
		command = append(command, "TERM="+cmp.Or(os.Getenv("TERM"), "xterm"))
	}
	command = append(command, "psql", "--dbname", o.on(db))
	return append(command, args...)
}

// PSQLOptions is the variable with what a person's session begins with that begins as a role. What somebody has set for
// the database or a role does not count, as in our own sessions. Of a name without a schema the superuser gets
// PostgreSQL's own and nothing else: who may create in another schema can make a function or an operator there that
// fits what a person types better than PostgreSQL's, and would have it run as the superuser. Another role finds what
// PostgreSQL's default finds.
func PSQLOptions(role string) string {
	own := map[string]string{}
	if role != naming.RoleSuperuser { // session_authorization has no effect there
		own["role"], own["search_path"] = role, `"$user", public`
	}
	settings := sql.Settings(naming.RoleSuperuser, own)
	// A primary whose volume gets full refuses writes by its default, until a person says otherwise.
	delete(settings, "default_transaction_read_only")
	return sql.OptionsVariable(settings)
}

// role is the one that the session begins as.
func (o *psqlOptions) role(db *v1.SampleDB) string {
	if o.app {
		return desired.AppRole(db)
	}
	return cmp.Or(o.user, naming.RoleSuperuser)
}

// on is the database.
func (o *psqlOptions) on(db *v1.SampleDB) string { return cmp.Or(o.database, cluster.AppDatabase(db)) }
