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
