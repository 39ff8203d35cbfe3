// Package database makes a database, its roles and what they may do in it as they are declared, on a server that may
// have others. It looks first and changes only what differs, so that it can end at any point and begin again, and
// do nothing at all when there is nothing to do. Its session must be a superuser's, with nothing but pg_catalog in
// search_path. It knows neither Kubernetes nor who asks.
package database

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Declared is how a database should be.
type Declared struct {
	// Claimant is whose the database and its roles are, "NAMESPACE/NAME". What another one has claimed is refused.
	Claimant string `json:"claimant"`
	// Exclusive says that the whole server is the claimant's: nothing on it is refused as somebody else's.
	Exclusive bool `json:"exclusive,omitempty"`
	// Adopt takes over a database and roles that are there and that nobody has claimed.
	Adopt bool `json:"adopt,omitempty"`
	// Name is the database, Owner the role that owns it.
	Name  string `json:"name"`
	Owner Login  `json:"owner"`
	// ConnectionLimit is the database's, -1 for none.
	ConnectionLimit int32 `json:"connectionLimit"`
	// Extensions are created as superuser. None is ever removed.
	Extensions []string `json:"extensions,omitempty"`
	// Roles are the further ones. One that the claimant had and that is not among them any more is removed. One that is
	// not there yet and whose password is not known waits for that.
	Roles []Role `json:"roles,omitempty"`
}

// Login is a role that may log in.
type Login struct {
	Name string `json:"name"`
	// Password is nil where it is not known: the role keeps the one that it has.
	Password *string `json:"password,omitempty"`
	// ConnectionLimit is -1 for none.
	ConnectionLimit int32 `json:"connectionLimit"`
}

// Role is a further role of a database.
type Role struct {
	Login
	Access  Access   `json:"access"`
	Schemas []string `json:"schemas,omitempty"`
}

// Access is what a role may do.
type Access string

// The values of Access.
const (
	ReadOnly  Access = "ReadOnly"
	ReadWrite Access = "ReadWrite"
	Owner     Access = "Owner"
)

// Reason is why something declared can't be, in one word.
type Reason string

// The reasons.
const (
	DatabaseTaken   Reason = "DatabaseTaken"   // another claimant has the database
	DatabaseExists  Reason = "DatabaseExists"  // it is there and nobody's; it is not to be adopted
	DatabaseForeign Reason = "DatabaseForeign" // another role owns it
	RoleTaken       Reason = "RoleTaken"       // another claimant has the role
	RoleExists      Reason = "RoleExists"      // it is there and nobody's; it is not to be adopted
	RolePrivileged  Reason = "RolePrivileged"  // it has rights that no application's role may have
	RoleMissing     Reason = "RoleMissing"     // a role that is to have another password is not there
	NoPassword      Reason = "NoPassword"      // a role has to be made and there is no password for it
	ServerRefused   Reason = "ServerRefused"   // PostgreSQL itself refuses
)

// Refusal is an error: what is declared can't be until somebody changes something.
type Refusal struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
}

func (r *Refusal) Error() string { return r.Message }

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// Connect opens a session in a database of the server.
type Connect func(ctx context.Context, database string) (*pgx.Conn, error)

// Ensure makes everything as declared. It returns what it has changed, in words for people, also when it then fails; a
// *Refusal where somebody has to change something first.
func Ensure(ctx context.Context, connect Connect, d Declared) (changed []string, err error) {
	w := &work{Declared: d}
	err = w.onServer(ctx, connect, w.ensure)
	return w.changed, err
}

// Drop removes the database with all that is in it, and the roles, as far as they are the claimant's. A role that
// something else depends on loses its login.
func Drop(ctx context.Context, connect Connect, d Declared) (changed []string, err error) {
	w := &work{Declared: d}
	err = w.onServer(ctx, connect, w.drop)
	return w.changed, err
}

// work is one run.
type work struct {
	Declared
	connect Connect
	// super is the session in the database postgres.
	super   *pgx.Conn
	changed []string
}

func (w *work) did(format string, args ...any) {
	w.changed = append(w.changed, fmt.Sprintf(format, args...))
}

// onServer does something with a session in the database postgres.
func (w *work) onServer(ctx context.Context, connect Connect, do func(context.Context) error) error {
	w.connect = connect
	conn, err := connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	w.super = conn
	return do(ctx)
}

// alone does something while no other run is at work on the server. They wait for each other at the table of claims,
// which nobody but a superuser can lock; the key of an advisory lock is free to everybody who may connect. A session of
// its own keeps the lock: what is done in the meantime is no single transaction.
func (w *work) alone(ctx context.Context, do func(context.Context) error) error {
	conn, err := w.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // and with it the lock ends
	// All but its own kind go on.
	const lock = "SET lock_timeout = 0; BEGIN; LOCK TABLE toban.claim IN SHARE UPDATE EXCLUSIVE MODE"
	if _, err := conn.Exec(ctx, lock, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("wait for other work on the server's databases: %w", err)
	}
	return do(ctx)
}

func (w *work) ensure(ctx context.Context) error {
	if err := w.prepareClaims(ctx); err != nil {
		return err
	}
	return w.alone(ctx, w.ensureAll)
}

func (w *work) ensureAll(ctx context.Context) error {
	there, err := w.observe(ctx)
	if err != nil {
		return err
	}
	if refusal := check(w.Declared, there); refusal != nil {
		return refusal
	}
	former, err := w.former(ctx)
	if err != nil {
		return err
	}
	// Before anything that could fail in the database, where its users may have put obstacles.
	for _, name := range former {
		if err := w.shutOut(ctx, name); err != nil {
			return err
		}
	}
	if err := w.ensureLogin(ctx, w.Owner, there.roles[w.Owner.Name]); err != nil {
		return err
	}
	if err := w.ensureDatabase(ctx, there.database); err != nil {
		return err
	}
	var roles []Role
	for _, role := range w.Roles {
		if role.Password == nil && !there.roles[role.Name].exists {
			continue
		}
		if err := w.ensureLogin(ctx, role.Login, there.roles[role.Name]); err != nil {
			return err
		}
		roles = append(roles, role)
	}
	return w.inDatabase(ctx, roles, former)
}

// inDatabase does what has to be done in the database itself, for the roles that are there.
func (w *work) inDatabase(ctx context.Context, roles []Role, former []string) error {
	conn, err := w.connect(ctx, w.Name)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if err := w.ensureExtensions(ctx, conn); err != nil {
		return err
	}
	for _, role := range roles {
		if err := w.ensureAccess(ctx, conn, role); err != nil {
			return err
		}
	}
	for _, name := range former {
		if err := w.removeRole(ctx, conn, name); err != nil {
			return err
		}
	}
	return nil
}
