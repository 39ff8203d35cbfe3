package postgresql

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pgv1 "toban.dev/api/postgresql/v1"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/passwords"
	"toban.dev/internal/postgres/database"
	"toban.dev/internal/protocol"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// known is a PostgreSQL whose condition Ready has a reason since a time, "" for no condition.
func known(reason string, since time.Time) *pgv1.PostgreSQL {
	pg := &pgv1.PostgreSQL{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "foo", Generation: 3}}
	if reason != "" {
		status := metav1.ConditionFalse
		if reason == pgv1.ReasonReady {
			status = metav1.ConditionTrue
		}
		pg.Status.Conditions = []metav1.Condition{{Type: pgv1.ConditionReady, Status: status, Reason: reason,
			ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(since)}}
	}
	return pg
}

func TestWhenTheAgentIsAsked(t *testing.T) {
	server := func(s serverState) serverView { return serverView{s, "the server is not"} }
	wrong := func(v view) view {
		v.reason, v.message = pgv1.ReasonSecretNotFound, "there is no Secret"
		return v
	}
	for name, c := range map[string]struct {
		view view
		want string // "" if it is asked
	}{
		"all is known": {view{read: true}, ""},
		"a Secret is wrong, and others are right": {wrong(view{read: true}), ""},
		"no server": {wrong(view{server: server(serverMissing), read: true}),
			pgv1.ReasonServerNotFound},
		"a server that does not allow it": {view{server: server(serverDenied), read: true},
			pgv1.ReasonServerNotAllowed},
		"a server that takes no writes": {view{server: server(serverBusy), read: true}, pgv1.ReasonServerNotReady},
		"a server that takes no writes, and a wrong Secret": {wrong(view{server: server(serverBusy)}),
			pgv1.ReasonSecretNotFound},
		"a server with two sides": {view{server: server(serverHeld), read: true}, pgv1.ReasonServerNotReady},
		"a server with two sides, and all was so": {view{server: server(serverHeld), read: true, was: true},
			pgv1.ReasonReady},
		"a server with two sides, and a Secret that is wrong now": {
			wrong(view{server: server(serverHeld), read: true, was: true}), pgv1.ReasonServerNotReady},
		"an adoption across namespaces": {view{stranger: true, read: true},
			pgv1.ReasonServerNotAllowed},
		"an adoption of a server that is not there": {view{stranger: true, server: server(serverMissing)},
			pgv1.ReasonServerNotFound},
		"passwords that are not read yet":                   {view{}, pgv1.ReasonReadingPasswords},
		"passwords that are not read again, but all was so": {view{was: true}, ""},
	} {
		got := decide(c.view)
		if got.Act != (c.want == "") || got.Reason != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
		if !got.Act && got.Message == "" {
			t.Errorf("%s: nothing is said", name)
		}
	}
}

func TestWhatTheAgentsAnswerMeans(t *testing.T) {
	refusal := func(reason database.Reason) answer {
		return answer{result: protocol.DatabaseResult{Refusal: &database.Refusal{Reason: reason, Message: "because"}}}
	}
	wrong := view{reason: pgv1.ReasonPasswordInvalid, message: "the password is empty"}
	for name, c := range map[string]struct {
		view            view
		answer          answer
		reason, message string
	}{
		"done":                         {view{}, answer{}, pgv1.ReasonReady, "as declared"},
		"done, but a password is none": {wrong, answer{}, pgv1.ReasonPasswordInvalid, "is empty"},
		"not now": {wrong, answer{err: errors.New("connection refused")},
			pgv1.ReasonServerNotReady, "connection refused"},
		"refused": {wrong, refusal(database.RoleTaken), string(database.RoleTaken), "because"},
		"no password, because its Secret has none": {wrong, refusal(database.NoPassword), pgv1.ReasonPasswordInvalid,
			"is empty"},
		"no password, because it is being read": {view{}, refusal(database.NoPassword), pgv1.ReasonReadingPasswords,
			"a Pod reads"},
	} {
		got := judge(c.view, c.answer)
		if got.Act || got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: %+v, want %s with %q", name, got, c.reason, c.message)
		}
	}
}

func TestAWrongPasswordIsSaidWithItsSecret(t *testing.T) {
	for problem, want := range map[passwords.Problem]struct{ reason, words string }{
		passwords.SecretMissing: {pgv1.ReasonSecretNotFound, "there is no Secret s"},
		passwords.KeyMissing:    {pgv1.ReasonPasswordInvalid, "has no key postgresql_password"},
		passwords.Empty:         {pgv1.ReasonPasswordInvalid, "is empty"},
		passwords.TooLong:       {pgv1.ReasonPasswordInvalid, "more than"},
		passwords.Malformed:     {pgv1.ReasonPasswordInvalid, "line break"},
		"of a newer version":    {pgv1.ReasonPasswordInvalid, "of a newer version"},
	} {
		reason, message := wrongPassword("s", problem)
		if reason != want.reason || !strings.Contains(message, want.words) || !strings.Contains(message, "Secret s") {
			t.Errorf("%s: %s: %s", problem, reason, message)
		}
	}
}

func TestAnObjectThatCouldNotBeWritten(t *testing.T) {
	for cause, want := range map[apply.Cause]string{
		apply.Taken: pgv1.ReasonNameTaken, apply.Refused: pgv1.ReasonInvalidSpec,
		apply.Waiting: pgv1.ReasonServerNotReady,
	} {
		got := unwritten(&apply.Problem{Cause: cause, Message: "the quota is used up"})
		if got.Act || got.Reason != want || got.Message != "the quota is used up" {
			t.Errorf("%v: %+v, want %s", cause, got, want)
		}
	}
}

// A former Secret goes with its revision in a moment. One that does not go is somebody's.
func TestASecretInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		pg   *pgv1.PostgreSQL
		want string
	}{
		"at once":             {known("", noon), pgv1.ReasonWritingSecret},
		"all was well before": {known(pgv1.ReasonReady, noon.Add(-time.Hour)), pgv1.ReasonWritingSecret},
		"it has been for a moment": {known(pgv1.ReasonWritingSecret, noon.Add(-patienceSecret)),
			pgv1.ReasonWritingSecret},
		"it has been for long": {known(pgv1.ReasonWritingSecret, noon.Add(-patienceSecret-time.Second)),
			pgv1.ReasonNameTaken},
		"it is known to be somebody's": {known(pgv1.ReasonNameTaken, noon), pgv1.ReasonNameTaken},
	} {
		if got := secretInTheWay(c.pg, noon); got.Act || got.Reason != c.want ||
			!strings.Contains(got.Message, "Secret foo-app") {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

func TestWhenItIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		since  time.Duration
		want   time.Duration
	}{
		"at rest":                              {pgv1.ReasonReady, time.Hour, pauseResting},
		"a Secret is missing since now":        {pgv1.ReasonSecretNotFound, 0, firstLook},
		"a Secret is missing for a while":      {pgv1.ReasonSecretNotFound, 20 * time.Second, 10 * time.Second},
		"a Secret is missing for a day":        {pgv1.ReasonPasswordInvalid, 24 * time.Hour, lastLook},
		"the server starts":                    {pgv1.ReasonServerNotReady, 0, pauseWorking},
		"the server starts for a while":        {pgv1.ReasonServerNotReady, 40 * time.Second, 10 * time.Second},
		"the server has been away for a day":   {pgv1.ReasonServerNotReady, 24 * time.Hour, pauseLong},
		"passwords are read for a minute":      {pgv1.ReasonReadingPasswords, time.Minute, 15 * time.Second},
		"only its user can mend it":            {pgv1.ReasonInvalidSpec, time.Hour, pauseStuck},
		"what PostgreSQL refuses":              {string(database.ServerRefused), time.Hour, pauseStuck},
		"another's name":                       {pgv1.ReasonNameTaken, 40 * time.Second, 10 * time.Second},
		"a deletion that waits for its server": {pgv1.ReasonDeleting, 0, pauseWorking},
	} {
		s := &scope{pg: known(c.reason, noon.Add(-c.since)), now: noon}
		if got := (Decision{Reason: c.reason}).pause(s); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhatIsToldOfAChange(t *testing.T) {
	for name, c := range map[string]struct {
		was, is string
		want    event
	}{
		"nothing new": {pgv1.ReasonServerNotReady, pgv1.ReasonServerNotReady, event{}},
		"the first": {"", pgv1.ReasonServerNotReady, event{corev1.EventTypeNormal, pgv1.ReasonServerNotReady,
			"so"}},
		"it is ready": {pgv1.ReasonServerNotReady, pgv1.ReasonReady, event{corev1.EventTypeNormal,
			pgv1.ReasonReady, "so"}},
		"somebody must help": {pgv1.ReasonReady, pgv1.ReasonNameTaken, event{corev1.EventTypeWarning,
			pgv1.ReasonNameTaken, "so"}},
	} {
		if got := change(known(c.was, noon).Status, Decision{Reason: c.is, Message: "so"}); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
