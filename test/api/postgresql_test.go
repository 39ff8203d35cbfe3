package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/postgresql"
	"toban.dev/internal/passwords"
	"toban.dev/internal/postgres/database"
	"toban.dev/internal/protocol"
)

// databases stands for the agent of a primary: it remembers what is declared.
type databases struct {
	mu       sync.Mutex
	requests []protocol.DatabaseRequest
	refusal  *database.Refusal
	err      error
}

func (d *databases) Database(
	_ context.Context, _ types.UID, _ string, _ protocol.Config, request protocol.DatabaseRequest,
) (protocol.DatabaseResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, request)
	if d.refusal == nil && request.Declared.Owner.Password == nil && len(d.requests) == 1 {
		return protocol.DatabaseResult{Refusal: &database.Refusal{Reason: database.NoPassword}}, nil
	}
	return protocol.DatabaseResult{Refusal: d.refusal}, d.err
}

func (d *databases) last() protocol.DatabaseRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.requests) == 0 {
		return protocol.DatabaseRequest{}
	}
	return d.requests[len(d.requests)-1]
}

// pgWorld is a world with a reconciler of PostgreSQLs.
type pgWorld struct {
	*world
	pgs       *postgresql.Reconciler
	databases *databases
	found     map[string]passwords.Found
	// told has one for each time that the controller was told of a changed Secret.
	told chan struct{}
}

func newPGWorld(t *testing.T) *pgWorld {
	t.Helper()
	return pgWorldIn(newWorld(t))
}

// pgWorldIn is that of a world.
func pgWorldIn(w *world) *pgWorld {
	pgs := &pgWorld{world: w, databases: &databases{}, found: map[string]passwords.Found{
		"foodb-password": {Password: "mypassword"},
	}}
	pgs.restart()
	return pgs
}

// restart starts the operator anew, with nothing in memory.
func (w *pgWorld) restart() {
	w.Helper()
	follower, told := w.follower("foodb")
	w.told = told
	r := w.reconciler
	w.pgs = &postgresql.Reconciler{Client: r.Client, Reader: r.Reader, Databases: w.databases, Secrets: follower,
		Credentials: r.Credentials, Settings: r.Settings, Events: r.Events, Now: func() time.Time { return w.now }}
}

// foodb is the PostgreSQL of the documentation, changed by modifiers.
func (w *pgWorld) foodb(modify ...func(*pgv1.PostgreSQL)) *pgv1.PostgreSQL {
	pg := &pgv1.PostgreSQL{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "foodb"},
		Spec:       pgv1.PostgreSQLSpec{DB: "foo", User: "foo", Password: "foodb-password"},
	}
	for _, m := range modify {
		m(pg)
	}
	return pg
}

func onShared(pg *pgv1.PostgreSQL) { pg.Spec.Server = &pgv1.ServerReference{Name: "shared"} }

// step reconciles once, and plays the server and the Pod that reads the passwords.
func (w *pgWorld) step(pg *pgv1.PostgreSQL) *pgv1.PostgreSQL {
	w.Helper()
	w.now = w.now.Add(time.Second)
	key := client.ObjectKeyFromObject(pg)
	for settled := false; !settled; _, settled = w.pgs.Secrets.Versions(key) {
		_, err := w.pgs.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
		w.must(err)
		time.Sleep(time.Millisecond) // for the watch, of which the next round is told
	}
	_, err := w.pgs.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	w.must(err)
	w.playPasswords()
	now := &pgv1.PostgreSQL{}
	err = w.api.Get(w.Context(), client.ObjectKeyFromObject(pg), now)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return now
}

func (w *pgWorld) steps(pg *pgv1.PostgreSQL, n int) *pgv1.PostgreSQL {
	w.Helper()
	for range n {
		pg = w.step(pg)
	}
	return pg
}

// playPasswords is the kubelet: it runs the init container of each Job that has no Pod yet, and removes the
// Pods of Jobs that are gone.
func (w *pgWorld) playPasswords() {
	w.Helper()
	var jobs batchv1.JobList
	w.must(w.api.List(w.Context(), &jobs, client.InNamespace(w.namespace),
		client.MatchingLabels{naming.LabelComponent: naming.ComponentPasswords}))
	for i := range jobs.Items {
		job := &jobs.Items[i]
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + "-" + string(job.UID)[:5],
				Labels: job.Spec.Template.Labels, OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
				}},
			Spec: job.Spec.Template.Spec,
		}
		err := w.api.Create(w.Context(), pod)
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		w.must(err)
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
			{Name: naming.ContainerPasswords, State: w.telling(job)},
		}
		w.must(w.api.Status().Update(w.Context(), pod))
	}
}

// telling is how a container ends that has told what is in the Secrets.
func (w *pgWorld) telling(job *batchv1.Job) corev1.ContainerState {
	w.Helper()
	command := job.Spec.Template.Spec.InitContainers[0].Command
	found := map[string]passwords.Found{}
	for _, mount := range job.Spec.Template.Spec.InitContainers[0].VolumeMounts {
		if name, ok := strings.CutPrefix(mount.MountPath, naming.PathPasswords+"/"); ok {
			found[name] = passwords.Found{Problem: passwords.SecretMissing}
			if there, ok := w.found[name]; ok {
				found[name] = there
			}
		}
	}
	message, err := passwords.Seal(command[len(command)-1], found)
	w.must(err)
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}
}

// changed ends the watching container of the passwords' Pod, as it does when a Secret has changed.
func (w *pgWorld) changed() {
	w.Helper()
	var pods corev1.PodList
	w.must(w.api.List(w.Context(), &pods, client.InNamespace(w.namespace),
		client.MatchingLabels{naming.LabelComponent: naming.ComponentPasswords}))
	for i := range pods.Items {
		pod := &pods.Items[i]
		job := &batchv1.Job{}
		if !w.find(metav1.GetControllerOf(pod).Name, job) || job.UID != metav1.GetControllerOf(pod).UID {
			continue
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerChanges, State: w.telling(job)}}
		w.must(w.api.Status().Update(w.Context(), pod))
	}
}

// collect is the garbage collector: it deletes what belongs to revisions that are gone.
func (w *pgWorld) collect() {
	w.Helper()
	secret := &corev1.Secret{}
	if !w.find(naming.AppSecret("foodb"), secret) {
		return
	}
	if owner := metav1.GetControllerOf(secret); owner != nil && !w.find(owner.Name, &appsv1.ControllerRevision{}) {
		w.must(w.api.Delete(w.Context(), secret))
	}
}

// running plays a SampleDB until its primary takes writes.
func (w *pgWorld) running(name string) *v1.SampleDB {
	w.Helper()
	db := &v1.SampleDB{}
	w.must(w.api.Get(w.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, db))
	for range 5 {
		db = w.reconcile(db)
		w.playCluster(db)
	}
	return db
}

func (w *pgWorld) wants(pg *pgv1.PostgreSQL, reason string) {
	w.Helper()
	c := meta.FindStatusCondition(pg.Status.Conditions, pgv1.ConditionReady)
	if c == nil || c.Reason != reason || (c.Status == metav1.ConditionTrue) != (reason == pgv1.ReasonReady) {
		w.Fatalf("Ready is %+v, want the reason %s", c, reason)
	}
}

func (w *pgWorld) update(pg *pgv1.PostgreSQL, f func(*pgv1.PostgreSQL)) {
	w.Helper()
	now := &pgv1.PostgreSQL{}
	w.must(w.api.Get(w.Context(), client.ObjectKeyFromObject(pg), now))
	f(now)
	w.must(w.api.Update(w.Context(), now))
}

func TestAPostgreSQLGetsAServerOfItsOwn(t *testing.T) {
	w := newPGWorld(t)
	pg := w.foodb()
	w.must(w.api.Create(t.Context(), pg))
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonServerNotReady)
	db := w.running("foodb")
	if !metav1.IsControlledBy(db, pg) || db.Spec.Service.Type != corev1.ServiceTypeNodePort ||
		desired.DeletionPolicy(db) != v1.DeletionSnapshot || !desired.OnVolume(db) {
		t.Errorf("the server is not as it should be: %+v", db.Spec)
	}
	if w.find(naming.AppSecret("foodb"), &corev1.Secret{}) {
		t.Error("the server has made a Secret for an application that is not its own")
	}
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonReady)
	asked := w.databases.last().Declared
	if !asked.Exclusive || asked.Name != "foo" || asked.Owner.Name != "foo" || asked.Owner.Password == nil ||
		*asked.Owner.Password != "mypassword" {
		t.Errorf("declared %+v", asked)
	}
	secret := &corev1.Secret{}
	if !w.find("foodb-app", secret) || string(secret.Data["password"]) != "mypassword" ||
		!strings.Contains(string(secret.Data["uri"]), "foodb."+w.namespace) {
		t.Errorf("the Secret for applications is %q", secret.Data)
	}
	w.writes.take()
	w.steps(pg, 3)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes %q", writes)
	}
}

func TestThePodsOfAPostgreSQLSayWhetherTheyServe(t *testing.T) {
	w := newPGWorld(t)
	pg := w.ready()
	pod := &corev1.Pod{}
	if !w.find("foodb-0", pod) || pod.Labels["name"] != "foodb" || pod.Labels["appReady"] != "ok" {
		t.Errorf("the labels of the Pod are %v", pod.Labels)
	}
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	w.must(w.api.Status().Update(t.Context(), pod))
	pg = w.step(pg)
	w.wants(pg, pgv1.ReasonServerNotReady) // who waits for Ready must be able to connect then
	if w.find("foodb-0", pod); pod.Labels["appReady"] != "" {
		t.Error("a Pod that is not ready has the label")
	}
}

func TestEitherOrderOfASecretAndItsPostgreSQL(t *testing.T) {
	w := newPGWorld(t)
	delete(w.found, "foodb-password")
	pg := w.foodb()
	w.must(w.api.Create(t.Context(), pg))
	pg = w.step(pg)
	w.running("foodb")
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonSecretNotFound)
	w.found["foodb-password"] = passwords.Found{Password: "mypassword"}
	pg = w.steps(pg, 10)
	w.wants(pg, pgv1.ReasonReady)
}

func TestASecretWithoutAPasswordIsSaidSo(t *testing.T) {
	for problem, reason := range map[passwords.Problem]string{
		passwords.SecretMissing: pgv1.ReasonSecretNotFound, passwords.KeyMissing: pgv1.ReasonPasswordInvalid,
		passwords.Empty: pgv1.ReasonPasswordInvalid, passwords.Malformed: pgv1.ReasonPasswordInvalid,
		passwords.TooLong: pgv1.ReasonPasswordInvalid,
	} {
		t.Run(string(problem), func(t *testing.T) {
			w := newPGWorld(t)
			w.found["foodb-password"] = passwords.Found{Problem: problem}
			pg := w.foodb()
			w.must(w.api.Create(t.Context(), pg))
			w.wants(w.steps(pg, 3), reason)
		})
	}
}

func TestAChangedPasswordIsAppliedAndTheSecretMadeAnew(t *testing.T) {
	w := newPGWorld(t)
	pg := w.ready()
	w.found["foodb-password"] = passwords.Found{Password: "another"}
	w.changed()
	pg = w.step(pg)
	if got := w.databases.last().Declared.Owner.Password; got == nil || *got != "another" {
		t.Fatalf("the password declared is %v", got)
	}
	w.wants(pg, pgv1.ReasonWritingSecret) // the former one is in the way
	w.collect()
	pg = w.step(pg)
	w.wants(pg, pgv1.ReasonReady)
	secret := &corev1.Secret{}
	if !w.find("foodb-app", secret) || string(secret.Data["password"]) != "another" {
		t.Errorf("the Secret for applications has the password %q", secret.Data["password"])
	}
	w.steps(pg, 2)
	if strings.Contains(strings.Join(w.writes.take(), " "), "another") {
		t.Error("the password is in a request's path")
	}
}

// ready is foodb with a server of its own, ready.
func (w *pgWorld) ready(modify ...func(*pgv1.PostgreSQL)) *pgv1.PostgreSQL {
	w.Helper()
	pg := w.foodb(modify...)
	w.must(w.api.Create(w.Context(), pg))
	pg = w.step(pg)
	w.running("foodb")
	pg = w.steps(pg, 3)
	w.wants(pg, pgv1.ReasonReady)
	return pg
}

func TestAPasswordThatCannotBeReadAnyMoreChangesNothing(t *testing.T) {
	w := newPGWorld(t)
	pg := w.ready()
	delete(w.found, "foodb-password")
	w.changed()
	pg = w.step(pg)
	w.wants(pg, pgv1.ReasonSecretNotFound)
	if got := w.databases.last().Declared.Owner.Password; got != nil {
		t.Errorf("declared the password %q", *got)
	}
}

func TestWhatTheAgentRefusesIsTheReason(t *testing.T) {
	for reason, want := range map[database.Reason]string{
		database.DatabaseTaken: pgv1.ReasonDatabaseTaken, database.DatabaseExists: pgv1.ReasonDatabaseExists,
		database.DatabaseForeign: pgv1.ReasonDatabaseForeign, database.RoleTaken: pgv1.ReasonRoleTaken,
		database.RoleExists: pgv1.ReasonRoleExists, database.RolePrivileged: pgv1.ReasonRolePrivileged,
		database.ServerRefused: pgv1.ReasonServerRefused,
	} {
		if string(reason) != want {
			t.Errorf("the agent's reason %s is no reason of the condition", reason)
		}
	}
	w := newPGWorld(t)
	pg := w.ready()
	w.databases.refusal = &database.Refusal{Reason: database.DatabaseTaken, Message: "it is that of default/other"}
	pg = w.step(pg)
	w.wants(pg, pgv1.ReasonDatabaseTaken)
	w.databases.refusal, w.databases.err = nil, errors.New("connection refused")
	pg = w.step(pg)
	w.wants(pg, pgv1.ReasonServerNotReady)
	w.databases.err = nil
	w.wants(w.step(pg), pgv1.ReasonReady)
}

func TestAPostgreSQLOnASharedServer(t *testing.T) {
	w := newPGWorld(t)
	pg := w.foodb(onShared)
	w.must(w.api.Create(t.Context(), pg))
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonServerNotFound)
	w.started("shared")
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonReady)
	if d := w.databases.last(); d.Declared.Exclusive || d.Declared.Adopt || d.Drop {
		t.Errorf("declared %+v", d)
	}
	w.must(w.api.Delete(t.Context(), pg))
	if w.step(pg) != nil {
		t.Error("it does not go")
	}
	if w.databases.last().Drop {
		t.Error("its database was dropped without being asked for")
	}
	pg = w.foodb(onShared, func(pg *pgv1.PostgreSQL) { pg.Spec.DeletionPolicy = v1.DeletionDelete })
	w.must(w.api.Create(t.Context(), pg))
	pg = w.steps(pg, 3)
	w.must(w.api.Delete(t.Context(), pg))
	w.databases.err = errors.New("connection refused")
	pg = w.step(pg)
	w.wants(pg, pgv1.ReasonDeleting)
	w.databases.err = nil
	if w.step(pg) != nil || !w.databases.last().Drop {
		t.Error("its database was to be dropped before it goes")
	}
}

func TestAServerThatIsBeingDeletedTakesNoDatabase(t *testing.T) {
	w := newPGWorld(t)
	db := w.started("shared")
	w.must(w.api.Delete(t.Context(), db))
	pg := w.foodb(onShared, func(pg *pgv1.PostgreSQL) { pg.Spec.DeletionPolicy = v1.DeletionDelete })
	w.must(w.api.Create(t.Context(), pg))
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonServerNotReady)
	if len(w.databases.requests) > 0 {
		t.Error("it was asked for a database all the same")
	}
	w.must(w.api.Delete(t.Context(), pg))
	if w.step(pg) != nil {
		t.Error("what goes with its server keeps its object from going")
	}
}

func TestAServerInAnotherNamespaceMustAllowIt(t *testing.T) {
	w, other := newPGWorld(t), newWorld(t)
	db := other.started("shared")
	pg := w.foodb(func(pg *pgv1.PostgreSQL) {
		pg.Spec.Server = &pgv1.ServerReference{Name: "shared", Namespace: other.namespace}
	})
	w.must(w.api.Create(t.Context(), pg))
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonServerNotAllowed)
	db.Annotations = map[string]string{naming.AnnotationDatabasesFrom: "elsewhere, " + w.namespace}
	w.must(w.api.Update(t.Context(), db))
	w.wants(w.steps(pg, 2), pgv1.ReasonReady)
}

func TestNothingIsTakenOverInAnotherNamespace(t *testing.T) {
	w, other := newPGWorld(t), newWorld(t)
	db := other.started("shared")
	db.Annotations = map[string]string{naming.AnnotationDatabasesFrom: "*"}
	w.must(w.api.Update(t.Context(), db))
	pg := w.foodb(func(pg *pgv1.PostgreSQL) {
		pg.Spec.Server, pg.Spec.Adopt = &pgv1.ServerReference{Name: "shared", Namespace: other.namespace}, true
	})
	w.must(w.api.Create(t.Context(), pg))
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonServerNotAllowed)
	if len(w.databases.requests) > 0 {
		t.Error("it was asked for all the same")
	}
	pg.Spec.Adopt = false
	w.must(w.api.Update(t.Context(), pg))
	w.wants(w.steps(pg, 2), pgv1.ReasonReady)
}

func TestANameThatIsTakenIsLeftAlone(t *testing.T) {
	w := newPGWorld(t)
	theirs := w.started("foodb")
	pg := w.foodb()
	w.must(w.api.Create(t.Context(), pg))
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonNameTaken)
	now := &v1.SampleDB{}
	w.must(w.api.Get(t.Context(), client.ObjectKeyFromObject(theirs), now))
	if now.Generation != theirs.Generation || len(now.OwnerReferences) > 0 {
		t.Error("somebody else's SampleDB was changed")
	}
}

func TestBadPostgreSQLsAreRefusedWithASentence(t *testing.T) {
	w := newPGWorld(t)
	for name, c := range map[string]struct {
		change func(*pgv1.PostgreSQL)
		want   string
	}{
		"long name":       {func(pg *pgv1.PostgreSQL) { pg.Name = strings.Repeat("a", 41) }, "at most 40 characters"},
		"reserved db":     {func(pg *pgv1.PostgreSQL) { pg.Spec.DB = "template1" }, "PostgreSQL's"},
		"reserved user":   {func(pg *pgv1.PostgreSQL) { pg.Spec.User = "postgres" }, "reserved"},
		"pg_ user":        {func(pg *pgv1.PostgreSQL) { pg.Spec.User = "pg_monitor" }, "reserved"},
		"control":         {func(pg *pgv1.PostgreSQL) { pg.Spec.DB = "a\nb" }, "control characters"},
		"password itself": {func(pg *pgv1.PostgreSQL) { pg.Spec.Password = "My password!" }, "name of a Secret"},
		"role twice": {
			func(pg *pgv1.PostgreSQL) { pg.Spec.Roles = []pgv1.Role{{Name: "foo", Password: "x"}} },
			"must not name spec.user",
		},
		"server and size": {
			func(pg *pgv1.PostgreSQL) { onShared(pg); pg.Spec.Storage = &v1.StorageSpec{Size: "2Gi"} }, "the server's",
		},
		"server and network": {
			func(pg *pgv1.PostgreSQL) { onShared(pg); pg.Spec.Network = &v1.NetworkSpec{} }, "the server's",
		},
		"a pooler of a shared server": {
			func(pg *pgv1.PostgreSQL) { onShared(pg); pg.Spec.Pooler = &v1.PoolerSpec{Instances: 2} }, "the server's",
		},
		"updates of a shared server": {
			func(pg *pgv1.PostgreSQL) { onShared(pg); pg.Spec.Update = &v1.UpdateSpec{None: true} }, "the server's",
		},
		"no backup": {func(pg *pgv1.PostgreSQL) {
			pg.Spec.DeletionPolicy, pg.Spec.Backup = v1.DeletionSnapshot, &v1.BackupSpec{None: true}
		}, "nor with backup.none"},
		"unknown access": {func(pg *pgv1.PostgreSQL) {
			pg.Spec.Roles = []pgv1.Role{{Name: "r", Password: "x", Access: "Superuser"}}
		}, "Unsupported value"},
		"negative limit": {
			func(pg *pgv1.PostgreSQL) { n := int32(-5); pg.Spec.ConnectionLimit = &n }, "greater than or equal to 1",
		},
		"unknown version": {func(pg *pgv1.PostgreSQL) { n := int32(9); pg.Spec.Version = &n }, "15, 16, 17, 18 or 19"},
		"long db":         {func(pg *pgv1.PostgreSQL) { pg.Spec.DB = strings.Repeat("ä", 32) }, "at most 63 bytes"},
		"long user": {
			func(pg *pgv1.PostgreSQL) { pg.Spec.User = pgv1.RoleName(strings.Repeat("当", 22)) }, "at most 63 bytes",
		},
		"empty db":         {func(pg *pgv1.PostgreSQL) { pg.Spec.DB = "" }, "at least 1"},
		"name of a number": {func(pg *pgv1.PostgreSQL) { pg.Name = "1db" }, "start with a letter"},
	} {
		err := w.api.Create(t.Context(), w.foodb(c.change))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a sentence with %q", name, err, c.want)
		}
	}
	for _, quoted := range []string{`fo"o`, "fo'o", "当番", "Foo Bar"} {
		pg := w.foodb(func(pg *pgv1.PostgreSQL) {
			pg.Name, pg.GenerateName, pg.Spec.DB, pg.Spec.User = "", "odd-", quoted, pgv1.RoleName(quoted)
		})
		pg.Name = "odd" + string(rune('a'+slices.Index([]string{`fo"o`, "fo'o", "当番", "Foo Bar"}, quoted)))
		if err := w.api.Create(t.Context(), pg); err != nil {
			t.Errorf("%s: %v", quoted, err)
		}
	}
	pg := w.foodb()
	w.must(w.api.Create(t.Context(), pg))
	for name, change := range map[string]func(*pgv1.PostgreSQL){
		"spec.db":   func(pg *pgv1.PostgreSQL) { pg.Spec.DB = "bar" },
		"spec.user": func(pg *pgv1.PostgreSQL) { pg.Spec.User = "bar" }, "spec.server": onShared,
	} {
		now := &pgv1.PostgreSQL{}
		w.must(w.api.Get(t.Context(), client.ObjectKeyFromObject(pg), now))
		change(now)
		if err := w.api.Update(t.Context(), now); err == nil ||
			!strings.Contains(err.Error(), name+" can't be changed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRolesAndTheirSecrets(t *testing.T) {
	w := newPGWorld(t)
	pg := w.ready(func(pg *pgv1.PostgreSQL) {
		pg.Spec.Extensions = []string{"pgcrypto"}
		pg.Spec.Roles = []pgv1.Role{{Name: "reader", Password: "reader-password"}}
	}, func(*pgv1.PostgreSQL) { w.found["reader-password"] = passwords.Found{Password: "r"} })
	if stored := pg.Spec.Roles[0]; stored.Access != "" || stored.Schemas != nil {
		t.Errorf("the API server has added to the manifest: %+v", stored)
	}
	d := w.databases.last().Declared
	if len(d.Roles) != 1 || d.Roles[0].Access != database.ReadOnly ||
		!slices.Equal(d.Roles[0].Schemas, []string{"public"}) ||
		d.Roles[0].Password == nil || *d.Roles[0].Password != "r" || !slices.Equal(d.Extensions, []string{"pgcrypto"}) {
		t.Fatalf("declared %+v", d)
	}
	w.update(pg, func(pg *pgv1.PostgreSQL) {
		pg.Spec.Roles = append(pg.Spec.Roles, pgv1.Role{Name: "late", Password: "later"})
	})
	pg = w.steps(pg, 3)
	w.wants(pg, pgv1.ReasonSecretNotFound)
	if d = w.databases.last().Declared; len(d.Roles) != 2 || d.Roles[1].Password != nil {
		t.Errorf("declared %+v", d.Roles)
	}
	w.found["later"] = passwords.Found{Password: "l"}
	w.wants(w.steps(pg, 10), pgv1.ReasonReady)
}

func TestTheOperatorOpensWhatItsPredecessorAskedFor(t *testing.T) {
	w := newPGWorld(t)
	pg := w.ready()
	w.restart()
	w.writes.take()
	pg = w.steps(pg, 2)
	w.wants(pg, pgv1.ReasonReady)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("a new operator writes %q", writes)
	}
	if got := w.databases.last().Declared.Owner.Password; got == nil || *got != "mypassword" {
		t.Errorf("it knows the password %v", got)
	}
}

func TestASecretThatMayBeWatchedIsReadAsSoonAsItChanges(t *testing.T) {
	w := newPGWorld(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "foodb-password"},
		Data:       map[string][]byte{passwords.Key: []byte("mypassword")},
	}
	w.must(w.api.Create(t.Context(), secret))
	w.mayWatch("foodb-password")
	pg := w.ready()
	for len(w.told) > 0 {
		<-w.told
	}
	w.found["foodb-password"] = passwords.Found{Password: "another"}
	secret.Data[passwords.Key] = []byte("another")
	w.must(w.api.Update(t.Context(), secret))
	select {
	case <-w.told:
	case <-time.After(time.Minute):
		t.Fatal("nobody was told that the Secret has changed")
	}
	w.steps(pg, 2)
	if got := w.databases.last().Declared.Owner.Password; got == nil || *got != "another" {
		t.Errorf("the password declared is %v", got)
	}
}

// An operator that ends between writing the Secret and noting that finds a Secret of which it can't know that it is its
// own. It goes with its revision and is made anew.
func TestASecretThatWasWrittenAndNotNotedIsNoStrangers(t *testing.T) {
	w := newPGWorld(t)
	pg := w.ready()
	pg.Status.SecretRevision = ""
	w.must(w.api.Status().Update(t.Context(), pg))
	w.restart()
	reasons := map[string]bool{}
	for range 8 {
		w.now = w.now.Add(10 * time.Second)
		pg = w.step(pg)
		reasons[meta.FindStatusCondition(pg.Status.Conditions, pgv1.ConditionReady).Reason] = true
		w.collect()
	}
	w.wants(pg, pgv1.ReasonReady)
	if reasons[pgv1.ReasonNameTaken] {
		t.Error("its own Secret was taken for somebody else's")
	}
	if !w.find(naming.AppSecret("foodb"), &corev1.Secret{}) {
		t.Error("there is no Secret")
	}
}

// A PostgreSQL that says nothing of a version stays on the one that it has, though the default may be another by now.
func TestAnotherDefaultVersionChangesNoServerThatIsThere(t *testing.T) {
	w := newPGWorld(t)
	sixteen := int32(16)
	pg := w.ready(func(pg *pgv1.PostgreSQL) {
		pg.Spec.Version, pg.Spec.Storage = &sixteen, &v1.StorageSpec{Size: "2Gi"}
	})
	w.update(pg, func(pg *pgv1.PostgreSQL) { pg.Spec.Version, pg.Spec.Storage = nil, nil })
	pg = w.steps(pg, 3)
	w.wants(pg, pgv1.ReasonReady)
	db := &v1.SampleDB{}
	w.read("foodb", db)
	if db.Spec.Version != 16 || db.Spec.Storage.Size != "2Gi" {
		t.Errorf("the server has version %d, and %s", db.Spec.Version, db.Spec.Storage.Size)
	}
}

// What a PostgreSQL says of its server is changed and taken back there too. What the API server adds to a field that is
// written first is no field that goes with the next write.
func TestWhatAPostgreSQLSaysOfItsServerIsTakenBack(t *testing.T) {
	w := newPGWorld(t)
	pg := w.ready(func(pg *pgv1.PostgreSQL) {
		pg.Spec.Pooler, pg.Spec.Update = &v1.PoolerSpec{Instances: 1}, &v1.UpdateSpec{TimeZone: "Asia/Tokyo"}
		pg.Spec.Upgrade = &v1.UpgradeSpec{Backup: v1.UpgradeBackupNone}
		pg.Spec.Resources = &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")},
		}
	})
	w.update(pg, func(pg *pgv1.PostgreSQL) { pg.Spec.Pooler.Instances, pg.Spec.Update = 2, &v1.UpdateSpec{None: true} })
	pg = w.steps(pg, 3)
	w.wants(pg, pgv1.ReasonReady)
	db := &v1.SampleDB{}
	w.read("foodb", db)
	if db.Spec.Pooler == nil || db.Spec.Pooler.Instances != 2 || !db.Spec.Update.None || db.Spec.Update.TimeZone != "" {
		t.Errorf("changed, it is %+v, %+v", db.Spec.Pooler, db.Spec.Update)
	}
	w.update(pg, func(pg *pgv1.PostgreSQL) {
		pg.Spec.Pooler, pg.Spec.Update, pg.Spec.Upgrade, pg.Spec.Resources = nil, nil, nil, nil
	})
	w.steps(pg, 3)
	db = &v1.SampleDB{}
	w.read("foodb", db)
	if db.Spec.Pooler != nil || db.Spec.Update != nil || db.Spec.Upgrade != nil || len(db.Spec.Resources.Requests) > 0 {
		t.Errorf("taken back, it is %+v, %+v, %+v, %+v", db.Spec.Pooler, db.Spec.Update, db.Spec.Upgrade,
			db.Spec.Resources)
	}
}
