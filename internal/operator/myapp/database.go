package myapp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	toban "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/myapp"
	"toban.dev/internal/operator/index"
)

// database is what is known of what spec.database names.
type database struct {
	wanted, found bool
	// usable says that an application can connect, ready that all is as it should be. why says why one of them is not.
	usable, ready bool
	why           string
	// secret tells one content of its Secret from another, "" where that is not known.
	secret string
	// sampleDB is what a backup is taken of; noBackup is why none can be.
	sampleDB, noBackup string
}

func (r *Reconciler) observeDatabase(ctx context.Context, s *scope) error {
	want := s.app.Spec.Database
	if want == nil {
		return nil
	}
	s.seen.database.wanted = true
	if want.Kind == v1.DatabaseSampleDB {
		return r.observeSampleDB(ctx, s, want.Name)
	}
	return r.observePostgreSQL(ctx, s, want.Name)
}

func (r *Reconciler) observeSampleDB(ctx context.Context, s *scope, name string) error {
	db, err := index.Find(ctx, r.Client, s.app.Namespace, name, &toban.SampleDB{})
	if err != nil || db == nil {
		return err
	}
	d := &s.seen.database
	d.found, d.sampleDB, d.noBackup = true, name, noBackup(db)
	conditions := db.Status.Conditions
	d.usable = meta.IsStatusConditionTrue(conditions,
		toban.ConditionAvailable) && meta.IsStatusConditionTrue(conditions, toban.ConditionInitialized)
	d.ready, d.why = readiness("SampleDB", db, conditions)
	d.lacksPooler(s.app, db)
	return nil
}

// lacksPooler notes that an application wants to connect through a pooler that is not there.
func (d *database) lacksPooler(app *v1.MyApp, db *toban.SampleDB) {
	if app.Spec.Database.Pooler && db != nil && db.Spec.Pooler == nil {
		d.usable, d.ready = false, false
		d.why = fmt.Sprintf("SampleDB %s has no pooler: give it spec.pooler, or set database.pooler of this MyApp to "+
			"false", db.Name)
	}
}

func (r *Reconciler) observePostgreSQL(ctx context.Context, s *scope, name string) error {
	pg, err := index.Find(ctx, r.Client, s.app.Namespace, name, &pgv1.PostgreSQL{})
	if err != nil || pg == nil {
		return err
	}
	d := &s.seen.database
	d.found, d.secret = true, cmp.Or(pg.Status.ConnectionRevision, pg.Status.SecretRevision)
	d.ready, d.why = readiness("PostgreSQL", pg, pg.Status.Conditions)
	d.usable = d.ready
	server := pg.Status.Server
	switch {
	case server == nil:
		d.noBackup = fmt.Sprintf("PostgreSQL %s does not say yet which SampleDB it is on", name)
		return nil
	case server.Namespace != "" && server.Namespace != s.app.Namespace:
		d.noBackup = fmt.Sprintf("PostgreSQL %s is on SampleDB %s of namespace %s, of which no backup "+
			"can be taken from here: set migration.backup to false and have backups taken there", name,
			server.Name, server.Namespace)
		return nil
	}
	d.sampleDB = server.Name
	db, err := index.Find(ctx, r.Client, s.app.Namespace, server.Name, &toban.SampleDB{})
	if err != nil {
		return err
	}
	d.noBackup = noBackup(db)
	d.lacksPooler(s.app, db)
	return nil
}

// readiness reads a condition Ready, and why it is not true.
func readiness(kind string, object metav1.Object, conditions []metav1.Condition) (bool, string) {
	c := meta.FindStatusCondition(conditions, toban.ConditionReady)
	switch {
	case object.GetDeletionTimestamp() != nil:
		return false, fmt.Sprintf("%s %s is being deleted", kind, object.GetName())
	case c == nil:
		return false, fmt.Sprintf("%s %s is being set up", kind, object.GetName())
	case c.Status != metav1.ConditionTrue:
		return false, fmt.Sprintf("%s %s is not ready: %s", kind, object.GetName(), cmp.Or(c.Message, c.Reason))
	}
	return true, ""
}

// noBackup is why no backup can be taken of a SampleDB, "" where one can.
func noBackup(db *toban.SampleDB) string {
	switch {
	case db == nil:
		return "the SampleDB of the database is not there"
	case desired.Backup(db) == nil:
		return fmt.Sprintf("SampleDB %s has no archive (spec.backup.none): remove that, or set "+
			"migration.backup to false", db.Name)
	}
	return ""
}

// servers are the SampleDBs of the namespace that the Pods connect to. Some are not known while a PostgreSQL is not
// there, which says on which it lies.
type servers struct {
	names []string
	known bool
}

// observeServers finds those of the spec and, while an update is held back, of what runs.
func (r *Reconciler) observeServers(ctx context.Context, s *scope) error {
	references := []*v1.DatabaseReference{s.app.Spec.Database}
	if s.deployed != nil {
		references = append(references, s.deployed.Spec.Database)
	}
	s.seen.servers.known = true
	for _, reference := range references {
		name, known, err := r.server(ctx, s.app.Namespace, reference)
		if err != nil {
			return err
		}
		if !known {
			s.seen.servers.known = false
		}
		if name != "" && !slices.Contains(s.seen.servers.names, name) {
			s.seen.servers.names = append(s.seen.servers.names, name)
		}
	}
	slices.Sort(s.seen.servers.names)
	return nil
}

// server is the SampleDB of the namespace that a database lies on, "" where there is none.
func (r *Reconciler) server(
	ctx context.Context, namespace string, database *v1.DatabaseReference,
) (name string, known bool, err error) {
	switch {
	case database == nil:
		return "", true, nil
	case database.Kind == v1.DatabaseSampleDB:
		return database.Name, true, nil
	}
	pg, err := index.Find(ctx, r.Client, namespace, database.Name, &pgv1.PostgreSQL{})
	if err != nil || pg == nil {
		return "", false, err
	}
	server := desired.ServerOf(pg)
	if server.Namespace != "" {
		return "", true, nil
	}
	return server.Name, true, nil
}

func (r *Reconciler) observeBackup(ctx context.Context, s *scope) error {
	if s.job == nil || !s.app.Spec.Migration.Backup || s.seen.database.sampleDB == "" {
		return nil
	}
	name := myapp.MigrationBackup(s.app, s.job, s.seen.database.sampleDB).Name
	var err error
	s.seen.backup, err = index.Find(ctx, r.Client, s.app.Namespace, name, &toban.DatabaseBackup{})
	return err
}
