package protocol

import (
	"context"

	"toban.dev/internal/postgres/database"
)

// PathDatabase is where an agent makes a database as declared. POST DatabaseRequest: DatabaseResult. For the operator,
// and only the primary's agent does it.
const PathDatabase = "/v1/database"

// DatabaseRequest asks for a database with its roles, or for their end.
type DatabaseRequest struct {
	Declared database.Declared `json:"declared"`
	// Drop asks for the database and its roles to be removed, with all data.
	Drop bool `json:"drop,omitempty"`
}

// DatabaseResult is what became of it.
type DatabaseResult struct {
	// Changed is what was done, in words for people; nothing where all was there.
	Changed []string `json:"changed,omitempty"`
	// Refusal is why it can't be, nil where it is as declared.
	Refusal *database.Refusal `json:"refusal,omitempty"`
}

// Database asks the primary's agent to make a database as declared.
func (c *Client) Database(ctx context.Context, host string, request DatabaseRequest) (DatabaseResult, error) {
	return call[DatabaseResult](ctx, c, host, PathDatabase, request)
}

// PathPassword is where an agent gives a role another password. POST PasswordRequest: PasswordResult. For the operator,
// and only the primary's agent does it; agents of version 1 know it.
const PathPassword = "/v1/password"

// PasswordRequest asks for another password of an application's role.
type PasswordRequest struct {
	Role string `json:"role"`
	// Verifier is the password as PostgreSQL stores it (package scram). Where it is empty, it is only asked whether the
	// role could have another one.
	Verifier string `json:"verifier"`
}

// PasswordResult is what became of it.
type PasswordResult struct {
	// Refusal is why it can't be, nil where the role has it.
	Refusal *database.Refusal `json:"refusal,omitempty"`
}

// Password asks the primary's agent to give a role another password.
func (c *Client) Password(ctx context.Context, host string, request PasswordRequest) (PasswordResult, error) {
	return call[PasswordResult](ctx, c, host, PathPassword, request)
}
