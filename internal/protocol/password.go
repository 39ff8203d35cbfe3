package protocol

import (
	"context"

	"toban.dev/internal/postgres/database"
)

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
