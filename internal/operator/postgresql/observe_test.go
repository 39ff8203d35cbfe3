package postgresql

import (
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/passwords"
	"toban.dev/internal/postgres/database"
	"toban.dev/internal/protocol"
)

func TestWhichNamespacesASampleDBAllows(t *testing.T) {
	for annotation, want := range map[string]bool{
		"": false, "m": true, "a, m ,b": true, "*": true, "mm": false, "a,*": true, "m*": false, ",": false,
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n",
			Annotations: map[string]string{naming.AnnotationDatabasesFrom: annotation}}}
		if got := allowed(db, "m"); got != want {
			t.Errorf("%q: %v", annotation, got)
		}
		if !allowed(db, "n") {
			t.Errorf("%q: its own namespace is refused", annotation)
		}
	}
}

func TestHowTheServerIs(t *testing.T) {
	available := metav1.Condition{Type: v1.ConditionAvailable, Status: metav1.ConditionTrue}
	for name, c := range map[string]struct {
		edit  func(*scope)
		state serverState
		words string
	}{
		"it takes writes":   {func(*scope) {}, serverReady, ""},
		"it is not there":   {func(s *scope) { s.seen.db = nil }, serverMissing, "no SampleDB n/foo"},
		"it is not watched": {func(s *scope) { s.unwatched = true }, serverDenied, "does not watch the namespace n"},
		"it is of a namespace that does not allow it": {func(s *scope) { s.seen.db.Namespace = "other" }, serverDenied,
			naming.AnnotationDatabasesFrom},
		"it is being deleted": {func(s *scope) { s.seen.db.DeletionTimestamp = &metav1.Time{Time: noon} },
			serverBusy, "being deleted"},
		"no instance is known to be the primary": {func(s *scope) { s.seen.primary = "" }, serverBusy,
			"takes no writes now"},
		"it has two sides": {func(s *scope) {
			s.seen.db.Status.Upgrade = &v1.UpgradeStatus{Sides: &v1.SidesStatus{Step: v1.SidesFollowing}}
		}, serverHeld, "blue/green upgrade"},
		"its agents have no config yet": {func(s *scope) { s.seen.config.Authority = "" }, serverBusy,
			"no writes"},
		"it says why it takes no writes": {func(s *scope) {
			s.seen.db.Status.Conditions[0].Status, s.seen.db.Status.Conditions[0].Message = metav1.ConditionFalse,
				"no majority"
		}, serverBusy, "takes no writes now: no majority"},
	} {
		s := &scope{pg: known("", noon), seen: observed{primary: "10.0.0.1", config: protocol.Config{Authority: "pem"},
			db: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "foo"},
				Status: v1.SampleDBStatus{Conditions: []metav1.Condition{available}}}}}
		c.edit(s)
		if got := s.server(); got.state != c.state || !strings.Contains(got.message, c.words) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatWasReadOfThePasswords(t *testing.T) {
	right, wrong := passwords.Found{Password: "x"}, passwords.Found{Problem: passwords.Empty}
	for name, c := range map[string]struct {
		found  map[string]passwords.Found
		unread Decision
		read   bool
		reason string
	}{
		"nothing yet": {nil, Decision{}, false, ""},
		"one of two":  {map[string]passwords.Found{"a": right}, Decision{}, false, ""},
		"the other":   {map[string]passwords.Found{"b": right}, Decision{}, false, ""},
		"both":        {map[string]passwords.Found{"a": right, "b": right}, Decision{}, true, ""},
		"one is wrong": {map[string]passwords.Found{"a": right, "b": wrong}, Decision{}, true,
			pgv1.ReasonPasswordInvalid},
		"they could not": {nil, wait(pgv1.ReasonReadingPasswords, "no"), false, pgv1.ReasonReadingPasswords},
	} {
		pg := known("", noon)
		pg.Spec.Password, pg.Spec.Roles = "a", []pgv1.Role{{Name: "r", Password: "b"}}
		v := (&scope{pg: pg, found: c.found, unread: c.unread}).view()
		if v.read != c.read || v.reason != c.reason {
			t.Errorf("%s: read is %v, the reason is %q", name, v.read, v.reason)
		}
	}
}

// Who may make databases on a server may not take over the ones that are there.
func TestAnAdoptionAcrossNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		server *pgv1.ServerReference
		adopt  bool
		want   bool
	}{
		"a server of its own":            {nil, true, false},
		"a server of its namespace":      {&pgv1.ServerReference{Name: "x"}, true, false},
		"the same, with its namespace":   {&pgv1.ServerReference{Name: "x", Namespace: "n"}, true, false},
		"a server of another namespace":  {&pgv1.ServerReference{Name: "x", Namespace: "m"}, true, true},
		"the same, and nothing to adopt": {&pgv1.ServerReference{Name: "x", Namespace: "m"}, false, false},
	} {
		pg := known("", noon)
		pg.Spec.Server, pg.Spec.Adopt = c.server, c.adopt
		if got := (&scope{pg: pg}).view().stranger; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// It was so only about this spec, and not about an earlier one.
func TestWhatWasReady(t *testing.T) {
	pg := known(pgv1.ReasonReady, noon)
	if !wasReady(pg) {
		t.Error("it was ready")
	}
	pg.Generation++
	if wasReady(pg) {
		t.Error("it was ready with another spec")
	}
	if wasReady(known("", noon)) || wasReady(known(pgv1.ReasonServerNotReady, noon)) {
		t.Error("it was never ready")
	}
}

func TestWhatTheAgentIsToldToMake(t *testing.T) {
	three := int32(3)
	pg := known("", noon)
	pg.Spec = pgv1.PostgreSQLSpec{DB: "shop", User: "app", Password: "a", Extensions: []string{"hstore"},
		Server: &pgv1.ServerReference{Name: "x"}, Roles: []pgv1.Role{
			{Name: "r", Password: "b"},
			{Name: "w", Password: "c", Access: pgv1.AccessReadWrite, Schemas: []string{}, ConnectionLimit: &three},
		}}
	s := &scope{pg: pg, found: map[string]passwords.Found{
		"a": {Password: "x"}, "b": {Password: "y", Problem: passwords.Empty}}}
	x := "x"
	want := database.Declared{
		Claimant: "n/foo", Name: "shop", Owner: database.Login{Name: "app", Password: &x, ConnectionLimit: -1},
		ConnectionLimit: -1, Extensions: []string{"hstore"},
		Roles: []database.Role{
			// Its Secret has a problem: no password is known.
			{Login: database.Login{Name: "r", ConnectionLimit: -1}, Access: database.ReadOnly,
				Schemas: []string{"public"}},
			{Login: database.Login{Name: "w", ConnectionLimit: 3}, Access: database.ReadWrite, Schemas: []string{}},
		},
	}
	if got := s.declared(); !reflect.DeepEqual(got, want) {
		t.Errorf("on a server of others it is %+v,\nwant %+v", got, want)
	}
	pg.Spec.Server, want.Exclusive, want.Adopt = nil, true, true
	if got := s.declared(); !reflect.DeepEqual(got, want) {
		t.Errorf("on a server of its own it is %+v,\nwant %+v", got, want)
	}
}

// A Job that has found a Secret missing is made anew, in time: the kubelet brings a new Secret only after a minute.
func TestWhenPasswordsAreReadAgain(t *testing.T) {
	missing := map[string]passwords.Found{"a": {Problem: passwords.SecretMissing}}
	for name, c := range map[string]struct {
		found map[string]passwords.Found
		age   time.Duration
		want  bool
	}{
		"all is there":             {map[string]passwords.Found{"a": {Password: "x"}}, time.Hour, false},
		"one is missing since now": {missing, time.Second, false},
		"one is missing":           {missing, 11 * time.Second, true},
	} {
		s := &scope{pg: known(pgv1.ReasonSecretNotFound, noon.Add(-20*time.Second)), now: noon, found: c.found}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(-c.age))}}
		if got := s.due(job); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPasswordsAreKeptByTheObjectTheyAreOf(t *testing.T) {
	var k knownPasswords
	k.set("a", map[string]passwords.Found{"s": {Password: "x"}})
	if k.of("a")["s"].Password != "x" || k.of("b") != nil {
		t.Error("they are another's")
	}
	k.set("a", nil)
	if k.of("a") != nil || len(k.found) != 0 {
		t.Error("they are kept though they are forgotten")
	}
}

func TestAContainerThatHasEnded(t *testing.T) {
	gone := &corev1.ContainerStateTerminated{ExitCode: 3}
	if ended(nil) != nil || ended([]corev1.ContainerStatus{{}}) != nil {
		t.Error("what runs has not ended")
	}
	if got := ended([]corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: gone}}}); got != gone {
		t.Errorf("%+v", got)
	}
}
