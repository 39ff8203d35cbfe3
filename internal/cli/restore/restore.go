package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/operator/desired"
)

type restoreToOptions struct {
	cluster.Cluster
	to, backup, into, size string
	instances, version     int32
	branch                 int64
	exclusive, yes, wait   bool
	parts                  parts
}

// RestoreTo is `toban restore`: it brings an earlier state back. What does that in a Pod is Restore.
func RestoreTo() *cobra.Command {
	var o restoreToOptions
	c := &cobra.Command{
		Use:   "restore NAME",
		Short: "Restore an earlier state of a SampleDB: into a new SampleDB, in place, or single tables",
		Long: "With --into, creates a new SampleDB from the archive of NAME, and does not change NAME. If NAME is\n" +
			"deleted already, --backup must name one of its DatabaseBackups. The new SampleDB has the same spec\n" +
			"except the Service, because two must not share a name outside.\n" +
			"Without --into, sets NAME itself back, after you have confirmed it. NAME serves until the data is\n" +
			"prepared.\n" +
			"With --table, --schema or --database, brings only these back, into NAME itself, which serves meanwhile: " +
			"under\nnames with _restored_ beside those that are there, or with --replace in their place.\n\n" +
			"--to is one of\n" +
			"  2026-11-20T03:15:00+09:00   a moment, with its time zone: what was committed until then is restored\n" +
			"  0/3000060                   a position in the WAL\n" +
			"  transaction:4711            the number of a transaction\n" +
			"  name:before-the-release     a point of pg_create_restore_point\n" +
			"  latest                      everything in the archive, or of --branch\n" +
			"Without --to, the database is as it was when the backup of --backup ended.\n\n" +
			"A restore in place leaves a branch of the WAL and begins another. --branch chooses a branch by its\n" +
			"number, which is shown before the restore begins. It is needed if more than one branch has the target\n" +
			"of --to, and to restore the end of a branch that was left.\n\n" +
			"After a major upgrade of NAME, a moment before it is restored with the former version of PostgreSQL, " +
			"so\nonly with --into: the new SampleDB gets that version. For another target than a moment, name the\n" +
			"version with --version.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.Act(c, func(out io.Writer) error { return o.run(c.Context(), c.InOrStdin(), out, args[0]) })
		},
	}
	f := c.Flags()
	o.Flags(f)
	f.StringVar(&o.to, "to", "", "up to where: see above")
	f.BoolVar(&o.exclusive, "exclusive", false, "end right before the moment, the position or the transaction")
	f.Int64Var(&o.branch, "branch", 0, "number of the branch of --to (default: the branch that has it)")
	f.StringVar(&o.backup, "backup", "", "the DatabaseBackup to begin with (default: the latest before --to)")
	f.StringVar(&o.into, "into", "", "name of the SampleDB to create")
	f.Int32Var(&o.instances, "instances", 0, "of the SampleDB to create (default: as NAME; 1 if NAME is gone)")
	f.StringVar(&o.size, "size", "",
		"of the volumes of the SampleDB to create, such as 20Gi (default: as NAME; required if NAME is gone)")
	f.Int32Var(&o.version, "version", 0,
		"major version of PostgreSQL of the archive to read (default: what NAME ran at the moment of --to)")
	f.StringArrayVar(&o.parts.tables, "table", nil,
		"bring only this table back, as SCHEMA.TABLE or TABLE; may be given several times")
	f.StringArrayVar(&o.parts.schemas, "schema", nil, "bring only this schema back; may be given several times")
	f.StringVar(&o.parts.database, "database", "",
		"the database of --table or --schema (default: that of the application); alone: bring all of it back")
	f.BoolVar(&o.parts.replace, "replace", false, "what --table, --schema or --database brings back takes the place "+
		"of what is there, which is kept under another name")
	f.BoolVar(&o.yes, "yes", false, "don't ask before something is replaced")
	f.BoolVar(&o.wait, "wait", true, "wait until it takes writes")
	return c
}

func (o *restoreToOptions) run(ctx context.Context, in io.Reader, out io.Writer, name string) error {
	if o.to == "" && o.backup == "" {
		return errors.New("say up to where: --to, or --backup for what a backup had when it ended, or both")
	}
	target, err := o.target()
	if err := errors.Join(err, o.parts.check(o)); err != nil {
		return err
	}
	api, err := o.Connect()
	if err != nil {
		return err
	}
	from, err := o.origin(ctx, api, name)
	if err != nil {
		return err
	}
	r := restoreTo{o, api, in, out, from, target}
	switch {
	case o.parts.some():
		return r.bringBack(ctx)
	case o.into != "":
		return r.beside(ctx)
	}
	return r.inPlace(ctx)
}

// CloneOf is the SampleDB that --into makes of another one, as it was at a moment; nothing is asked for.
func CloneOf(at cluster.Cluster, db *v1.SampleDB, into, to string) (*v1.SampleDB, error) {
	o := &restoreToOptions{Cluster: at, to: to, into: into}
	target, err := o.target()
	if err != nil {
		return nil, err
	}
	r := restoreTo{restoreToOptions: o, from: origin{name: db.Name, db: db, now: o.Now()}, target: target}
	spec, err := r.newSpec()
	if err != nil {
		return nil, err
	}
	return &v1.SampleDB{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "SampleDB"},
		ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: into},
		Spec:       spec,
	}, nil
}

// restoreTo is one run.
type restoreTo struct {
	*restoreToOptions
	api    client.Client
	in     io.Reader
	out    io.Writer
	from   origin
	target *v1.RestoreTarget
}

// target is what --to, --branch and --exclusive say; nil for the end, of the archive or of a backup.
func (o *restoreToOptions) target() (*v1.RestoreTarget, error) {
	target, err := parseMoment(o.to, o.exclusive)
	switch {
	case err != nil || o.branch == 0:
		return target, err
	case o.branch < 0:
		return nil, errors.New("--branch must be the number of a branch: kubectl toban status shows them")
	case o.to == "":
		return nil, errors.New("--branch says of which branch --to is: give --to too, as a moment or latest")
	case target == nil:
		target = &v1.RestoreTarget{}
	}
	target.Branch = o.branch
	return target, nil
}

// The forms of --to that are told by their looks.
var (
	lsnForm         = regexp.MustCompile(`^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$`)
	transactionForm = regexp.MustCompile(`^[0-9]{1,20}$`)
)

// toLatest is the --to of all there is in the archive.
const toLatest = "latest"

// parseMoment reads --to. It is nil for the end, of the archive or of a backup.
func parseMoment(text string, exclusive bool) (*v1.RestoreTarget, error) {
	target := &v1.RestoreTarget{Exclusive: exclusive}
	kind, value, _ := strings.Cut(text, ":")
	at, notTime := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "T", 1))
	switch {
	case text == "" || text == toLatest:
		if exclusive {
			return nil, errors.New("--exclusive goes with a moment, a position or a transaction")
		}
		return nil, nil //nolint:nilnil // no target is the end
	case notTime == nil:
		target.Time = at.Format(time.RFC3339Nano)
	case lsnForm.MatchString(text):
		target.LSN = text
	case kind == "transaction" && transactionForm.MatchString(value):
		target.Transaction = value
	case kind == "name" && value != "":
		target.Name = value
	default:
		return nil, fmt.Errorf("--to %q can't be understood: it must be a time with its zone such as "+
			"2026-11-20T03:15:00+09:00, a position such as 0/3000060, transaction:NUMBER, name:NAME, or latest", text)
	}
	return target, nil
}

// moment is up to where, for people.
func (r restoreTo) moment() string {
	words, t := "", r.target
	switch {
	case t == nil && r.to == "":
		return "the end of the backup " + r.backup
	case t == nil:
		return "the end of the archive"
	case t.Time != "":
		words = t.Time
	case t.LSN != "":
		words = "position " + t.LSN
	case t.Transaction != "":
		words = "transaction " + t.Transaction
	case t.Name != "":
		words = "the point " + strconv.Quote(t.Name)
	default:
		return fmt.Sprintf("the end of branch %d", t.Branch)
	}
	if t.Exclusive {
		words = "right before " + words
	}
	if t.Branch != 0 {
		words += fmt.Sprintf(" of branch %d", t.Branch)
	}
	return words
}

// beside creates a SampleDB that begins with what the archive has.
func (r restoreTo) beside(ctx context.Context) error {
	spec, err := r.newSpec()
	if err != nil {
		return err
	}
	as := ""
	if db := r.from.db; db != nil && spec.Version != r.runs() {
		as = fmt.Sprintf(", with PostgreSQL %d, which %s ran then", spec.Version, db.Name)
		if spec.Image != db.Spec.Image {
			as += fmt.Sprintf(" (not from spec.image %s, which is of another version)", db.Spec.Image)
		}
	}
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.into}, Spec: spec}
	fmt.Fprintf(r.out, "%s: %s\n", r.from.name, r.from.window())
	if err := r.api.Create(ctx, db, client.FieldOwner("toban-cli")); err != nil {
		return fmt.Errorf("create the SampleDB %s: %w", r.into, err)
	}
	r.Subject = db
	fmt.Fprintf(r.out, "%s: begins with %s as it was at %s%s\n", db.Name, r.from.name, r.moment(), as)
	if !r.wait {
		return nil
	}
	return (&restoreWatch{api: r.api, asked: db}).await(ctx, r.out)
}

// newSpec is that of the SampleDB to create.
func (r restoreTo) newSpec() (v1.SampleDBSpec, error) {
	if r.from.db == nil {
		return r.specOfBackup()
	}
	spec := *r.from.db.Spec.DeepCopy()
	if r.from.backup == nil && desired.Backup(r.from.db) == nil {
		return spec, fmt.Errorf("the SampleDB %s has no archive to restore from", r.from.name)
	}
	spec.Restore, spec.Service, spec.RestoreFrom = nil, v1.ServiceSpec{}, r.restoreFrom()
	version, former, err := r.major()
	if err != nil {
		return spec, err
	}
	if err := r.mayReach(former); err != nil {
		return spec, err
	}
	if former != nil && r.from.backup == nil {
		archive := desired.ArchiveReference(r.from.db)
		archive.Path = former.Path
		spec.RestoreFrom = &v1.RestoreSpec{Archive: &archive, Target: r.target}
	}
	ofVersion(&spec, version, r.runs())
	spec.Storage = desired.GrownStorage(r.from.db)
	spec.Storage = desired.WithSize(spec.Storage, cmp.Or(r.size, spec.Storage.Size))
	spec.Instances = cmp.Or(r.instances, spec.Instances)
	return spec, nil
}

// runs is the major version that the SampleDB runs.
func (r restoreTo) runs() int32 {
	if b := r.from.db.Status.Backup; b != nil && b.Version > 0 {
		return b.Version
	}
	return r.from.db.Spec.Version
}

// major is the major version of what is restored, and the former archive that has it, nil for the present one.
func (r restoreTo) major() (int32, *v1.FormerArchive, error) {
	b := r.from.db.Status.Backup
	if r.from.backup != nil {
		if major := desired.MajorOf(r.from.backup.Status.ServerVersion); major > 0 {
			return int32(major), nil, nil //nolint:gosec // it is from 15 to some tens
		}
		return r.runs(), nil, nil
	}
	var former *v1.FormerArchive
	switch at, isTime := desired.TargetTime(r.target); {
	case b == nil:
	case r.version != 0:
		former = desired.FormerOf(b, int(r.version))
	case isTime:
		former = desired.FormerAt(b, at)
	}
	switch {
	case former != nil:
		return former.Version, former, nil
	case r.version != 0 && r.version != r.runs():
		return 0, nil, fmt.Errorf("the SampleDB %s has no archive of PostgreSQL %d: kubectl toban status %s shows "+
			"what there is", r.from.name, r.version, r.from.name)
	}
	return r.runs(), nil, nil
}

// ofVersion makes a spec that of another major version than what runs: without what only the latter has.
func ofVersion(spec *v1.SampleDBSpec, version, runs int32) {
	spec.Version = version
	if version == runs {
		return
	}
	spec.Image = ""
	if spec.Backup != nil && version < 17 {
		spec.Backup.Incremental = nil
	}
}

// specOfBackup is what can be known of a SampleDB that is gone.
func (r restoreTo) specOfBackup() (v1.SampleDBSpec, error) {
	b := r.from.backup
	if err := r.mayReach(nil); err != nil {
		return v1.SampleDBSpec{}, err
	}
	major, _, _ := strings.Cut(b.Status.ServerVersion, ".")
	version, err := strconv.ParseInt(major, 10, 32)
	if err != nil {
		return v1.SampleDBSpec{}, fmt.Errorf(
			"the DatabaseBackup %s does not say of which version of PostgreSQL it is", b.Name)
	}
	if r.size == "" {
		return v1.SampleDBSpec{}, fmt.Errorf("the SampleDB %s is gone: say with --size how large a volume is to be. "+
			"The data takes %s", r.from.name, b.Status.Size)
	}
	archive := b.Status.Archive.DeepCopy()
	return v1.SampleDBSpec{
		Version: int32(version), Instances: cmp.Or(r.instances, 1), Storage: v1.StorageSpec{Size: r.size},
		Backup: &v1.BackupSpec{Store: archive.Store, Encryption: archive.Encryption}, RestoreFrom: r.restoreFrom(),
	}, nil
}

func (r restoreTo) restoreFrom() *v1.RestoreSpec {
	switch {
	case r.from.backup == nil:
		return &v1.RestoreSpec{SampleDB: r.from.name, Target: r.target}
	case r.to == toLatest: // a backup without a target is what it had when it ended
		return &v1.RestoreSpec{Archive: r.from.backup.Status.Archive.DeepCopy(), Target: r.target}
	}
	return &v1.RestoreSpec{Backup: r.from.backup.Name, Target: r.target}
}

// inPlace has a SampleDB go back, when that is confirmed.
func (r restoreTo) inPlace(ctx context.Context) error {
	if err := r.mayGoBack(); err != nil {
		return err
	}
	name := r.from.name
	fmt.Fprintf(r.out, "%s: %s\n", name, r.from.window())
	fmt.Fprintf(r.out, "%s: goes back to %s. What was written since will not be in the database any more.\n%s\n",
		name, r.moment(), r.whatHappens())
	if err := r.confirm(ctx); err != nil {
		return err
	}
	wanted := &v1.InPlaceRestore{
		ID: time.Now().UTC().Format("20060102-150405"), Confirm: name, Backup: r.backup,
		Target: r.target, Latest: r.target == nil && r.to == toLatest, Before: v1.BeforeKeep,
	}
	asked, err := changeSpec(ctx, r.api, r.from.db, func(now *v1.SampleDB) error {
		if id := underWay(now); id != "" {
			return fmt.Errorf("the restore %s is under way, which somebody else has asked for meanwhile", id)
		}
		now.Spec.Restore = wanted
		return nil
	})
	if err != nil {
		return fmt.Errorf("ask for the restore: %w", err)
	}
	r.Subject = asked
	fmt.Fprintf(r.out, "%s: the restore %s is asked for\n", name, wanted.ID)
	if !r.wait {
		return nil
	}
	return (&restoreWatch{api: r.api, asked: asked, id: wanted.ID}).await(ctx, r.out)
}

// whatHappens says what a restore in place does to what is there.
func (r restoreTo) whatHappens() string {
	if c := available(r.from.db); c != nil && c.Status == metav1.ConditionFalse {
		return "It takes no writes now (" + c.Reason + "): " + c.Message + ".\nData that is left on the volume which " +
			"gets the restored data stays there, as a folder before-…."
	}
	return "It serves while that is prepared; then its instances stop, and start with it. The data of now stays on " +
		"the primary's volume, as a folder before-…."
}

// available is the condition of a SampleDB, nil where it is not there.
func available(db *v1.SampleDB) *metav1.Condition {
	return meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAvailable)
}

// hasLatest says that a SampleDB is known to have everything that its archive has.
func hasLatest(db *v1.SampleDB) bool {
	archiving := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionArchiving)
	return meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionAvailable) &&
		(archiving == nil || archiving.Reason != v1.ReasonArchiveAhead)
}

// mayGoBack says what is in the way.
func (r restoreTo) mayGoBack() error {
	switch name, db := r.from.name, r.from.db; {
	case r.instances != 0 || r.size != "":
		return errors.New("--instances and --size are of a SampleDB that is created: they go with --into")
	case db == nil:
		return fmt.Errorf("the SampleDB %s is gone: make a new one of its backup with --into", name)
	case desired.Backup(db) == nil:
		return fmt.Errorf("the SampleDB %s has no archive to restore from", name)
	case r.to == toLatest && r.branch == 0 && r.backup != "":
		return errors.New("--to latest is the end of the archive, whatever backup it begins with: leave --backup out")
	case r.to == toLatest && r.branch == 0 && hasLatest(db):
		return fmt.Errorf("%s has the latest already: name an earlier moment, another branch with --branch, or "+
			"another SampleDB with --into", name)
	case underWay(db) != "":
		return fmt.Errorf("the restore %s is under way: %s", underWay(db), restoreLine(db))
	}
	version, _, err := r.major()
	if err == nil && version != r.runs() {
		err = fmt.Errorf("%s ran PostgreSQL %d then, and runs %d now, which a restore in place does not change: make "+
			"a new SampleDB with --into", r.from.name, version, r.runs())
	}
	return err
}

// changeSpec changes the spec of a SampleDB as it is now: its status changes all the time.
func changeSpec(
	ctx context.Context, api client.Client, of *v1.SampleDB, change func(now *v1.SampleDB) error,
) (*v1.SampleDB, error) {
	var changed *v1.SampleDB
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now := &v1.SampleDB{}
		if err := api.Get(ctx, client.ObjectKeyFromObject(of), now); err != nil {
			return err
		}
		if now.UID != of.UID {
			return fmt.Errorf("the SampleDB %s was deleted and made anew meanwhile", of.Name)
		}
		changed = now.DeepCopy()
		if err := change(changed); err != nil {
			return err
		}
		return api.Patch(ctx, changed, client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{}),
			client.FieldOwner("toban-cli"))
	})
	return changed, err
}

// underWay is the id of a restore in place that has not ended, "" for none.
func underWay(db *v1.SampleDB) string {
	if r := db.Spec.Restore; r != nil &&
		(db.Status.Restore == nil || db.Status.Restore.ID != r.ID || db.Status.Restore.CompletedAt == nil) {
		return r.ID
	}
	return ""
}

// confirm asks for the name, unless that was waived.
func (r restoreTo) confirm(ctx context.Context) error {
	if r.yes {
		return nil
	}
	return show.ConfirmName(ctx, r.in, r.out, r.from.name)
}
