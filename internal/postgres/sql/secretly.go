package sql

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Unwritten are the settings of a session with which a server writes its statements down nowhere: neither in its log
// nor in statistics of statements. Only a superuser may set them. Those of extensions that are not there are
// placeholders.
var Unwritten = [][2]string{
	{"log_statement", "none"}, {"log_min_error_statement", "panic"}, {"log_parameter_max_length_on_error", "0"},
	{"log_min_duration_statement", "-1"}, {"log_min_duration_sample", "-1"}, {"log_transaction_sample_rate", "0"},
	{"debug_print_parse", "off"}, {"debug_print_rewritten", "off"}, {"debug_print_plan", "off"},
	// What a session does is in the log, too, where it breaks off, and where it is in a deadlock.
	{"track_activities", "off"},
	{"pg_stat_statements.track", "none"}, {"auto_explain.log_min_duration", "-1"}, {"pgaudit.log", "none"},
}

// Secretly does something in a superuser's session whose statements have a password or its verifier in them: the
// server writes none of them down. The session has begun no transaction, because whether a server logs all of one is
// decided at its beginning.
func Secretly(ctx context.Context, conn *pgx.Conn, do func() error) error {
	var hide, show strings.Builder
	for _, setting := range Unwritten {
		fmt.Fprintf(&hide, "set %s = %s;", setting[0], Literal(setting[1]))
		fmt.Fprintf(&show, "reset %s;", setting[0])
	}
	// A message of its own: a server decides about the whole of one before it runs it.
	if err := Do(ctx, conn, "keep a password out of the server's log", hide.String(),
		pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	failed := do()
	if err := Do(ctx, conn, "let the server log as before", show.String(),
		pgx.QueryExecModeSimpleProtocol); err != nil && failed == nil {
		return err
	}
	return failed
}
