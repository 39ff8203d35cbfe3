package restore

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
)

type verifyOptions struct {
	cluster.Cluster
	wait bool
}

// Verify is `toban verify`: it has a backup restored and checked.
func Verify() *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify NAME|BACKUP",
		Short: "Prove that a backup can be restored: restore it into a scratch Pod, and check it",
		Long: "Verifies the last complete backup of a SampleDB, or a DatabaseBackup by its name, now, and shows\n" +
			"what was found. The command fails if the backup can't be restored. It sets the annotation\n" +
			naming.AnnotationVerify + " of the DatabaseBackup, which the operator reads.",
		Args: cobra.ExactArgs(1),
		RunE: o.Acts(o.run),
	}
	f := c.Flags()
	o.Flags(f)
	f.BoolVar(&o.wait, "wait", true, "wait for the outcome")
	return c
}

func (o *verifyOptions) run(ctx context.Context, out io.Writer, name string) error {
	api, err := o.Connect()
	if err != nil {
		return err
	}
	backup, err := o.backup(ctx, api, name)
	if err != nil {
		return err
	}
	o.Subject = backup
	asked := time.Now().UTC().Format(time.RFC3339Nano)
	if err := cluster.Request(ctx, api, backup, naming.AnnotationVerify, asked); err != nil {
		return fmt.Errorf("ask for the verification of %s: %w", backup.Name, err)
	}
	if !o.wait {
		fmt.Fprintf(out, "%s: its verification is asked for\n", backup.Name)
		return nil
	}
	return awaitVerified(ctx, out, api, backup, asked)
}

// backup is the last complete one of the SampleDB of a name, or else the DatabaseBackup of that name.
func (o *verifyOptions) backup(ctx context.Context, api client.Client, name string) (*v1.DatabaseBackup, error) {
	db, err := o.Read(ctx, api, name)
	if apierrors.IsNotFound(err) {
		backup := &v1.DatabaseBackup{}
		key := types.NamespacedName{Namespace: o.Namespace, Name: name}
		if err := api.Get(ctx, key, backup); apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no SampleDB and no DatabaseBackup %s in namespace %s", name, o.Namespace)
		} else if err != nil {
			return nil, fmt.Errorf("read the DatabaseBackup %s: %w", name, err)
		}
		if !meta.IsStatusConditionTrue(backup.Status.Conditions, v1.ConditionComplete) {
			return nil, fmt.Errorf("the DatabaseBackup %s is not complete: there is nothing to verify yet", name)
		}
		return backup, nil
	}
	if err != nil {
		return nil, err
	}
	var list v1.DatabaseBackupList
	if err := api.List(ctx, &list, client.InNamespace(o.Namespace)); err != nil {
		return nil, fmt.Errorf("list the DatabaseBackups of namespace %s: %w", o.Namespace, err)
	}
	if last := lastComplete(list.Items, db); last != nil {
		return last, nil
	}
	return nil, fmt.Errorf("the SampleDB %s has no complete backup: kubectl toban backup %s", name, name)
}

// lastComplete is the backup in the archive of a SampleDB that ended last, nil where none is complete. That of an
// earlier SampleDB of the same name is none of it.
func lastComplete(all []v1.DatabaseBackup, db *v1.SampleDB) *v1.DatabaseBackup {
	var complete []*v1.DatabaseBackup
	for i := range all {
		if ofUse(&all[i], db.Name) != nil {
			continue
		}
		first, _ := naming.FirstArchivePath(all[i].Status.Archive.Path)
		if first == naming.ArchivePath(db.Namespace, db.Name, string(db.UID)) {
			complete = append(complete, &all[i])
		}
	}
	if len(complete) == 0 {
		return nil
	}
	return slices.MinFunc(complete, newestFirst)
}

// awaitVerified tells how far a verification is until it has ended, and then what was found. Its error is why the
// backup is not proved.
func awaitVerified(
	ctx context.Context, out io.Writer, api client.Client, backup *v1.DatabaseBackup, asked string,
) error {
	left := "it goes on without being watched: kubectl get databasebackup " + backup.Name
	return await.RequestOf(api, backup, left).Await(ctx, out, func(now *v1.DatabaseBackup) (string, bool, error) {
		if now.Annotations[naming.AnnotationVerify] != asked {
			return "", true, fmt.Errorf("somebody else asks for a verification of %s meanwhile", backup.Name)
		}
		c := meta.FindStatusCondition(now.Status.Conditions, v1.ConditionVerified)
		v := now.Status.Verification
		switch {
		case c == nil:
		case v != nil && v.Asked == asked && v.CompletedAt != nil:
			return "", true, tellVerified(out, now, c)
		case c.Reason != v1.ReasonVerified && c.Reason != v1.ReasonVerificationFailed:
			return fmt.Sprintf("%s: %s", now.Name, c.Message), false, nil
		}
		return "", false, nil
	})
}

// tellVerified shows the proof, or says why there is none.
func tellVerified(out io.Writer, now *v1.DatabaseBackup, c *metav1.Condition) error {
	v := now.Status.Verification
	for _, s := range v.Steps {
		if s.Skipped != "" {
			fmt.Fprintf(out, "%s: %s was not done: %s\n", now.Name, s.Name, s.Skipped)
			continue
		}
		fmt.Fprintf(out, "%s: %s took %s\n", now.Name, s.Name, s.Took.Duration)
	}
	for _, a := range v.Answers {
		if a.Problem != "" {
			fmt.Fprintf(out, "%s: the assertion %s: %s\n", now.Name, a.Name, a.Problem)
			continue
		}
		fmt.Fprintf(out, "%s: the assertion %s holds: %d rows, %q\n", now.Name, a.Name, a.Rows, a.Got)
	}
	for _, object := range v.Objects {
		fmt.Fprintf(out, "%s: missing, truncated or altered: %s\n", now.Name, object)
	}
	if c.Status != metav1.ConditionTrue {
		return fmt.Errorf("the backup %s is not proved: %s: %s", now.Name, c.Reason, c.Message)
	}
	last := ""
	if v.LastTransactionAt != nil {
		last = "; its last transaction was committed at " + show.At(v.LastTransactionAt)
	}
	fmt.Fprintf(out, "%s: verified: %s%s\n", now.Name, c.Message, last)
	return nil
}
