package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/postgres/sql"
)

// SetPassword gives an application's role another password, as a SCRAM verifier. Sessions that are open stay open. It
// returns a *Refusal where somebody has to change something first. Without a verifier it looks for that only.
func SetPassword(ctx context.Context, connect Connect, role, verifier string) error {
	if verifier != "" && !scram.IsVerifier(verifier) {
		return errors.New("the new password is no SCRAM-SHA-256 verifier")
	}
	w := &work{}
	return w.onServer(ctx, connect, func(ctx context.Context) error {
		if err := w.prepareClaims(ctx); err != nil {
			return err
		}
		there, err := w.findRole(ctx, role)
		if err != nil {
			return err
		}
		if refusal := checkPassword(role, there); refusal != nil {
			return refusal
		}
		if verifier == "" {
			return nil
		}
		return w.secretly(ctx, fmt.Sprintf("set the password of the role %q", role),
			fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", sql.Quote(role), verifier))
	})
}

// secretly runs a statement with a verifier in it. what says in an error what was being done.
func (w *work) secretly(ctx context.Context, what, statement string) error {
	return sql.Secretly(ctx, w.super, func() error {
		return sql.Do(ctx, w.super, what, statement, pgx.QueryExecModeSimpleProtocol)
	})
}

// checkPassword says why a role can't be given another password, nil where it can. It is pure.
func checkPassword(name string, there roleFound) *Refusal {
	switch {
	case !there.exists:
		return refuse(RoleMissing, "there is no role %q: create it again with CREATE ROLE … LOGIN", name)
	case there.privileged:
		return refuse(RolePrivileged, "the role %q has more rights than an application's (superuser, replication, row "+
			"security or creating roles or databases): take them from it, or change its password with SQL", name)
	case there.claimant != "":
		return refuse(RoleTaken, "the role %q is that of the PostgreSQL %s: change the Secret with its password",
			name, there.claimant)
	}
	return nil
}
