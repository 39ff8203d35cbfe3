package status

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"toban.dev/internal/cli/show"
)

// statementWidth is how much of a statement a line shows, in characters.
const statementWidth = 60

// write shows a snapshot to a person.
func (s shownTop) write(out io.Writer) error {
	return show.Table(out, "show the snapshot", func(w io.Writer) {
		fmt.Fprintf(w, "%s/%s: %s, %s, at %s: %d connections of %d\n", s.Namespace, s.Name, s.Instance, s.Role,
			s.At.UTC().Format(time.RFC3339), s.Connections, s.MaxConnections)
		fmt.Fprintln(w, "\nSESSIONS\tSTATE\tWAIT")
		for _, one := range s.States {
			fmt.Fprintf(w, "%d\t%s\t%s\n", one.Sessions, one.State, cmp.Or(one.Wait, "-"))
		}
		if len(s.Sessions) > 0 {
			fmt.Fprintln(w, "\nPID\tUSER\tDATABASE\tAPPLICATION\tCLIENT\tSTATE\tWAIT\tTRANSACTION\tFOR\tSTATEMENT")
		}
		for _, one := range s.Sessions {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", one.PID, one.User, one.Database,
				cmp.Or(one.Application, "-"), one.Client, one.State, cmp.Or(one.Wait, "-"),
				show.Span(one.TransactionSeconds), show.Span(one.StatementSeconds), oneLine(one.Statement))
		}
		s.writeBlocked(w)
		s.writeStatements(w)
	})
}

// writeBlocked shows who waits for whom.
func (s shownTop) writeBlocked(w io.Writer) {
	if len(s.Blocked) == 0 {
		fmt.Fprintln(w, "\nno session waits for a lock of another")
		return
	}
	fmt.Fprintln(w, "\nBLOCKED\tFOR\tLOCK\tSTATEMENT\tBY\tSTATE\tSTATEMENT OF THAT")
	for _, one := range s.Blocked {
		for _, by := range one.By {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\t%s\n", one.PID, show.Span(one.WaitSeconds), cmp.Or(one.Lock, "-"),
				oneLine(one.Statement), by.PID, by.State, oneLine(by.Statement))
		}
	}
}

// writeStatements shows which statements took most time.
func (s shownTop) writeStatements(w io.Writer) {
	if s.Statements == nil {
		fmt.Fprintf(w, "\nno statistics of statements: pg_stat_statements is not loaded, or its extension is not in "+
			"the database %s\n", s.Database)
		return
	}
	fmt.Fprintln(w, "\nTOTAL\tMEAN\tCALLS\tROWS\tUSER\tDATABASE\tSTATEMENT")
	for _, one := range s.Statements {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", show.Span(one.TotalSeconds), show.Span(one.MeanSeconds),
			one.Calls, one.Rows, one.User, one.Database, oneLine(one.Statement))
	}
}

// oneLine is the beginning of a statement in one line.
func oneLine(statement string) string { return show.OneLineOf(statement, statementWidth) }
