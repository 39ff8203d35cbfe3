package backup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// backupDeadline is how long a backup may take by default.
const backupDeadline = 24 * time.Hour

type backupOptions struct {
	cluster.Cluster
	name     string
	deadline time.Duration
	keep     bool
	wait     bool
	// snapshot is whether a snapshot of the volume is cut, class its VolumeSnapshotClass.
	snapshot bool
	class    string
}

// Backup is `toban backup`: it takes a base backup.
func Backup() *cobra.Command {
	var o backupOptions
	c := &cobra.Command{
		Use:   "backup NAME",
		Short: "Take a base backup of a SampleDB",
		Long: "Creates a DatabaseBackup, and shows the progress of the backup. To stop " +
			"the backup, set its spec.cancel. Retention removes it when there are as many newer " +
			"ones that somebody has asked for as spec.backup.retention says, unless it is pinned (--keep).",
		Args: cobra.ExactArgs(1),
		RunE: o.Acts(o.run),
	}
	f := c.Flags()
	o.Flags(f)
	f.StringVar(&o.name, "name", "", "name of the DatabaseBackup (default: NAME with the time)")
	f.DurationVar(&o.deadline, "deadline", backupDeadline, "how long it may take")
	f.BoolVar(&o.keep, "keep", false, "pin it: retention never removes it (spec.keep)")
	f.BoolVar(&o.snapshot, "snapshot", false, "a snapshot of the volume, beside the archive (spec.method)")
	f.StringVar(&o.class, "snapshot-class", "", "its VolumeSnapshotClass (default: that of the volume's driver)")
	f.BoolVar(&o.wait, "wait", true, "wait until it has ended")
	return c
}

// Ask asks for a base backup, and does not wait. Which instance it is taken of is the operator's choice.
func Ask(ctx context.Context, at cluster.Cluster, out io.Writer, name, _ string) error {
	return (&backupOptions{Cluster: at, deadline: backupDeadline}).run(ctx, out, name)
}

func (o *backupOptions) run(ctx context.Context, out io.Writer, name string) error {
	api, db, err := o.Find(ctx, name)
	if err != nil {
		return err
	}
	if desired.Backup(db) == nil {
		return fmt.Errorf("the SampleDB %s has no archive: remove spec.backup.none first", name)
	}
	backup := &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: cmp.Or(o.name, naming.ScheduledBackup(name, time.Now())),
		},
		Spec: v1.DatabaseBackupSpec{SampleDB: name, Keep: o.keep, Deadline: metav1.Duration{Duration: o.deadline}},
	}
	if o.snapshot {
		backup.Spec.Method = v1.MethodVolumeSnapshot
	}
	backup.Spec.VolumeSnapshotClassName = o.class
	if err := api.Create(ctx, backup, client.FieldOwner("toban-cli")); err != nil {
		return fmt.Errorf("create the DatabaseBackup %s: %w", backup.Name, err)
	}
	o.Subject = backup
	if !o.wait {
		fmt.Fprintf(out, "%s: asked for\n%s", backup.Name, removedWhen(db, backup))
		return nil
	}
	if err := awaitBackup(ctx, out, api, backup); err != nil {
		return err
	}
	fmt.Fprint(out, removedWhen(db, backup))
	return nil
}

// removedWhen says when retention removes a backup that somebody has asked for, and what keeps it for longer; "" where
// nothing removes it. People expect that what they have made themselves stays.
func removedWhen(db *v1.SampleDB, b *v1.DatabaseBackup) string {
	if b.Spec.Keep || b.BySnapshot() {
		return ""
	}
	kept := desired.Backup(db).Retention
	words := fmt.Sprintf("there are %d newer ones that somebody has asked for", kept.Count)
	if kept.Days > 0 {
		words += fmt.Sprintf(" and no moment of the last %d days needs it", kept.Days)
	}
	return fmt.Sprintf("%s: retention removes it when %s. To keep it: kubectl patch databasebackup %s -n %s "+
		"--type=merge -p '{\"spec\":{\"keep\":true}}'\n", b.Name, words, b.Name, b.Namespace)
}

// awaitBackup tells how far a backup is until it has ended. Its error is that of the backup.
func awaitBackup(ctx context.Context, out io.Writer, api client.Client, asked *v1.DatabaseBackup) error {
	left := "the backup continues; to watch it: kubectl get databasebackup " + asked.Name
	return await.RequestOf(api, asked, left).Await(ctx, out, func(now *v1.DatabaseBackup) (string, bool, error) {
		if now.Status.CompletedAt == nil {
			return backupLine(now), false, nil
		}
		return backupLine(now), true, backupOutcome(now)
	})
}

// backupLine says in a line how far a backup is, "" while nothing is known.
func backupLine(b *v1.DatabaseBackup) string {
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
	if c == nil {
		return ""
	}
	line := fmt.Sprintf("%s: %s", b.Name, c.Message)
	if p := b.Status.Progress; p != nil && b.Status.CompletedAt == nil && b.Status.Done != "" {
		line += fmt.Sprintf(" (%s, %d MiB/s)", b.Status.Done, p.Rate>>20)
	}
	if b.Status.CompletedAt != nil && b.Status.Size != "" {
		line += fmt.Sprintf(" (%s%s, from %s)", b.Status.Size, stored(b), b.Status.Instance)
	}
	return line
}

// stored is what it takes in the archive, "" where it is not there.
func stored(b *v1.DatabaseBackup) string {
	if b.Status.StoredSize == "" {
		return ""
	}
	return ", " + b.Status.StoredSize + " stored"
}

func backupOutcome(b *v1.DatabaseBackup) error {
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
	if c == nil || c.Status == metav1.ConditionTrue {
		return nil
	}
	return fmt.Errorf("there is no backup: %s: %s", c.Reason, c.Message)
}
