package postgresql

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	pgv1 "toban.dev/api/postgresql/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/passwords"
	"toban.dev/internal/postgres/database"
)

// view is all that the decision depends on.
type view struct {
	server serverView
	// stranger says that it wants to take over what is there on a server of another namespace.
	stranger bool
	// read says that the passwords have been read; reason and message are what is wrong with one, "" for nothing.
	read            bool
	reason, message string
	// was says that all was as the spec wants it when it was looked at last.
	was bool
}

type serverState int

const (
	serverReady serverState = iota
	serverMissing
	serverDenied
	serverBusy
	serverStopped
	// serverHeld has two sides (a blue/green upgrade), and no role or database must come to be on one of them alone.
	serverHeld
)

type serverView struct {
	state   serverState
	message string
}

// Decision is what is done, and what the condition Ready says.
type Decision struct {
	// Act says that the primary's agent is asked to make everything as declared.
	Act     bool
	Reason  string
	Message string
}

func wait(reason, message string) Decision { return Decision{false, reason, message} }

// decide says whether the agent can be asked. It is pure. What nobody but the user can mend comes first.
func decide(v view) Decision {
	switch v.server.state {
	case serverMissing:
		return wait(pgv1.ReasonServerNotFound, v.server.message)
	case serverDenied:
		return wait(pgv1.ReasonServerNotAllowed, v.server.message)
	case serverBusy:
		if v.reason != "" {
			return wait(v.reason, v.message)
		}
		return wait(pgv1.ReasonServerNotReady, v.server.message)
	case serverStopped:
		return wait(pgv1.ReasonServerStopped, v.server.message)
	case serverHeld:
		if v.was && v.reason == "" {
			return Decision{false, pgv1.ReasonReady, "the database and its roles are as declared; " + v.server.message}
		}
		return wait(pgv1.ReasonServerNotReady, v.server.message)
	case serverReady:
	}
	if v.stranger {
		return wait(pgv1.ReasonServerNotAllowed,
			"only a PostgreSQL in the server's own namespace may take over an existing database: remove "+
				"spec.adopt")
	}
	if !v.read && !v.was {
		return wait(pgv1.ReasonReadingPasswords, "a Pod reads the Secrets with the passwords")
	}
	return Decision{Act: true}
}

// judge is how it is after the agent was asked. It is pure.
func judge(v view, a answer) Decision {
	switch {
	case a.err != nil:
		return wait(pgv1.ReasonServerNotReady, "the primary's agent could not do it now: "+a.err.Error())
	case a.result.Refusal != nil && a.result.Refusal.Reason == database.NoPassword && v.reason != "":
		return wait(v.reason, v.message)
	case a.result.Refusal != nil && a.result.Refusal.Reason == database.NoPassword:
		return wait(pgv1.ReasonReadingPasswords, "a Pod reads the Secrets with the passwords")
	case a.result.Refusal != nil:
		return wait(string(a.result.Refusal.Reason), a.result.Refusal.Message)
	case v.reason != "":
		return wait(v.reason, v.message)
	}
	return Decision{false, pgv1.ReasonReady, "the database and its roles are as declared"}
}

// wrongPassword is the reason and the sentence for a Secret without a password.
func wrongPassword(secret string, problem passwords.Problem) (reason, message string) {
	switch problem {
	case passwords.SecretMissing:
		return pgv1.ReasonSecretNotFound, fmt.Sprintf("there is no Secret %s: create it, with the key %s",
			secret, passwords.Key)
	case passwords.KeyMissing:
		return pgv1.ReasonPasswordInvalid, fmt.Sprintf("the Secret %s has no key %s", secret, passwords.Key)
	case passwords.Empty:
		return pgv1.ReasonPasswordInvalid, fmt.Sprintf("%s in the Secret %s is empty", passwords.Key, secret)
	case passwords.TooLong:
		return pgv1.ReasonPasswordInvalid, fmt.Sprintf("%s in the Secret %s has more than %d bytes",
			passwords.Key, secret, passwords.MaxLength)
	case passwords.Malformed:
		return pgv1.ReasonPasswordInvalid, fmt.Sprintf("%s in the Secret %s has a line break or a NUL in it, "+
			"or is not UTF-8", passwords.Key, secret)
	}
	return pgv1.ReasonPasswordInvalid, fmt.Sprintf("%s in the Secret %s can't be used: %s",
		passwords.Key, secret, problem)
}

// unwritten is how it is when an object could not be written.
func unwritten(p *apply.Problem) Decision {
	switch p.Cause {
	case apply.Taken:
		return wait(pgv1.ReasonNameTaken, p.Message)
	case apply.Refused:
		return wait(pgv1.ReasonInvalidSpec, p.Message)
	case apply.Waiting:
	}
	return wait(pgv1.ReasonServerNotReady, p.Message)
}

// secretInTheWay is how it is while a Secret of the name NAME-app is there that is not this one's, or not yet gone.
func secretInTheWay(pg *pgv1.PostgreSQL, now time.Time) Decision {
	c := meta.FindStatusCondition(pg.Status.Conditions, pgv1.ConditionReady)
	if c != nil && c.Reason == pgv1.ReasonNameTaken ||
		c != nil && c.Reason == pgv1.ReasonWritingSecret && now.Sub(c.LastTransitionTime.Time) > patienceSecret {
		return wait(pgv1.ReasonNameTaken, fmt.Sprintf("a Secret %s exists already and does not belong to this "+
			"PostgreSQL: delete it, or give the PostgreSQL another name",
			naming.AppSecret(pg.Name)))
	}
	return wait(pgv1.ReasonWritingSecret, fmt.Sprintf("waits until the former Secret %s is removed",
		naming.AppSecret(pg.Name)))
}

const (
	// patienceSecret is how long a former Secret may take to go.
	patienceSecret = 30 * time.Second
	// patienceGone is how long one may be in the way before it is taken for one that was written and not noted.
	patienceGone = 10 * time.Second
)

// pause is how long until it is looked at again.
func (d Decision) pause(s *scope) time.Duration {
	switch d.Reason {
	case pgv1.ReasonReady:
		return pauseResting
	case pgv1.ReasonSecretNotFound, pgv1.ReasonPasswordInvalid:
		return s.pollAfter()
	case pgv1.ReasonReadingPasswords, pgv1.ReasonServerNotReady, pgv1.ReasonDeleting, pgv1.ReasonNameTaken,
		pgv1.ReasonWritingSecret:
		return min(max(s.waited()/4, pauseWorking), pauseLong)
	}
	return pauseStuck
}
