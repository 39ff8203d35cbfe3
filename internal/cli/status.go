package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	v1 "toban.dev/api/v1"
)

// Status is `toban status`: a SampleDB's status, for people.
func Status() *cobra.Command {
	var at cluster
	var output string
	c := &cobra.Command{
		Use:   "status NAME",
		Short: "Show the primary, the instances and the conditions of a SampleDB",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			api, err := at.connect()
			if err != nil {
				return err
			}
			db, err := at.read(c.Context(), api, args[0])
			if err != nil {
				return err
			}
			switch output {
			case "":
				return writeStatus(c.OutOrStdout(), db)
			case "json":
				return writeStatusJSON(c.OutOrStdout(), db)
			}
			return fmt.Errorf("--output must be json or nothing, not %q", output)
		},
	}
	at.flags(c.Flags())
	c.Flags().StringVarP(&output, "output", "o", "", "json for programs")
	return c
}

// writeStatus shows what the operator saw last; nobody else is asked.
func writeStatus(out io.Writer, db *v1.SampleDB) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	status := db.Status
	fmt.Fprintf(w, "%s/%s: %s, %s ready\n",
		db.Namespace, db.Name, cmp.Or(status.Phase, "not seen by the operator yet"), cmp.Or(status.Ready, "none"))
	fmt.Fprintln(w, primaryLine(status))
	fmt.Fprintln(w, "\nINSTANCE\tROLE\tREADY\tVOTER\tREASON\tMESSAGE")
	for _, i := range status.InstanceStatuses {
		fmt.Fprintf(w, "%s\t%s\t%t\t%t\t%s\t%s\n", i.Name, cmp.Or(i.Role, "-"), i.Ready, i.Voter, i.Reason, i.Message)
	}
	fmt.Fprintln(w, "\nCONDITION\tSTATUS\tREASON\tMESSAGE")
	for _, c := range status.Conditions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	writeFinish(w, status.Finish)
	writeWindows(w, status.Backup)
	writeScrub(w, status.Backup)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("show the status: %w", err)
	}
	return nil
}

// writeFinish shows what a change of the image has left to do in the databases.
func writeFinish(w io.Writer, f *v1.FinishStatus) {
	if f == nil {
		return
	}
	fmt.Fprintf(w, "\nafter the change of the image (%s): %s: %s\n", f.For, f.Step, f.Message)
	if f.Step == v1.FinishRunning && f.Total > 0 {
		fmt.Fprintf(w, "%d of %d done, at %s\n", f.Done, f.Total, f.Current)
	}
	for _, list := range [][]string{f.Duplicates, f.Failures, f.Left} {
		for _, words := range list {
			fmt.Fprintf(w, "left: %s\n", words)
		}
	}
}

// writeWindows shows what can be restored of which branch.
func writeWindows(w io.Writer, b *v1.BackupStatus) {
	if b == nil {
		return
	}
	if len(b.Windows) > 0 {
		fmt.Fprintln(w, "\nBRANCH\tCAN BE RESTORED FROM\tTO\tFROM LSN\tTO LSN")
	}
	for _, one := range b.Windows {
		latest, lsn := one.Latest, one.LatestLSN
		if latest == nil { // it goes on
			latest, lsn = b.Latest, b.ArchivedLSN
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", one.Branch, at(one.Earliest), at(latest), one.EarliestLSN, lsn)
	}
	writeFormer(w, b)
	for _, words := range []string{b.Retention, b.DeletionRefused} {
		if words != "" {
			fmt.Fprintf(w, "\nretention: %s\n", words)
		}
	}
}

// writeFormer shows what can be restored with former major versions.
func writeFormer(w io.Writer, b *v1.BackupStatus) {
	if len(b.Former) > 0 {
		fmt.Fprintln(w, "\nFORMER VERSION\tBRANCH\tCAN BE RESTORED FROM\tTO\tUNTIL\tARCHIVE")
	}
	for _, f := range b.Former {
		for _, one := range f.Windows {
			fmt.Fprintf(w, "PostgreSQL %d\t%d\t%s\t%s\t%s\t%s\n",
				f.Version, one.Branch, at(one.Earliest), at(one.Latest), at(f.Until), f.Path)
		}
		if len(f.Windows) == 0 {
			fmt.Fprintf(w, "PostgreSQL %d\t-\t-\t-\t%s\t%s\n", f.Version, at(f.Until), f.Path)
		}
		if f.Retention != "" {
			fmt.Fprintf(w, "\nretention of PostgreSQL %d: %s\n", f.Version, f.Retention)
		}
	}
}

// writeScrub shows how far the archive was read again. What is broken the condition Intact says.
func writeScrub(w io.Writer, b *v1.BackupStatus) {
	if b == nil || b.Scrub == nil {
		return
	}
	s := b.Scrub
	if s.At != nil {
		fmt.Fprintf(w, "\narchive read again: %d %% since %s; the last time, %s, %d bytes of %d\n",
			s.Percent, at(s.RoundStartedAt), at(s.At), s.Bytes, s.TotalBytes)
	}
	if s.Error != "" {
		fmt.Fprintf(w, "\nthe archive could not be read again: %s\n", s.Error)
	}
}

func primaryLine(status v1.SampleDBStatus) string {
	line := "primary: " + cmp.Or(status.Primary, "none")
	if status.Term > 0 {
		line += fmt.Sprintf(" (term %d)", status.Term)
	}
	if status.LastPrimary != "" {
		line += ", the last was " + status.LastPrimary
	}
	if status.Refusal != "" {
		line += "; none is promoted: " + status.Refusal
	}
	return line
}

// writeStatusJSON writes the status as it is, with whose it is.
func writeStatusJSON(out io.Writer, db *v1.SampleDB) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	err := e.Encode(struct {
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		Status    v1.SampleDBStatus `json:"status"`
	}{db.Namespace, db.Name, db.Status})
	if err != nil {
		return fmt.Errorf("show the status: %w", err)
	}
	return nil
}
