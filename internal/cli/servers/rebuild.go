package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/volumes"
)

type rebuildOptions struct {
	await.Watched
	instance string
	// former is the claim that is deleted.
	former types.UID
}

// Rebuild is `toban rebuild`: it has a standby copy all data anew, onto a new volume.
func Rebuild() *cobra.Command {
	var o rebuildOptions
	c := &cobra.Command{
		Use:   "rebuild INSTANCE",
		Short: "Have a standby copy all data from the primary anew, onto a new volume",
		Long: "Deletes the volume claim and the Pod of a standby. Kubernetes makes both anew, where there is room\n" +
			"now, and the instance copies the data of the primary. Writes go on. It is refused unless every other\n" +
			"instance is ready: while it copies, the instance has no vote and acknowledges no commit.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.instance = args[0]
			return o.Act(c, func(out io.Writer) error { return o.run(c.Context(), out) })
		},
	}
	o.Flags(c.Flags(), "wait until the instance is ready and has its vote again", 30*time.Minute)
	return c
}

func (o *rebuildOptions) run(ctx context.Context, out io.Writer) error {
	name := naming.ClusterOf(o.instance)
	if name == "" {
		return fmt.Errorf("%s is not the name of an instance, such as shop-2", o.instance)
	}
	api, db, err := o.Find(ctx, name)
	if err != nil {
		return err
	}
	if err := rebuildRefused(db, o.instance); err != nil {
		return err
	}
	if err := o.removeInstance(ctx, api, db); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: the volume claim %s and the Pod are deleted; they are made anew\n", o.instance,
		naming.ClaimOf(o.instance))
	if !o.Wait {
		return nil
	}
	return o.await(ctx, out, api, db)
}

// rebuildRefused says why a standby may not lose its data now, nil if it may: all others must have theirs.
func rebuildRefused(db *v1.SampleDB, instance string) error {
	var names []string
	var unready error
	found := false
	for _, i := range db.Status.InstanceStatuses {
		names = append(names, i.Name)
		found = found || i.Name == instance
		if i.Name != instance && !i.Ready && unready == nil {
			unready = fmt.Errorf("%s is not ready (%s): %s may have the last copy of commits; wait until every other "+
				"instance is ready", i.Name, i.Message, instance)
		}
	}
	switch {
	case !found:
		return fmt.Errorf("there is no instance %s: there are %s", instance, strings.Join(names, ", "))
	case db.Status.Stop != nil:
		return fmt.Errorf("the SampleDB %s is stopped, or is about to be or to start: %s", db.Name,
			db.Status.Stop.Message)
	case db.Annotations[naming.AnnotationRestart] != "":
		return fmt.Errorf("a restart of %s is under way: wait for its end", db.Name)
	case db.Status.Upgrade.Closed():
		return fmt.Errorf("an upgrade of %s is under way: wait for its end", db.Name)
	case db.Status.Restore != nil && db.Status.Restore.CompletedAt == nil:
		return fmt.Errorf("a restore of %s is under way: wait for its end", db.Name)
	case db.Status.Primary == "":
		return fmt.Errorf("no instance takes writes: %s may have the last copy of commits. "+
			"`kubectl toban status %s` says what is wrong", instance, db.Name)
	case db.Status.Primary == instance:
		return fmt.Errorf("%s is the primary: `kubectl toban switchover %s` first", instance, db.Name)
	}
	return unready
}

// setAsideOn fails where the volume of an instance has former data, which is nowhere else.
func setAsideOn(db *v1.SampleDB, instance string, claim *corev1.PersistentVolumeClaim) error {
	restored := ""
	if r := db.Status.Restore; r != nil && r.CompletedAt != nil {
		restored = r.ID
	}
	aside := volumes.DataAside(db, instance, restored, claim)
	if aside.What == "" {
		return nil
	}
	return fmt.Errorf("%s: the volume of %s has %s, and nobody else has it. %s; or copy it from there first",
		v1.ReasonDataSetAside, instance, aside.What, aside.Until)
}

// removeInstance deletes the claim and the Pod of the instance. The claim goes when the Pod is gone, and only then do
// Kubernetes' controllers make new ones.
func (o *rebuildOptions) removeInstance(ctx context.Context, api client.Client, db *v1.SampleDB) error {
	claim, pod := &corev1.PersistentVolumeClaim{}, &corev1.Pod{}
	err := api.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: naming.ClaimOf(o.instance)}, claim)
	if err != nil {
		return fmt.Errorf("read the volume claim: %w", err)
	}
	if err := setAsideOn(db, o.instance, claim); err != nil {
		return err
	}
	o.former = claim.UID
	wal := &corev1.PersistentVolumeClaim{}
	wal.Namespace, wal.Name = o.Namespace, naming.WALClaimOf(o.instance)
	if err := client.IgnoreNotFound(api.Delete(ctx, wal)); err != nil {
		return fmt.Errorf("delete the claim of the WAL volume: %w", err)
	}
	if err := api.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); err != nil {
		return fmt.Errorf("delete the volume claim: %w", err)
	}
	err = api.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.instance}, pod)
	if err == nil {
		err = api.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Pod: %w", err)
	}
	return nil
}

// await shows what the instance does until it is ready, and its vote counts again, on another volume.
func (o *rebuildOptions) await(ctx context.Context, out io.Writer, api client.Client, before *v1.SampleDB) error {
	shown := ""
	late := fmt.Sprintf("%s is not ready after %s; it goes on copying. `kubectl toban status %s` says how far it is",
		o.instance, o.Timeout, before.Name)
	return o.Watch(ctx, api, before, late, func(db *v1.SampleDB) (bool, error) {
		of := func(i v1.InstanceStatus) bool { return i.Name == o.instance }
		at := slices.IndexFunc(db.Status.InstanceStatuses, of)
		if at < 0 {
			return true, errors.New("the instance was scaled away meanwhile")
		}
		i := db.Status.InstanceStatuses[at]
		if i.Message != shown {
			shown = i.Message
			fmt.Fprintf(out, "%s: %s\n", o.instance, i.Message)
		}
		if !i.Ready || !i.Voter {
			return false, nil
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := api.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: naming.ClaimOf(o.instance)}, claim)
		if err != nil || claim.UID == o.former || claim.Status.Phase != corev1.ClaimBound {
			return false, nil //nolint:nilerr // it is made anew, or the API is away for a moment: it is looked at again
		}
		fmt.Fprintf(out, "%s: is ready, with a new copy of the data, and its vote counts\n", o.instance)
		return true, nil
	})
}
