package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// compared is what a comparison leaves that has found no difference, handed what a change of sides does.
var (
	compared = protocol.SidesResult{Done: true, Tables: 3, Rows: 1000}
	handed   = protocol.SidesResult{Done: true, Seconds: 0.2}
)

// inTheWay is what a Pod leaves that has found a prepared transaction.
var inTheWay = protocol.SidesResult{Refusals: []protocol.UpgradeFinding{
	{Reason: "PreparedTransactions", Message: "app has a prepared transaction", Objects: []string{"left"}},
}}

// The whole way from 17 to 18 by a second side, and home. The change to it is put off once, and the operator is
// another one before and after green serves.
func TestABlueGreenUpgrade(t *testing.T) {
	s, db := newSides(t)
	db = s.copied(s.published(s.checked(s.wantsGreen(db))))
	s.expectGreen(db)
	db = s.putOff(s.waits(s.links(db, "")))
	db = s.changes(db)
	db = s.settles(db)
	db = s.returns(db)
	db = s.changesHome(db)
	db = s.arrives(db)
	s.nothingIsLeft(db)
	want := []string{
		v1.UpgradeChecking, v1.UpgradeBackingUp, v1.SidesPublishing, v1.SidesCopying, v1.SidesFollowing,
		v1.SidesComparing, v1.SidesReady, v1.SidesChanging, v1.SidesReady, v1.SidesChanging, v1.SidesChanged,
		v1.SidesComingHome, v1.SidesChangingBack, v1.SidesComingHome, v1.UpgradeUpgraded,
	}
	if !slices.Equal(s.steps, want) {
		t.Errorf("the steps were %q", s.steps)
	}
	if words := s.expect(db, v1.ConditionUpgraded, metav1.ConditionTrue,
		v1.ReasonUpgraded); !strings.Contains(words, "PostgreSQL 18.1, from 17") {
		t.Errorf("it says %q", words)
	}
	s.expect(s.step(db), v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// expectGreen expects the second side to be made as it is to be.
func (s *sides) expectGreen(db *v1.SampleDB) {
	s.Helper()
	green := s.green()
	from := green.Spec.RestoreFrom
	if from == nil || from.SampleDB != "x" || from.Target == nil || from.Target.LSN != position ||
		!from.Target.Exclusive || green.Spec.TLS.SecretName != "x-green-tls" ||
		green.Annotations[naming.AnnotationSide] != naming.SideFollows || !metav1.IsControlledBy(green, db) {
		s.Errorf("green is %s", asText(green))
	}
	s.read("x-green-tls", &corev1.Secret{})
	if !s.config(green).Closed || s.config(db).Closed {
		s.Error("not blue alone lets clients in")
	}
	if s.leadsTo() != "x" {
		s.Error("the Services do not lead to blue")
	}
}

// links plays the Pods of the work before a change of sides.
func (s *sides) links(db *v1.SampleDB, from string) *v1.SampleDB {
	s.Helper()
	db = s.does(db, "follow"+from, done)
	db = s.does(db, "compare"+from, compared)
	return s.does(db, "prepare"+from, done)
}

// waits plays the Pod that hands over, which waits for the pause.
func (s *sides) waits(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.is(db, v1.SidesReady, v1.SideBlue)
	db = s.hands(db, "change")
	s.is(db, v1.SidesChanging, v1.SideBlue)
	return db
}

// hands plays a Pod that hands over.
func (s *sides) hands(db *v1.SampleDB, words string) *v1.SampleDB {
	s.Helper()
	s.podOfSides(db, words)
	s.pods.begun, s.pods.result = nil, nil
	return s.step(db)
}

// begins has blue be closed. The Pod that hands over is told to begin when every agent has said that it is.
func (s *sides) begins(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	second := hostOf(db, 1)
	absent := s.agents.answers[second]
	delete(s.agents.answers, second)
	db = s.step(db)
	if !s.config(db).Closed || !s.agents.told().Closed {
		s.Error("blue lets clients in")
	}
	s.says(db, true)
	delete(s.agents.answers, second)
	db = s.step(db)
	s.is(db, v1.SidesChanging, v1.SideBlue)
	if len(s.pods.begun) > 0 {
		s.Error("sides change though an agent has not said that it is closed")
	}
	absent.Closed = true
	s.agents.answers[second] = absent
	db = s.step(db)
	s.is(db, v1.SidesChanging, v1.SideBlue)
	if len(s.pods.begun) == 0 || s.pods.begun[0] != db.Status.Upgrade.ID {
		s.Fatalf("the Pod that hands over was told %q", s.pods.begun)
	}
	return db
}

// putOff has the Pod find something in the way in the pause: blue is open again, and another one tries it again.
func (s *sides) putOff(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	first := s.live(db)["sides change"]
	db = s.begins(db)
	s.drainEvents()
	s.pods.result = &inTheWay
	db = s.step(db)
	u := s.is(db, v1.SidesReady, v1.SideBlue)
	if told := s.drainEvents(); u.Sides.Tried != 1 || u.OpenedAt == "" || !strings.Contains(told, "SidesPutOff") {
		s.Errorf("put off, it is %s, and told is %q", asText(u), told)
	}
	db = s.step(db)
	if s.config(db).Closed || s.leadsTo() != "x" {
		s.Error("blue is not open again")
	}
	s.says(db, false)
	db = s.step(s.step(db))
	if u := s.is(db, v1.SidesReady, v1.SideBlue); !strings.Contains(u.Message, "app has a prepared transaction") {
		s.Errorf("it says %q", u.Message)
	}
	if _, soon := s.live(db)["sides change"]; soon {
		s.Error("it is tried again at once")
	}
	s.now = s.now.Add(time.Minute)
	db = s.waits(s.step(db))
	if again := s.live(db)["sides change"]; again.Name == first.Name {
		s.Errorf("it is tried again by the same Job %s", again.Name)
	}
	return db
}

// changes plays the change of sides, to green.
func (s *sides) changes(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	db = s.begins(db)
	s.restarts()
	s.pods.result = &handed
	db = s.step(db)
	s.is(db, v1.SidesChanged, v1.SideGreen)
	return db
}

// settles expects clients to be led to green once that is on record, and blue to follow it.
func (s *sides) settles(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	if green := s.green(); s.leadsTo() != "x" || green.Annotations[naming.AnnotationSide] != naming.SideFollows {
		s.Error("green is opened before it is on record that it serves")
	}
	s.restarts()
	db = s.step(db)
	green := s.green()
	if s.leadsTo() != "x-green" || green.Annotations[naming.AnnotationSide] != naming.SideServes {
		s.Errorf("clients are led to %s, and green %s", s.leadsTo(), green.Annotations[naming.AnnotationSide])
	}
	if len(s.live(db)) > 1 { // that which handed over
		s.Errorf("before green is open there are %v", s.live(db))
	}
	green = s.step(green)
	s.says(green, false)
	green = s.step(green)
	s.expect(green, v1.ConditionSideClosed, metav1.ConditionFalse, v1.ReasonSideOpen)
	return s.settled(s.step(db))
}

// settled has blue follow.
func (s *sides) settled(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	db = s.does(db, "settle --from-green", done)
	u := s.is(db, v1.SidesChanged, v1.SideGreen)
	if u.WayBack != v1.WayBackBack || u.OpenedAt == "" || !s.config(db).Closed {
		s.Errorf("settled, the upgrade is %s", asText(u))
	}
	s.expect(db, v1.ConditionUpgraded, metav1.ConditionTrue, v1.ReasonUpgraded)
	return db
}

// returns accepts the upgrade: blue's own data is upgraded, and follows green again.
func (s *sides) returns(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationAcceptUpgrade, "yes")
	})
	db = s.step(db)
	s.is(db, v1.SidesComingHome, v1.SideGreen)
	db = s.does(db, "leave --from-green", done)
	db = s.inPlace(db, homeIdentifier)
	s.greenIs(metav1.ConditionTrue)
	db = s.step(db)
	u := s.is(db, v1.SidesComingHome, v1.SideGreen)
	if db.Status.Major != 18 || db.Status.SystemIdentifier != homeIdentifier || !s.config(db).Closed ||
		s.leadsTo() != "x-green" {
		s.Errorf("blue's data is of %d, %s; the upgrade is %s", db.Status.Major, db.Status.SystemIdentifier, asText(u))
	}
	db = s.does(db, "return --from-green", done)
	return s.does(db, "follow --from-green", done)
}

// greenIs says whether green is Ready.
func (s *sides) greenIs(ready metav1.ConditionStatus) {
	s.Helper()
	green := s.green()
	meta.SetStatusCondition(&green.Status.Conditions, metav1.Condition{Type: v1.ConditionReady, Status: ready,
		Reason: v1.ReasonInstancesUnready})
	s.must(s.api.Status().Update(s.Context(), green))
}

// changesHome plays the change of sides to blue.
func (s *sides) changesHome(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	db = s.does(db, "compare --from-green", compared)
	db = s.hands(db, "change --from-green")
	s.is(db, v1.SidesChangingBack, v1.SideGreen)
	db = s.step(db)
	green := s.step(s.green())
	if !s.config(green).Closed || !s.config(db).Closed {
		s.Error("a side lets clients in")
	}
	db = s.step(db)
	if len(s.pods.begun) > 0 {
		s.Error("sides change though green has not said that it is closed")
	}
	s.says(green, true)
	s.step(green)
	return s.handsHome(db)
}

// handsHome is the change of sides to blue when green is closed.
func (s *sides) handsHome(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	db = s.step(db)
	s.is(db, v1.SidesChangingBack, v1.SideGreen)
	if len(s.pods.begun) == 0 {
		s.Fatal("the Pod that hands over is not told to begin")
	}
	s.pods.result = &handed
	db = s.step(db)
	if db.Status.Upgrade.Sides.Serves != v1.SideBlue || s.leadsTo() != "x-green" || !s.config(db).Closed {
		s.Errorf("clients are led to %s; the upgrade is %s", s.leadsTo(), asText(db.Status.Upgrade))
	}
	db = s.step(db)
	if s.leadsTo() != "x" || s.config(db).Closed {
		s.Errorf("clients are led to %s; blue is closed: %v", s.leadsTo(), s.config(db).Closed)
	}
	if _, there := s.live(db)["sides cancel"]; there {
		s.Error("green is removed before blue is open")
	}
	s.says(db, false)
	s.endAll(db)
	return s.step(db)
}

// arrives has green be removed.
func (s *sides) arrives(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.is(db, v1.SidesComingHome, v1.SideBlue)
	db = s.does(db, "cancel", done)
	green := s.green()
	if green.DeletionTimestamp == nil || green.Spec.DeletionPolicy != v1.DeletionDelete {
		s.Errorf("green is %s", asText(green))
	}
	s.step(green)
	s.must(s.api.DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.namespace),
		client.MatchingLabels{naming.LabelSampleDB: green.Name}, client.GracePeriodSeconds(0)))
	s.gone(green)
	refused, before := false, s.reconciler.Client
	s.reconciler.Client = raced{before, naming.AnnotationAcceptUpgrade, &refused}
	db = s.step(db)
	if s.is(db, v1.SidesComingHome, v1.SideBlue); !refused {
		s.Error("the request is not taken away")
	}
	s.reconciler.Client = before
	db = s.step(db)
	s.is(db, v1.UpgradeUpgraded, v1.SideBlue)
	return s.step(db)
}

// beside is an upgrade whose second side is there, but not played.
func (s *sides) beside(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	db = s.published(s.checked(db))
	for range 2 { // of 17, and then of 18
		s.is(db, v1.SidesCopying, v1.SideBlue)
		s.greenSays(metav1.ConditionTrue)
		db = s.step(db)
	}
	s.is(db, v1.SidesFollowing, v1.SideBlue)
	return db
}

// The way back is the same with the sides exchanged, and then green is removed.
func TestTheWayBackOfABlueGreenUpgrade(t *testing.T) {
	s, db := newSides(t)
	db = s.beside(s.wantsGreen(db))
	db = s.step(s.changes(s.waits(s.links(db, ""))))
	s.greenSays(metav1.ConditionFalse)
	db = s.settled(s.step(db))
	s.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationUpgradeBack, "yes")
	})
	db = s.hands(s.links(s.step(db), " --from-green"), "change --from-green")
	s.is(db, v1.SidesChangingBack, v1.SideGreen)
	db = s.step(db)
	if green := s.green(); len(s.pods.begun) > 0 || green.Annotations[naming.AnnotationSide] != naming.SideFollows {
		t.Errorf("told to begin: %q; green %s", s.pods.begun, green.Annotations[naming.AnnotationSide])
	}
	s.greenSays(metav1.ConditionTrue)
	db = s.handsHome(db)
	s.is(db, v1.SidesCancelling, v1.SideBlue)
	db = s.failed(s.step(s.does(db, "cancel", done)), "the way back was asked for")
	if db.Annotations[naming.AnnotationUpgradeBack] != "" {
		t.Error("the way back is still asked for")
	}
	s.givenUp(db)
}

// failed expects blue to serve, nothing to be left, and the condition to say why.
func (s *sides) failed(db *v1.SampleDB, words string) *v1.SampleDB {
	s.Helper()
	s.is(db, v1.UpgradeFailed, v1.SideBlue)
	text := s.expect(db, v1.ConditionUpgraded, metav1.ConditionFalse, v1.ReasonUpgradeFailed)
	if !strings.Contains(text, words) {
		s.Errorf("it says %q", text)
	}
	s.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	s.nothingIsLeft(db)
	db = s.step(db)
	s.is(db, v1.UpgradeFailed, v1.SideBlue)
	return db
}

// givenUp sets the version back.
func (s *sides) givenUp(db *v1.SampleDB) {
	s.Helper()
	s.edit(db, func(db *v1.SampleDB) { db.Spec.Version = 17 })
	db = s.step(db)
	if db.Status.Upgrade != nil || db.Status.Major != 17 {
		s.Errorf("given up, it is %s", asText(db.Status.Upgrade))
	}
	s.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// What blue refuses, and rows that differ, end an upgrade: it says why, and is tried anew when that is asked for.
func TestABlueGreenUpgradeThatFails(t *testing.T) {
	s, db := newSides(t)
	db = s.checked(s.wantsGreen(db))
	first := s.live(db)["sides publish"]
	db = s.does(db, "publish", inTheWay)
	s.is(db, v1.SidesCancelling, v1.SideBlue)
	s.drainEvents()
	db = s.does(db, "cancel", done)
	if told := s.drainEvents(); !strings.Contains(told, "UpgradeFailed") {
		t.Errorf("told is %q", told)
	}
	db = s.failed(db, "app has a prepared transaction: left")
	s.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationUpdate, "now")
	})
	db = s.beside(s.step(db))
	if again := s.live(db)["sides publish"]; again.Name == first.Name {
		t.Errorf("it is tried again by the same Job %s", again.Name)
	}
	db = s.does(db, "follow", done)
	db = s.does(db, "compare", protocol.SidesResult{Tables: 3, Rows: 9, Differences: []string{"3 rows of app.t"}})
	s.is(db, v1.SidesCancelling, v1.SideBlue)
	db = s.step(s.does(db, "cancel", done))
	s.givenUp(s.failed(db, "rows differ: 3 rows of app.t"))
}

// Until green serves, setting the version back removes it.
func TestABlueGreenUpgradeThatIsGivenUp(t *testing.T) {
	s, db := newSides(t)
	db = s.beside(s.wantsGreen(db))
	s.edit(db, func(db *v1.SampleDB) { db.Spec.Version = 17 })
	db = s.step(db)
	s.is(db, v1.SidesCancelling, v1.SideBlue)
	s.drainEvents()
	db = s.step(s.does(db, "cancel", done))
	s.nothingIsLeft(db)
	s.givenUp(db)
	if told := s.drainEvents(); strings.Contains(told, "UpgradeFailed") {
		t.Errorf("told is %q", told)
	}
}
