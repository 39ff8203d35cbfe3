package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/naming"
)

// parts are the parts of a database that are to come back. The zero value is all that the SampleDB has.
type parts struct {
	database        string
	tables, schemas []string
	replace         bool
}

// some says that it is not all that the SampleDB has.
func (p parts) some() bool { return p.database != "" || len(p.tables) > 0 || len(p.schemas) > 0 }

// check is an error where what is asked for does not go together.
func (p parts) check(o *restoreToOptions) error {
	switch {
	case p.replace && !p.some():
		return errors.New("--replace goes with --table, --schema or --database")
	case !p.some():
		return nil
	case len(p.tables) > 0 && len(p.schemas) > 0:
		return errors.New("--table and --schema are two restores: give one of them")
	case o.into != "" || o.instances != 0 || o.size != "" || o.version != 0:
		return errors.New("--table, --schema and --database bring something back into NAME itself: without --into, " +
			"--instances, --size and --version")
	case o.to == toLatest && o.branch == 0:
		return errors.New("the latest is in the database: name an earlier moment with --to, or a backup with --backup")
	}
	return nil
}

// bringBack has parts of a database come back while the SampleDB serves.
func (r restoreTo) bringBack(ctx context.Context) error {
	if r.from.db == nil {
		return fmt.Errorf("the SampleDB %s is gone: make a new one of its backup with --into", r.from.name)
	}
	mode, p := v1.RestoreBeside, r.parts
	if p.replace {
		mode = v1.RestoreReplace
		fmt.Fprintf(r.out, "%s: what is restored takes the place of what is there. That is kept, under a name with "+
			"_before_.\n", r.from.name)
		if err := r.confirm(ctx); err != nil {
			return err
		}
	}
	wanted := &v1.DatabaseRestore{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: naming.DatabaseRestore(r.from.name, time.Now()),
		},
		Spec: v1.DatabaseRestoreSpec{
			SampleDB: r.from.name, Database: p.database, Tables: p.tables, Schemas: p.schemas,
			Target: r.target, Backup: r.backup, Mode: mode, Deadline: metav1.Duration{Duration: bringDeadline},
		},
	}
	if err := r.api.Create(ctx, wanted, client.FieldOwner("toban-cli")); err != nil {
		return fmt.Errorf("create the DatabaseRestore %s: %w", wanted.Name, err)
	}
	r.Subject = wanted
	fmt.Fprintf(r.out, "%s: restores %s as it was at %s, beside the database, which serves meanwhile\n",
		wanted.Name, r.from.name, r.moment())
	if !r.wait {
		return nil
	}
	return awaitBrought(ctx, r.out, r.api, wanted)
}

// bringDeadline is how long a DatabaseRestore may take by default.
const bringDeadline = 24 * time.Hour

// awaitBrought tells how far a DatabaseRestore is until it has ended. Its error is why it has failed.
func awaitBrought(ctx context.Context, out io.Writer, api client.Client, asked *v1.DatabaseRestore) error {
	left := "it goes on without being watched: kubectl get databaserestore " + asked.Name
	return await.RequestOf(api, asked, left).Await(ctx, out, func(now *v1.DatabaseRestore) (string, bool, error) {
		c := meta.FindStatusCondition(now.Status.Conditions, v1.ConditionComplete)
		switch {
		case c == nil:
			return "", false, nil
		case now.Status.CompletedAt != nil:
			return "", true, tellBrought(out, now, c)
		}
		return broughtLine(now, c.Message), false, nil
	})
}

// broughtLine says in a line how far it is.
func broughtLine(now *v1.DatabaseRestore, message string) string {
	line := fmt.Sprintf("%s: %s", now.Name, message)
	if p := now.Status.Progress; p != nil && p.Percent > 0 {
		line += fmt.Sprintf(" (%d%%, %d MiB/s)", p.Percent, p.Rate>>20)
	}
	return line
}

// tellBrought says what is there now, or why nothing is.
func tellBrought(out io.Writer, now *v1.DatabaseRestore, c *metav1.Condition) error {
	if c.Status != metav1.ConditionTrue {
		return fmt.Errorf("it is not brought back: %s: %s", c.Reason, c.Message)
	}
	for _, o := range now.Status.Objects {
		switch {
		case o.Kept != "":
			fmt.Fprintf(out, "%s: %s has its rows back; those of before are in %s\n", now.Name, o.Name, o.Kept)
		default:
			fmt.Fprintf(out, "%s: %s is there as %s, with %d rows\n", now.Name, o.Name, o.As, o.Rows)
		}
		if o.Compared {
			fmt.Fprintf(out, "  only in the restored one: %d rows; only in the present one: %d; different: %d\n",
				o.OnlyRestored, o.OnlyPresent, o.Different)
		}
		if o.Message != "" {
			fmt.Fprintf(out, "  %s\n", o.Message)
		}
	}
	return nil
}
