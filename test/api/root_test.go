package api

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/namespaces"
	"toban.dev/internal/pki"
)

// A root secret is made where there is nothing yet. One that was lost is not replaced: it would lock everybody out.
func TestALostRootSecretIsNotReplaced(t *testing.T) {
	w := newWorldOn(t, ownServer(t))
	direct, ok := w.reconciler.Client.(labelled) // with the operator's rights
	if !ok {
		t.Fatal("the reconciler has another client")
	}
	key := types.NamespacedName{Namespace: operatorNamespace, Name: naming.OperatorSecret}
	others := newWorldOn(t, w.server)
	others.started("theirs") // has another operator, with another root
	databases := func(ctx context.Context) ([]v1.SampleDB, error) {
		return namespaces.Choice{Ignored: []string{others.namespace}}.SampleDBs(ctx, direct.Client)
	}
	first, err := credentials.Load(t.Context(), direct.Client, operatorNamespace, databases)
	w.must(err)
	root := &corev1.Secret{}
	w.must(w.api.Get(t.Context(), key, root))

	db := w.sampleDB("waits")
	w.must(w.api.Create(t.Context(), db))
	w.must(w.api.Delete(t.Context(), root))
	if _, err := credentials.Load(t.Context(), direct.Client, operatorNamespace, databases); err != nil {
		t.Errorf("a SampleDB that no operator has seen keeps the first one from starting: %v", err)
	}
	w.must(w.api.Get(t.Context(), key, root))

	w.started("x")
	w.must(w.api.Delete(t.Context(), root))
	_, err = credentials.Load(t.Context(), direct.Client, operatorNamespace, databases)
	if err == nil || !strings.Contains(err.Error(), "put your copy of it back") {
		t.Errorf("with a SampleDB and without a root: %v", err)
	}
	if err := w.api.Get(t.Context(), key, root); !apierrors.IsNotFound(err) {
		t.Errorf("another root secret is made: %v", err)
	}
	root.ObjectMeta = metav1.ObjectMeta{Namespace: root.Namespace, Name: root.Name}
	w.must(w.api.Create(t.Context(), root))
	again, err := credentials.Load(t.Context(), direct.Client, operatorNamespace, databases)
	w.must(err)
	now, err := again.Password(db, 0)
	w.must(err)
	if was, _ := first.Password(db, 0); now == was {
		t.Error("the first root is back, and not the second")
	}
}

// rootsWorld is a world whose operator has its roots from its Secret, with its own rights.
type rootsWorld struct {
	*world
	// asked is how many configs have been checked by reaches.
	asked int
	trust string
}

func newRootsWorld(t *testing.T) *rootsWorld {
	t.Helper()
	w := &rootsWorld{world: newWorldOn(t, ownServer(t))}
	w.must(w.restart())
	return w
}

// restart starts the operator again.
func (w *rootsWorld) restart() error {
	direct, ok := w.reconciler.Client.(labelled)
	if !ok {
		w.Fatal("the reconciler has another client")
	}
	store, err := credentials.Load(w.Context(), direct.Client, operatorNamespace,
		func(ctx context.Context) ([]v1.SampleDB, error) {
			return namespaces.Choice{}.SampleDBs(ctx, direct.Client)
		})
	if err == nil {
		w.reconciler.Credentials = store
	}
	return err
}

// editSecret changes the data of the operator's Secret, and returns what it was.
func (w *rootsWorld) editSecret(edit func(data map[string][]byte)) (before map[string][]byte) {
	w.Helper()
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: operatorNamespace, Name: naming.OperatorSecret}
	w.must(w.api.Get(w.Context(), key, secret))
	before = maps.Clone(secret.Data)
	edit(secret.Data)
	w.must(w.api.Update(w.Context(), secret))
	return before
}

// reaches fails where an agent was asked with a certificate of the operator that it did not trust at that time, and
// returns the roots that the agents trust now.
func (w *rootsWorld) reaches(when string) []string {
	w.Helper()
	for _, config := range w.agents.configs[w.asked:] {
		if w.asked++; w.trust == "" {
			w.trust = config.Operator
		}
		shown, err := w.reconciler.Credentials.Certificate(config.Operator)
		w.must(err)
		pool, err := pki.Pool(w.trust)
		w.must(err)
		if err := pki.VerifyClient([]*x509.Certificate{shown.Leaf},
			map[string]*x509.CertPool{naming.IdentityOperator: pool}); err != nil {
			w.Fatalf("%s: an agent refuses the operator: %v", when, err)
		}
		w.trust = config.Operator
	}
	return w.reconciler.Credentials.Told(w.trust)
}

// Another root replaces the first one: by the rotations that there are, and nobody is locked out at any time.
func TestTheRootIsReplaced(t *testing.T) {
	w := newRootsWorld(t)
	db := w.started("x", instances(3))
	first, ids := w.password(db), w.authorities(db, 0)
	if told := w.reaches("before"); !slices.Equal(told, []string{"root"}) || db.Status.Roots != nil {
		t.Fatalf("the agents trust the operator by %v, and the status says %v", told, db.Status.Roots)
	}
	later := fmt.Sprintf("root-%d", time.Now().Unix())
	before := w.editSecret(func(data map[string][]byte) { data[later] = []byte("another secret of thirty-two bytes.") })
	w.must(w.restart())
	w.isAdded(db, later, first, ids)

	w.editSecret(func(data map[string][]byte) { delete(data, "root") })
	if err := w.restart(); err == nil || !strings.Contains(err.Error(), `"root"`) ||
		!strings.Contains(err.Error(), w.namespace+"/x") {
		t.Fatalf("the first root is taken out while it is needed: %v", err)
	}
	w.editSecret(func(data map[string][]byte) { data["root"] = before["root"] })
	w.must(w.restart())

	db = w.movesPassword(db, later, first)
	db = w.movesAuthority(db, later, ids[0])
	w.isTakenOut(db, before)
}

// isAdded: what is there stays as it is, and the status says what is still of the first root.
func (w *rootsWorld) isAdded(db *v1.SampleDB, later, password string, authorities []string) {
	w.Helper()
	away := w.agents.answers["10.1.0.2"]
	delete(w.agents.answers, "10.1.0.2")
	db = w.reconcile(db)
	message := w.expect(db, v1.ConditionRootReplaced, metav1.ConditionFalse, v1.ReasonFormerRoot)
	for _, part := range []string{away.Name, "rotate-password", "rotate-authority"} {
		if !strings.Contains(message, part) {
			w.Errorf("it does not say that %s is missing: %s", part, message)
		}
	}
	w.agents.answers["10.1.0.2"] = away
	db = w.reconcile(db)
	if told := w.reaches("with another root"); !slices.Equal(told, []string{"root", later}) {
		w.Errorf("the agents trust the operator by %v", told)
	}
	if w.password(db) != password || w.issues(db) != authorities[0] {
		w.Error("another root changes what is there")
	}
	if message := w.expect(db, v1.ConditionRootReplaced, metav1.ConditionFalse, v1.ReasonFormerRoot); strings.Contains(
		message, away.Name) {
		w.Errorf("all have been told of the other root, and it says %s", message)
	}
}

// movesPassword: a rotation gives a password of the newest root.
func (w *rootsWorld) movesPassword(db *v1.SampleDB, later, former string) *v1.SampleDB {
	w.Helper()
	db = w.reconcile(w.rotate(db))
	w.collectSecrets()
	db = w.reconcile(db)
	w.expect(db, v1.ConditionPasswordRotated, metav1.ConditionTrue, v1.ReasonRotated)
	if got := w.reconciler.Credentials.RootOf(db.Status.Password.Epoch); got != later || w.password(db) == former ||
		!w.toldLast(w.password(db)) {
		w.Errorf("the password is of the root %s", got)
	}
	message := w.expect(db, v1.ConditionRootReplaced, metav1.ConditionFalse, v1.ReasonFormerRoot)
	if strings.Contains(message, "rotate-password") || !strings.Contains(message, "rotate-authority") {
		w.Errorf("its password is of the newest root, and it says %s", message)
	}
	return db
}

// movesAuthority: a rotation gives an authority of the newest root. Then nothing needs the first one.
func (w *rootsWorld) movesAuthority(db *v1.SampleDB, later, former string) *v1.SampleDB {
	w.Helper()
	db = w.authorityUntil(w.rotateAuthority(db, "0s"), v1.ReasonTrustingBoth)
	w.now = w.now.Add(patienceMounts)
	db = w.authorityUntil(db, v1.ReasonReissuing)
	w.trusts(db, "reissuing", 0, db.Status.Authority.Epoch)
	w.expect(db, v1.ConditionRootReplaced, metav1.ConditionFalse, v1.ReasonFormerRoot)
	w.agents.holds = w.issues(db)
	db = w.reconcile(db)
	w.now = w.now.Add(patienceMounts)
	db = w.reconcile(w.authorityUntil(db, v1.ReasonAuthorityReplaced))
	w.trusts(db, "done", db.Status.Authority.Epoch)
	if got := w.reconciler.Credentials.RootOf(db.Status.Authority.Epoch); got != later || w.issues(db) == former {
		w.Errorf("the authority is of the root %s", got)
	}
	w.expect(db, v1.ConditionRootReplaced, metav1.ConditionTrue, v1.ReasonNewestRoot)
	if told := w.reaches("moved"); !slices.Equal(told, []string{later}) || !slices.Equal(db.Status.Roots, told) {
		w.Errorf("the agents trust the operator by %v, and the status says %v", told, db.Status.Roots)
	}
	return db
}

// isTakenOut: the first root goes, and when it is put back, nobody goes back to it.
func (w *rootsWorld) isTakenOut(db *v1.SampleDB, former map[string][]byte) {
	w.Helper()
	password, authority := w.password(db), w.issues(db)
	same := func(when string) {
		w.Helper()
		for range 3 {
			w.now = w.now.Add(20 * time.Minute)
			db = w.reconcile(db)
			w.collectSecrets()
		}
		db = w.reconcile(db)
		if w.password(db) != password || w.issues(db) != authority {
			w.Errorf("%s: another password or authority comes back", when)
		}
		if told := w.reaches(when); !slices.Equal(told, db.Status.Roots) || len(told) != 1 {
			w.Errorf("%s: the agents trust the operator by %v", when, told)
		}
		w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	}
	w.editSecret(func(data map[string][]byte) { delete(data, "root") })
	w.must(w.restart())
	same("without the first root")
	if c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionRootReplaced); c != nil {
		w.Errorf("there is one root, and a condition: %+v", c)
	}
	w.editSecret(func(data map[string][]byte) { data["root"] = former["root"] })
	w.must(w.restart())
	same("with the first root again")

	w.editSecret(func(data map[string][]byte) {
		clear(data)
		data["root"] = former["root"]
	})
	if err := w.restart(); err == nil || !strings.Contains(err.Error(), db.Status.Roots[0]) {
		w.Errorf("a former copy of the Secret is taken: %v", err)
	}
}

// A new SampleDB has nothing of a former root, also where the operator ends right after it has begun with it.
func TestANewSampleDBIsOfTheNewestRoot(t *testing.T) {
	w := newRootsWorld(t)
	at := time.Now().Unix()
	later := fmt.Sprintf("root-%d", at)
	w.editSecret(func(data map[string][]byte) { data[later] = []byte("another secret of thirty-two bytes.") })
	w.must(w.restart())
	db := w.started("y", instances(1))
	if told := w.reaches("new"); !slices.Equal(told, []string{later}) || !slices.Equal(db.Status.Roots, told) {
		t.Errorf("the agents trust the operator by %v, and the status says %v", told, db.Status.Roots)
	}
	w.trusts(db, "new", at)
	want, err := w.reconciler.Credentials.Password(db, at)
	w.must(err)
	if w.password(db) != want || w.issues(db) != w.authorities(db, at)[0] {
		t.Error("it has a password or an authority of a former root")
	}
	w.expect(db, v1.ConditionRootReplaced, metav1.ConditionTrue, v1.ReasonNewestRoot)
	w.writes.take()
	db = w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("it goes on writing: %v", writes)
	}
	w.editSecret(func(data map[string][]byte) { delete(data, "root") })
	w.must(w.restart())
	db.Status = v1.SampleDBStatus{} // as if the operator had ended before it wrote one
	w.must(w.api.Status().Update(t.Context(), db))
	db = w.reconcile(w.reconcile(db))
	if w.password(db) != want || !slices.Equal(db.Status.Roots, []string{later}) {
		t.Errorf("without a status it has another password, and the roots %v", db.Status.Roots)
	}
}
