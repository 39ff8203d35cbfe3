package api

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres/database"
	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/protocol"
)

// password is what the Secret NAME-app has.
func (w *world) password(db *v1.SampleDB) string {
	w.Helper()
	secret := &corev1.Secret{}
	w.read(naming.AppSecret(db.Name), secret)
	return string(secret.Data[naming.KeyPassword])
}

// rotate asks for another password and reconciles once.
func (w *world) rotate(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	return w.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationRotatePassword, "please")
	})
}

// toldLast says whether the server was told this password of the role app last.
func (w *world) toldLast(password string) bool {
	told := w.agents.passwords
	return len(told) > 0 && told[len(told)-1].Role == "app" && scram.Matches(told[len(told)-1].Verifier, password)
}

// One annotation gives another password: first the Secret has it, then the server.
func TestThePasswordIsRotated(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	first := w.password(db)
	db = w.rotate(db)
	if db.Annotations[naming.AnnotationRotatePassword] != "" || db.Status.Password.Epoch != 1 {
		t.Fatalf("the request is not taken: %v, %+v", db.Annotations, db.Status.Password)
	}
	db = w.reconcile(db)
	w.expect(db, v1.ConditionPasswordRotated, metav1.ConditionFalse, v1.ReasonWritingSecret)
	if len(w.agents.passwords) > 0 {
		t.Fatal("the server is told a password that no Secret has")
	}
	w.collectSecrets()
	db = w.reconcile(db)
	second := w.password(db)
	if second == first || !w.toldLast(second) {
		t.Errorf("the Secret has a new password: %v, and the server has it: %v", second != first, w.toldLast(second))
	}
	w.expect(db, v1.ConditionPasswordRotated, metav1.ConditionTrue, v1.ReasonRotated)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if told := w.drainEvents(); !strings.Contains(told, "PasswordRotated") {
		t.Errorf("no event tells of it: %s", told)
	}
	w.writes.take()
	db = w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 || len(w.agents.passwords) != 1 {
		t.Errorf("it goes on writing: %v, the server was told %d times", writes, len(w.agents.passwords))
	}

	db = w.keepsPassword(db, second)
	again := w.rotate(db)
	again = w.reconcile(again)
	w.collectSecrets()
	again = w.reconcile(again)
	if third := w.password(again); third == second || third == first || !w.toldLast(third) {
		t.Error("the second rotation gives no password of its own")
	}
}

// keepsPassword: a password stays, also where the operator starts anew and nothing but one of the records is left.
func (w *world) keepsPassword(db *v1.SampleDB, password string) *v1.SampleDB {
	w.Helper()
	secret := &corev1.Secret{}
	for name, lose := range map[string]func(){
		"the annotation": func() { db = w.edit(db, func(db *v1.SampleDB) { db.Annotations = nil }) },
		"the status": func() {
			db.Status.Password = nil
			w.must(w.api.Status().Update(w.Context(), db))
		},
	} {
		lose()
		w.read(naming.AppSecret("x"), secret)
		w.must(w.api.Delete(w.Context(), secret))
		for range 3 {
			w.now = w.now.Add(20 * time.Minute)
			db = w.reconcile(db)
			w.collectSecrets()
		}
		db = w.reconcile(db)
		if w.password(db) != password || db.Status.Password.Epoch != 1 || !w.toldLast(password) {
			w.Errorf("without %s another password comes back: %+v", name, db.Status.Password)
		}
	}
	return db
}

// A Secret that an earlier release has made belongs to the SampleDB, and the operator may not delete it: it says who
// has to. Until then the server keeps the password that the Secret has.
func TestASecretOfAnEarlierReleaseIsDeletedByHand(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	secret, revision := &corev1.Secret{}, &appsv1.ControllerRevision{}
	w.read(naming.AppSecret("x"), secret)
	secret.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(db, v1.GroupVersion.WithKind("SampleDB"))}
	w.must(w.api.Update(t.Context(), secret))
	w.read(naming.AppRevision("x", firstApp(1)), revision)
	w.must(w.api.Delete(t.Context(), revision))
	db = w.rotate(db)
	for range 5 {
		db = w.reconcile(db)
		w.collectSecrets()
	}
	message := w.expect(db, v1.ConditionPasswordRotated, metav1.ConditionFalse, v1.ReasonWritingSecret)
	if !strings.Contains(message, "kubectl delete secret x-app") || len(w.agents.passwords) > 0 {
		t.Errorf("the server was told %d passwords, and the message is %q", len(w.agents.passwords), message)
	}
	w.must(w.api.Delete(t.Context(), secret))
	for range 4 {
		db = w.reconcile(db)
	}
	w.expect(db, v1.ConditionPasswordRotated, metav1.ConditionTrue, v1.ReasonRotated)
	if !w.toldLast(w.password(db)) {
		t.Error("the server does not have the password of the Secret")
	}
}

// An operator that ends between the Secret and the status finds a Secret that may be the former one.
func TestARotationSurvivesALostStatus(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	db = w.rotate(db)
	db = w.reconcile(db)
	w.collectSecrets()
	w.agents.passwordError = errors.New("it stands still")
	db = w.reconcile(db)
	w.expect(db, v1.ConditionPasswordRotated, metav1.ConditionFalse, v1.ReasonSettingPassword)
	want := w.password(db)
	db.Status.Password.Secret = 0
	w.must(w.api.Status().Update(t.Context(), db))
	w.agents.passwordError = nil
	for range 6 {
		db = w.reconcile(db)
		w.collectSecrets()
	}
	w.expect(db, v1.ConditionPasswordRotated, metav1.ConditionTrue, v1.ReasonRotated)
	if w.password(db) != want || !w.toldLast(want) {
		t.Error("the Secret and the server have not the same password")
	}
}

// What can't be done is not begun, and the request stays.
func TestARotationWaits(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	first := w.password(db)
	for host := range w.agents.answers {
		w.agents.answers[host] = older(w.agents.answers[host])
	}
	db = w.rotate(db)
	message := w.expect(db, v1.ConditionPasswordRotated, metav1.ConditionFalse, v1.ReasonRotationWaits)
	if !strings.Contains(message, "x-0") || w.password(db) != first || db.Status.Password != nil {
		t.Errorf("it has begun with an agent that can't: %s", message)
	}
	db = w.edit(db, func(db *v1.SampleDB) { delete(db.Annotations, naming.AnnotationRotatePassword) })
	if c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionPasswordRotated); c != nil {
		t.Errorf("the request is taken back, and the condition stays: %+v", c)
	}

	refused := w.started("refused")
	w.agents.passwordRefusal = &database.Refusal{Reason: database.RoleMissing, Message: "there is no role"}
	refused = w.rotate(refused)
	message = w.expect(refused, v1.ConditionPasswordRotated, metav1.ConditionFalse, v1.ReasonRotationWaits)
	if message != "there is no role" || refused.Status.Password != nil {
		t.Errorf("it has begun with a role that can't have another password: %s", message)
	}
	w.agents.passwordRefusal = nil

	none := w.started("users", func(db *v1.SampleDB) { db.Spec.Init = &v1.InitSpec{None: true} })
	none = w.rotate(none)
	w.expect(none, v1.ConditionPasswordRotated, metav1.ConditionFalse, v1.ReasonRotationWaits)
}

// older is the answer of an agent of release 0.1.0.
func older(s protocol.Status) protocol.Status {
	s.Protocol = 0
	return s
}
