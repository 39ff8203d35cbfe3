package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

type undeleteOptions struct {
	cluster.Cluster
	backup, from, file string
	// store is a file that says where the archives are, image and account are those of the Pod that looks there.
	store, image, account string
	yes, wait             bool
}

// Undelete is `toban undelete`: it brings a deleted SampleDB back.
func Undelete() *cobra.Command {
	var o undeleteOptions
	c := &cobra.Command{
		Use:   "undelete [NAME]",
		Short: "Bring a deleted SampleDB back, or list what can be brought back",
		Long: "Without a name, lists the deleted SampleDBs that have a backup. With a name, creates that SampleDB\n" +
			"again, or the PostgreSQL that it belonged to: under the same name, with its spec, its rows, its roles\n" +
			"and their passwords. It is as it was when the last backup ended. If it was deleted without a last\n" +
			"backup, it has everything in its archive. What is made is shown first; on a terminal you confirm it.\n\n" +
			"To bring it back into another namespace, use --from. This needs an archive in an object store, and the\n" +
			"Secrets that spec.backup names. If the DatabaseBackups are gone too, because the namespace or the\n" +
			"cluster is gone, --store looks for backups in the object store itself: FILE is the manifest of a\n" +
			"SampleDB, or what stands in its spec.backup. A Pod in the namespace of --namespace looks, with the\n" +
			"Secrets that the file names. --file reads DatabaseBackups from a file (kubectl get databasebackups -o\n" +
			"yaml).",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.list(c.Context(), c.OutOrStdout())
			}
			return o.Act(c, func(out io.Writer) error { return o.run(c.Context(), c.InOrStdin(), out, args[0]) })
		},
	}
	f := c.Flags()
	o.Flags(f)
	f.StringVar(&o.backup, "backup", "", "the DatabaseBackup to bring it back from (default: the last one)")
	f.StringVar(&o.from, "from", "", "namespace in which it was (default: that of --namespace)")
	f.StringVar(&o.file, "file", "", "file with the DatabaseBackups, instead of those in the namespace")
	f.StringVar(&o.store, "store", "", "file that says in which object store to look for backups")
	f.StringVar(&o.image, "image", "", "image of the Pod that looks into the store (default: that of the operator)")
	f.StringVar(&o.account, "service-account", "", "ServiceAccount of that Pod, where the store knows it by that")
	f.BoolVar(&o.yes, "yes", false, "don't ask before it is made, also on a terminal")
	f.BoolVar(&o.wait, "wait", true, "wait until it takes writes")
	c.MarkFlagsMutuallyExclusive("store", "file")
	return c
}

// list shows what can be brought back.
func (o *undeleteOptions) list(ctx context.Context, out io.Writer) error {
	api, err := o.Connect()
	if err != nil {
		return err
	}
	all, unread, err := o.lost(ctx, api)
	if err != nil {
		return err
	}
	shown := shownLost{Namespace: o.origin(), Deleted: []deleted{}, Unread: unread}
	for _, l := range all {
		b := l.backup
		shown.Deleted = append(shown.Deleted, deleted{
			l.name, l.kind(), b.Status.CompletedAt, b.Status.ServerVersion, b.Status.Size, b.Name, l.note,
		})
	}
	return o.Output.Show(out, shown, shown.write)
}

// shownLost is what can be brought back of a namespace.
type shownLost struct {
	Namespace string    `json:"namespace"`
	Deleted   []deleted `json:"deleted"`
	// Unread is what could not be read in the store of --store.
	Unread []unread `json:"unread,omitempty"`
}

// deleted is a SampleDB that is gone and has a backup.
type deleted struct {
	Name string `json:"name"`
	// Kind is that of the object which comes back: SampleDB or PostgreSQL.
	Kind string `json:"kind"`
	// AsOf is when its last backup ended.
	AsOf *metav1.Time `json:"asOf,omitempty"`
	// Version is that of the server, Size of the data.
	Version string `json:"version,omitempty"`
	Size    string `json:"size,omitempty"`
	// Backup is the DatabaseBackup.
	Backup string `json:"backup"`
	// Note says what speaks against bringing it back.
	Note string `json:"note,omitempty"`
}

func (s shownLost) write(out io.Writer) error {
	if len(s.Deleted) == 0 {
		fmt.Fprintf(out, "No deleted SampleDB has a backup in namespace %s.\n%s", s.Namespace, unreadLines(s.Unread))
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tKIND\tAS OF\tVERSION\tSIZE\tBACKUP\tNOTE")
	for _, d := range s.Deleted {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			d.Name, d.Kind, show.At(d.AsOf), d.Version, d.Size, d.Backup, d.Note)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	fmt.Fprint(out, unreadLines(s.Unread))
	return nil
}

// origin is the namespace in which the SampleDB was.
func (o *undeleteOptions) origin() string {
	if o.from != "" {
		return o.from
	}
	return o.Namespace
}

// lost reads the backups and what is there, and says what is gone, and what could not be read.
func (o *undeleteOptions) lost(ctx context.Context, api client.Client) ([]lost, []unread, error) {
	has, err := o.backups(ctx, api)
	if err != nil {
		return nil, nil, err
	}
	var live v1.SampleDBList
	if err := api.List(ctx, &live, client.InNamespace(o.origin())); err != nil {
		return nil, nil, fmt.Errorf("list the SampleDBs of namespace %s: %w", o.origin(), err)
	}
	return findLost(has.backups, live.Items), has.unread, nil
}

// elsewhere says that the DatabaseBackups are none of the cluster.
func (o *undeleteOptions) elsewhere() bool { return o.file != "" || o.store != "" }

// backups are those of the namespace, of the file, or of the store.
func (o *undeleteOptions) backups(ctx context.Context, api client.Client) (stored, error) {
	switch {
	case o.file != "":
		all, err := readBackups(o.file, o.origin())
		return stored{backups: all}, err
	case o.store != "":
		return o.fromStore(ctx, api)
	}
	var all v1.DatabaseBackupList
	if err := api.List(ctx, &all, client.InNamespace(o.origin())); err != nil {
		return stored{}, fmt.Errorf("list the DatabaseBackups of namespace %s: %w", o.origin(), err)
	}
	return stored{backups: all.Items}, nil
}

// run brings one back.
func (o *undeleteOptions) run(ctx context.Context, in io.Reader, out io.Writer, name string) error {
	api, err := o.Connect()
	if err != nil {
		return err
	}
	if err := o.free(ctx, api, name); err != nil {
		return err
	}
	all, unread, err := o.lost(ctx, api)
	if err != nil {
		return err
	}
	own := ofName(unread, name)
	fmt.Fprint(out, unreadLines(own))
	asks := show.IsTerminal(in) && !o.yes
	if err := o.unsure(own, asks); err != nil {
		return err
	}
	from, err := choose(all, name, o.backup)
	if err != nil {
		return fmt.Errorf("%w in namespace %s", err, o.origin())
	}
	if err := o.reachable(ctx, api, from); err != nil {
		return err
	}
	u := undelete{undeleteOptions: o, api: api, in: in, out: out, asks: asks, from: from}
	return u.bringBack(ctx)
}

// free is an error where a SampleDB of the name is there.
func (o *undeleteOptions) free(ctx context.Context, api client.Client, name string) error {
	db, err := o.Read(ctx, api, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case db.DeletionTimestamp == nil:
		return fmt.Errorf("the SampleDB %s is there: to bring an earlier state of it back: kubectl toban restore %s "+
			"--to MOMENT", name, name)
	}
	words := "wait until it is gone"
	if c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionReady); c != nil {
		words += ": " + c.Message
	}
	return fmt.Errorf("the SampleDB %s is still being deleted; %s", name, words)
}

// reachable is an error where the archive can't be read from the namespace.
func (o *undeleteOptions) reachable(ctx context.Context, api client.Client, from lost) error {
	claim := from.backup.Status.Archive.Claim
	if claim == "" {
		return nil
	}
	if from.backup.Namespace != o.Namespace {
		return fmt.Errorf("the archive of %s lies on the volume %s in namespace %s, where no Pod of "+
			"another namespace reaches it: bring it back there, and move the data with pg_dump", from.name,
			claim, from.backup.Namespace)
	}
	err := api.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: claim}, &corev1.PersistentVolumeClaim{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the archive of %s was on the volume %s, which is gone", from.name, claim)
	}
	return nil // who may not look at volumes may bring back all the same
}

// undelete is one run.
type undelete struct {
	*undeleteOptions
	api client.Client
	in  io.Reader
	out io.Writer
	// asks says that somebody is there who confirms what is made.
	asks bool
	from lost
}

func (u *undelete) bringBack(ctx context.Context) error {
	object, err := u.object()
	if err != nil {
		return err
	}
	if err := u.confirmed(ctx, object); err != nil {
		return err
	}
	if err := u.api.Create(ctx, object, client.FieldOwner("toban-cli")); err != nil {
		return fmt.Errorf("create the %s %s: %w", u.from.kind(), object.GetName(), err)
	}
	u.Subject = object
	fmt.Fprintf(u.out, "%s: comes back from %s, which ended at %s\n",
		u.from.name, u.from.backup.Name, show.At(u.from.backup.Status.CompletedAt))
	if !u.wait {
		return nil
	}
	db, err := u.sampleDB(ctx)
	if err != nil {
		return err
	}
	if err := (&restoreWatch{api: u.api, asked: db}).await(ctx, u.out); err != nil {
		return err
	}
	return u.settle(ctx, object)
}

// confirmed shows what is made, and has a person confirm it: somebody else may have written the manifest.
func (u *undelete) confirmed(ctx context.Context, object client.Object) error {
	text, err := shownManifest(object)
	if err != nil {
		return err
	}
	fmt.Fprintf(u.out, "%s: the backup %s makes this %s in the namespace %s:\n%s",
		u.from.name, u.from.backup.Name, u.from.kind(), u.Namespace, text)
	if u.from.note != "" {
		fmt.Fprintf(u.out, "%s: %s\n", u.from.name, u.from.note)
	}
	if !u.asks {
		return nil
	}
	return show.ConfirmName(ctx, u.in, u.out, u.from.name)
}

// shownManifest is an object as a person would write it.
func shownManifest(object client.Object) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("show what is made: %w", err)
	}
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	text, err := yaml.Marshal(fields) // it writes control characters as \e and the like
	if err != nil {
		return nil, fmt.Errorf("show what is made: %w", err)
	}
	return text, nil
}

// object is what was there before, with what it is to begin with.
func (u *undelete) object() (client.Object, error) {
	b := u.from.backup
	object, err := desired.ReadManifest(b.Status.Manifest.Raw)
	if err == nil && (object.GetName() != u.from.name || object.GetNamespace() != b.Namespace) {
		err = fmt.Errorf("it is of %q in the namespace %q, not of %s in %s", object.GetName(), object.GetNamespace(),
			u.from.name, b.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("the manifest in the backup %s is refused: %w", b.Name, err)
	}
	object.SetNamespace(u.Namespace)
	from := u.restoreFrom()
	switch o := object.(type) {
	case *v1.SampleDB:
		o.Spec.RestoreFrom, o.Spec.Version = &from, ofBackup(o.Spec.Version, b)
	case *pgv1.PostgreSQL:
		o.Spec.RestoreFrom = &from
		if o.Spec.Version != nil {
			*o.Spec.Version = ofBackup(*o.Spec.Version, b)
		}
	}
	return object, nil
}

// ofBackup is the major version of a backup, where it is known. The backup may have been taken when the spec said
// another already: an upgrade was about to begin.
func ofBackup(spec int32, b *v1.DatabaseBackup) int32 {
	if major := desired.MajorOf(b.Status.ServerVersion); major > 0 {
		return int32(major) //nolint:gosec // PostgreSQL has no such version
	}
	return spec
}

// restoreFrom is the end of the backup that was named, or of a last one, since nothing was written after it. Else it is
// the end of the archive, which may have more.
func (u *undelete) restoreFrom() v1.RestoreSpec {
	b := u.from.backup
	if (u.backup != "" || u.from.final()) && !u.elsewhere() && b.Namespace == u.Namespace {
		return v1.RestoreSpec{Backup: b.Name}
	}
	out := v1.RestoreSpec{Archive: b.Status.Archive.DeepCopy()}
	if u.backup != "" && !u.from.final() {
		out.Target = &v1.RestoreTarget{LSN: b.Status.StopLSN}
	}
	return out
}

// sampleDB waits for the SampleDB, which the operator makes where it belongs to a PostgreSQL.
func (u *undelete) sampleDB(ctx context.Context) (*v1.SampleDB, error) {
	for {
		db, err := u.Read(ctx, u.api, u.from.name)
		if err == nil {
			return db, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(
				errors.New("it goes on without being watched: kubectl toban status "+u.from.name), err)
		case <-time.After(restorePoll):
		}
	}
}

// settle takes spec.restoreFrom away, which has been done: the spec is what it was before.
func (u *undelete) settle(ctx context.Context, object client.Object) error {
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/restoreFrom"}]`))
	if err := u.api.Patch(ctx, object, patch, client.FieldOwner("toban-cli")); err != nil {
		return fmt.Errorf("take spec.restoreFrom away, which is done: %w", err)
	}
	words := "with its rows, its roles and their passwords"
	if u.elsewhere() || u.Namespace != u.from.backup.Namespace {
		words += fmt.Sprintf("; that in the Secret %s is a new one where the namespace or the operator's root Secret "+
			"is another", naming.AppSecret(u.from.name))
	}
	fmt.Fprintf(u.out, "%s: is back, %s\n", u.from.name, words)
	return nil
}
