package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
)

// Status is `toban status`: a SampleDB's status, for people.
func Status() *cobra.Command {
	var at cluster.Cluster
	var ask bool
	c := &cobra.Command{
		Use:   "status NAME",
		Short: "Show the primary, the instances, the conditions and the servers of a SampleDB",
		Long: "Shows what the operator saw last, and asks the servers for the rest: connections, the oldest\n" +
			"transaction, the last checkpoint, wraparound, how far standbys are behind, and for whom WAL is\n" +
			"kept. They are asked by psql in their Pods, with your own rights in Kubernetes (create pods/exec) and\n" +
			"those of pg_monitor. What can't be asked is shown as unknown.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			api, db, err := at.Find(c.Context(), args[0])
			if err != nil {
				return err
			}
			shown := statusOf(db)
			if ask {
				shown.Servers = askServers(c.Context(), &at, api, db.Name)
			}
			text := func(out io.Writer) error { return writeStatus(out, db, shown.Servers) }
			return at.Output.Show(c.OutOrStdout(), shown, text)
		},
	}
	at.Flags(c.Flags())
	c.Flags().BoolVar(&ask, "servers", true, "ask the servers too, for 5s at most")
	return c
}

// Text is what a person is shown.
func Text(ctx context.Context, at *cluster.Cluster, api client.Reader, db *v1.SampleDB) (string, error) {
	var text strings.Builder
	err := writeStatus(&text, db, askServers(ctx, at, api, db.Name))
	return text.String(), err
}

// writeStatus shows what the operator saw last, and what the servers say now.
func writeStatus(out io.Writer, db *v1.SampleDB, servers []shownServer) error {
	return show.Table(out, "show the status", func(w io.Writer) {
		status := db.Status
		fmt.Fprintf(w, "%s/%s: %s, %s ready\n",
			db.Namespace, db.Name, cmp.Or(status.Phase, "not seen by the operator yet"), cmp.Or(status.Ready, "none"))
		fmt.Fprintln(w, primaryLine(status))
		fmt.Fprintln(w, "\nINSTANCE\tROLE\tREADY\tVOTER\tZONE\tREASON\tMESSAGE")
		for _, i := range status.InstanceStatuses {
			fmt.Fprintf(w, "%s\t%s\t%t\t%t\t%s\t%s\t%s\n",
				i.Name, cmp.Or(i.Role, "-"), i.Ready, i.Voter, cmp.Or(i.Zone, "-"), i.Reason, i.Message)
		}
		writeReaders(w, status.Readers)
		writeVolumes(w, db)
		writeServers(w, servers)
		fmt.Fprintln(w, "\nCONDITION\tSTATUS\tREASON\tMESSAGE")
		for _, c := range status.Conditions {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
		}
		writeUpgrade(w, status.Upgrade)
		writeStop(w, status.Stop)
		if r := status.Restart; r != nil && !r.Ended() {
			fmt.Fprintf(w, "\nrestart of %s since %s: %s\n", r.Asked, show.At(r.StartedAt), r.Message)
		}
		writeFinish(w, status.Finish)
		writeWindows(w, status.Backup)
		writeScrub(w, status.Backup)
		writeCopy(w, status.Backup)
	})
}

// writeReaders shows the readers.
func writeReaders(w io.Writer, r *v1.ReadersStatus) {
	if r == nil {
		return
	}
	fmt.Fprintf(w, "\nreaders: %d of %d serve reads\n", r.Ready, r.Desired)
	if len(r.Instances) > 0 {
		fmt.Fprintln(w, "READER\tREADY\tREASON\tMESSAGE")
	}
	for _, one := range r.Instances {
		fmt.Fprintf(w, "%s\t%t\t%s\t%s\n", one.Name, one.Ready, one.Reason, one.Message)
	}
}

// writeUpgrade shows how far an upgrade is, or which way back there is after it.
func writeUpgrade(w io.Writer, u *v1.UpgradeStatus) {
	if u == nil {
		return
	}
	fmt.Fprintf(w, "\nupgrade from PostgreSQL %d to %d: %s: %s\n", u.From, u.To, u.FullStep(), u.Message)
	if u.Sides != nil {
		fmt.Fprintf(w, "%s serves; the step began at %s\n", u.Sides.Serves, show.At(u.Sides.Since))
	}
	fmt.Fprintf(w, "the way back: %s\n", cmp.Or(u.WayBack, v1.WayBackNone))
}

// writeStop shows how far a stop is, or the start after it.
func writeStop(w io.Writer, s *v1.StopStatus) {
	if s == nil {
		return
	}
	fmt.Fprintf(w, "\nstop: %s since %s: %s\n", s.Step, show.At(s.Since), s.Message)
	if s.LSN != "" {
		fmt.Fprintf(w, "the WAL of %s ended at %s; the archive is %s, and goes up to %s\n",
			s.Primary, s.LSN, s.Archive, cmp.Or(s.ArchivedLSN, "nobody knows where"))
	}
	for _, name := range s.Behind {
		fmt.Fprintf(w, "not known to have all of it: %s\n", name)
	}
}

// writeVolumes shows how full the volumes of the instances are, and their size where that may differ from the spec.
func writeVolumes(w io.Writer, db *v1.SampleDB) {
	head := "\nVOLUME\tSIZE\tUSED\tFILLS A DAY BY\tFULL IN"
	for _, i := range db.Status.InstanceStatuses {
		if v := i.Volume; v != nil {
			fmt.Fprint(w, head)
			head = ""
			fmt.Fprintf(w, "\n%s\t%s\t%d %%\t%s\t%s", naming.ClaimOf(i.Name), v.Size, v.UsedPercent,
				cmp.Or(v.FillsPerDay, "not known yet"), fullIn(v))
		}
	}
	for _, i := range db.Status.InstanceStatuses {
		if i.WAL != "" {
			fmt.Fprintf(w, "\n%s\t%s\t%s", naming.WALClaimOf(i.Name), walSize(i.WAL), walUsed(i.WAL))
		}
	}
	if head == "" {
		fmt.Fprintln(w)
	}
	if storage := db.Status.Storage; storage != nil {
		fmt.Fprintf(w, "\nsize of the volumes: %s%s%s\n", storage.Size, upTo(db.Spec.Storage), grownAt(storage))
	}
}

// walSize and walUsed are the parts of what the status says of a WAL volume, such as "12 % of 9.7Gi; full in 3 days".
func walSize(text string) string {
	_, size, _ := strings.Cut(text, " of ")
	size, _, _ = strings.Cut(size, ";")
	return size
}

func walUsed(text string) string {
	used, rest, _ := strings.Cut(text, " of ")
	if _, soon, full := strings.Cut(rest, "; "); full {
		used += "\t\t" + strings.TrimPrefix(soon, "full in ")
	}
	return used
}

func fullIn(v *v1.VolumeStatus) string {
	if v.FullInDays == nil {
		return "-"
	}
	return fmt.Sprintf("%d days", *v.FullInDays)
}

// upTo says how far volumes grow by themselves.
func upTo(s v1.StorageSpec) string {
	if s.Grow == nil {
		return ""
	}
	return fmt.Sprintf(" (of the spec: %s; they grow by themselves up to %s)", s.Size, s.Grow.Limit)
}

func grownAt(s *v1.StorageStatus) string {
	if s.GrownAt == nil {
		return ""
	}
	return ", grown at " + show.At(s.GrownAt)
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
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", one.Branch, show.At(one.Earliest), show.At(latest), one.EarliestLSN, lsn)
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
				f.Version, one.Branch, show.At(one.Earliest), show.At(one.Latest), show.At(f.Until), f.Path)
		}
		if len(f.Windows) == 0 {
			fmt.Fprintf(w, "PostgreSQL %d\t-\t-\t-\t%s\t%s\n", f.Version, show.At(f.Until), f.Path)
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
			s.Percent, show.At(s.RoundStartedAt), show.At(s.At), s.Bytes, s.TotalBytes)
	}
	if s.Error != "" {
		fmt.Fprintf(w, "\nthe archive could not be read again: %s\n", s.Error)
	}
}

// writeCopy shows up to when the second store has a copy. What is wrong the condition Copied says.
func writeCopy(w io.Writer, b *v1.BackupStatus) {
	if b == nil || b.Copy == nil {
		return
	}
	c := b.Copy
	fmt.Fprintf(w, "\ncopy of the archive: in %s, with all until %s (%s); compared %s\n",
		c.Place, show.At(c.Until), cmp.Or(c.LSN, "-"), show.At(c.CheckedAt))
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

// shownStatus is a status as it is, with whose it is.
type shownStatus struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Status    v1.SampleDBStatus `json:"status"`
	// Servers is what the servers say, where they were asked.
	Servers []shownServer `json:"servers,omitempty"`
}

func statusOf(db *v1.SampleDB) shownStatus {
	return shownStatus{Namespace: db.Namespace, Name: db.Name, Status: db.Status}
}
