package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/pki"
)

// authorities are the ids of a SampleDB's authorities, by their epochs.
func (w *world) authorities(db *v1.SampleDB, epochs ...int64) (ids []string) {
	w.Helper()
	for _, epoch := range epochs {
		a, err := w.reconciler.Credentials.Authority(db, epoch)
		w.must(err)
		ids = append(ids, a.ID())
	}
	return ids
}

// trusts fails where not exactly the authorities of these epochs are trusted everywhere.
func (w *world) trusts(db *v1.SampleDB, when string, epochs ...int64) {
	w.Helper()
	config, app := &corev1.ConfigMap{}, &corev1.Secret{}
	w.read(naming.ConfigMap(db.Name), config)
	parsed, err := desired.ParseConfig(config)
	w.must(err)
	w.read(naming.AppSecret(db.Name), app)
	want := w.authorities(db, epochs...)
	told := w.agents.configs[len(w.agents.configs)-1]
	for where, text := range map[string]string{
		"agents that start": parsed.Authority, "agents that run": told.Authority, "the archive": told.Archive.Bucket.CA,
		"our other Pods": config.Data[naming.KeyTrusted], "applications": string(app.Data[naming.KeyCA]),
	} {
		if got := pki.KeyIDs(text); !slices.Equal(got, want) {
			w.Errorf("%s: %s trust %v, want %v", when, where, got, want)
		}
	}
}

// issues is the id of the authority that NAME-ca has.
func (w *world) issues(db *v1.SampleDB) string {
	w.Helper()
	secret := &corev1.Secret{}
	w.read(naming.AuthoritySecret(db.Name), secret)
	authority, err := pki.ParseAuthority(secret.Data[naming.KeyCA], secret.Data[naming.KeyCAKey])
	w.must(err)
	return authority.ID()
}

// rotateAuthority asks for another authority and reconciles once.
func (w *world) rotateAuthority(db *v1.SampleDB, overlap string) *v1.SampleDB {
	w.Helper()
	return w.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationRotateAuthority, overlap)
	})
}

// authorityUntil reconciles until the condition AuthorityRotated has a reason, with Kubernetes' garbage collector at
// work.
func (w *world) authorityUntil(db *v1.SampleDB, reason string) *v1.SampleDB {
	w.Helper()
	var last *metav1.Condition
	for range 30 {
		w.collectSecrets()
		db = w.reconcile(db)
		if last = meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAuthorityRotated); last != nil &&
			last.Reason == reason {
			return db
		}
	}
	w.Fatalf("it does not come to %s: %+v, %+v", reason, last, db.Status.Authority)
	return nil
}

// One annotation gives another authority, in steps: nobody is shown a certificate of one that it does not trust.
func TestTheAuthorityIsRotated(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	ids := w.authorities(db, 0, 1)
	w.trusts(db, "before", 0)
	db = w.rotateAuthority(db, "1h")
	if db.Annotations[naming.AnnotationRotateAuthority] != "" || db.Status.Authority.Epoch != 1 {
		t.Fatalf("the request is not taken: %v, %+v", db.Annotations, db.Status.Authority)
	}
	for range 4 {
		db = w.reconcile(db)
		w.collectSecrets()
	}
	w.trusts(db, "begun", 0, 1)
	message := w.expect(db, v1.ConditionAuthorityRotated, metav1.ConditionFalse, v1.ReasonTrustingBoth)
	if w.issues(db) != ids[0] || !strings.Contains(message, "applications") {
		t.Errorf("with nobody ready for it, NAME-ca has %s: %s", w.issues(db), message)
	}
	w.now = w.now.Add(59 * time.Minute)
	if db = w.reconcile(db); w.issues(db) != ids[0] {
		t.Error("applications had no time to read ca.crt")
	}

	w.now = w.now.Add(time.Minute)
	db = w.authorityUntil(db, v1.ReasonReissuing)
	if w.issues(db) != ids[1] {
		t.Fatal("the Secret has the former authority")
	}
	w.trusts(db, "reissuing", 0, 1)
	w.now = w.now.Add(24 * time.Hour)
	db = w.reconcile(db)
	message = w.expect(db, v1.ConditionAuthorityRotated, metav1.ConditionFalse, v1.ReasonReissuing)
	if !strings.Contains(message, "x-0, x-1, x-2") {
		t.Errorf("it does not say who shows the former one: %s", message)
	}
	w.agents.holds = ids[1]
	db = w.reconcile(db)
	w.now = w.now.Add(59 * time.Minute)
	db = w.reconcile(db)
	w.trusts(db, "within its time", 0, 1)
	w.now = w.now.Add(time.Minute)
	db = w.authorityUntil(db, v1.ReasonAuthorityReplaced)
	w.expect(db, v1.ConditionAuthorityRotated, metav1.ConditionTrue, v1.ReasonAuthorityReplaced)
	w.trusts(db, "done", 1)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if told := w.drainEvents(); !strings.Contains(told, v1.ReasonTrustingBoth) ||
		!strings.Contains(told, v1.ReasonAuthorityReplaced) {
		t.Errorf("the events do not tell of it: %s", told)
	}
	w.writes.take()
	db = w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("it goes on writing: %v", writes)
	}
	if len(w.agents.restarts)+len(w.agents.switchovers) > 0 {
		t.Errorf("servers were restarted: %v, or handed over: %v", w.agents.restarts, w.agents.switchovers)
	}
	w.keepsAuthority(db)
}

// keepsAuthority: what counts stays, whichever record is lost, and the Secret comes back with the same authority.
func (w *world) keepsAuthority(db *v1.SampleDB) {
	w.Helper()
	id, secret := w.issues(db), &corev1.Secret{}
	for name, lose := range map[string]func(){
		"the annotation": func() { db = w.edit(db, func(db *v1.SampleDB) { db.Annotations = nil }) },
		"the status": func() {
			db.Status.Authority = nil
			w.must(w.api.Status().Update(w.Context(), db))
		},
		"the ConfigMap": func() {
			config := &corev1.ConfigMap{}
			w.read(naming.ConfigMap("x"), config)
			w.must(w.api.Delete(w.Context(), config))
		},
	} {
		lose()
		w.read(naming.AuthoritySecret("x"), secret)
		w.must(w.api.Delete(w.Context(), secret))
		for range 3 {
			w.now = w.now.Add(20 * time.Minute)
			db = w.reconcile(db)
			w.collectSecrets()
		}
		db = w.reconcile(db)
		w.trusts(db, "without "+name, 1)
		if w.issues(db) != id {
			w.Errorf("without %s another authority comes back", name)
		}
		w.expect(db, v1.ConditionAuthorityRotated, metav1.ConditionTrue, v1.ReasonAuthorityReplaced)
	}
}

// An operator that ends at any point goes on: nothing of it is in its memory, and what it did not get to write down is
// found out.
func TestARotationOfTheAuthoritySurvivesALostStatusAtEachStep(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	ids := w.authorities(db, 0, 1)
	db = w.rotateAuthority(db, "0s")
	seen := map[string]bool{}
	for range 120 {
		db.Status.Authority = nil
		w.must(w.api.Status().Update(t.Context(), db))
		for range 9 { // the time of a step
			w.now = w.now.Add(patienceMounts / 3)
			db = w.reconcile(db)
			w.collectSecrets()
			if secret := (&corev1.Secret{}); w.find(naming.AuthoritySecret("x"), secret) {
				w.agents.holds = pki.KeyIDs(string(secret.Data[naming.KeyCA]))[0]
			}
			reason := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAuthorityRotated).Reason
			seen[reason] = true
		}
		if seen[v1.ReasonAuthorityReplaced] {
			break
		}
	}
	w.trusts(db, "done", 1)
	if w.issues(db) != ids[1] || !seen[v1.ReasonTrustingBoth] || !seen[v1.ReasonReissuing] ||
		!seen[v1.ReasonDroppingFormer] {
		t.Errorf("NAME-ca has %s, seen were %v", w.issues(db), seen)
	}
}

// patienceMounts is how long a step takes at least.
const patienceMounts = 2 * time.Minute

// Nobody but the holder of the root secret brings another authority into what is trusted, also during a rotation.
func TestAStrangersAuthorityIsTakenOutOfTheConfig(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	db = w.rotateAuthority(db, "1h")
	db = w.authorityUntil(db, v1.ReasonTrustingBoth)
	stranger, err := pki.NewAuthority(
		[]byte("a stranger's seed of 32 bytes ..."), "toban "+w.namespace+"/x 2", time.Now())
	w.must(err)
	config := &corev1.ConfigMap{}
	w.read(naming.ConfigMap("x"), config)
	parsed, err := desired.ParseConfig(config)
	w.must(err)
	parsed.Authority += string(stranger.CertPEM())
	forged, err := desired.ConfigMap(db, parsed.Revise())
	w.must(err)
	config.Data = forged.Data
	w.must(w.api.Update(t.Context(), config))
	db = w.reconcile(db)
	w.collectSecrets()
	db = w.reconcile(db)
	w.trusts(db, "with a stranger's", 0, 1)
	if db.Status.Authority.Epoch != 1 {
		t.Errorf("a stranger raises the epoch: %+v", db.Status.Authority)
	}
}

// A Secret that an earlier release has made belongs to the SampleDB, and the operator may not delete it: it says who
// has to. Until then all go on with the former authority, which stays trusted.
func TestAnAuthorityOfAnEarlierReleaseIsDeletedByHand(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	secret, revision := &corev1.Secret{}, &appsv1.ControllerRevision{}
	w.read(naming.AuthoritySecret("x"), secret)
	secret.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(db, v1.GroupVersion.WithKind("SampleDB"))}
	w.must(w.api.Update(t.Context(), secret))
	w.read(naming.AuthorityRevision("x", "0"), revision)
	w.must(w.api.Delete(t.Context(), revision))
	db = w.rotateAuthority(db, "0s")
	db = w.authorityUntil(db, v1.ReasonTrustingBoth)
	w.now = w.now.Add(patienceMounts)
	db = w.authorityUntil(db, v1.ReasonWritingAuthority)
	for range 5 {
		w.now = w.now.Add(time.Hour)
		db = w.reconcile(db)
		w.collectSecrets()
	}
	message := w.expect(db, v1.ConditionAuthorityRotated, metav1.ConditionFalse, v1.ReasonWritingAuthority)
	if !strings.Contains(message, "Secret x-ca") {
		t.Errorf("it does not say what to delete: %s", message)
	}
	w.trusts(db, "while it is there", 0, 1)
	w.must(w.api.Delete(t.Context(), secret))
	w.now = w.now.Add(time.Hour)
	db = w.authorityUntil(db, v1.ReasonReissuing)
	if w.issues(db) != w.authorities(db, 1)[0] {
		t.Error("the former one comes back")
	}
}

// What can't be done is not begun, and the request stays.
func TestARotationOfTheAuthorityWaits(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	w.agents.silent = map[string]bool{"x-1": true}
	db = w.reconcile(db)
	if c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAuthorityRotated); c != nil {
		t.Errorf("nobody asks, and there is a condition: %+v", c)
	}
	db = w.rotateAuthority(db, "1h")
	message := w.expect(db, v1.ConditionAuthorityRotated, metav1.ConditionFalse, v1.ReasonAuthorityWaits)
	if !strings.Contains(message, "x-1") || strings.Contains(message, "x-0") || db.Status.Authority != nil {
		t.Errorf("it has begun with an agent that knows one authority only: %s", message)
	}
	w.agents.silent = nil
	db = w.rotateAuthority(db, "tomorrow")
	message = w.expect(db, v1.ConditionAuthorityRotated, metav1.ConditionFalse, v1.ReasonAuthorityWaits)
	if !strings.Contains(message, "24h") || db.Status.Authority != nil {
		t.Errorf("it has begun for nobody knows how long: %s", message)
	}
	db = w.edit(db, func(db *v1.SampleDB) { delete(db.Annotations, naming.AnnotationRotateAuthority) })
	if c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAuthorityRotated); c != nil {
		t.Errorf("the request is taken back, and the condition stays: %+v", c)
	}
}
