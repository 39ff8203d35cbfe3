package tablerestore

import (
	"context"
	"fmt"

	"toban.dev/internal/naming"
)

// ofOurs is a mark as far as it counts: every owner can write a comment on what is his. So it counts on what belongs to
// the superuser, and on what belongs to whom this restore gives it: he could have nobody but himself believe it.
func ofOurs(m *mark, owner string, heirs ...string) *mark {
	if owner != naming.RoleSuperuser && !has(heirs, owner) {
		return nil
	}
	return m
}

// markOf is the mark of a table that stands where one of a restored table's would, nil where it is no table, or
// somebody else's.
func (p *present) markOf(t *table) *mark {
	if p == nil || p.kind != "r" && p.kind != "p" {
		return nil
	}
	return ofOurs(p.mark, p.owner, t.owner)
}

// heir is who owns on the primary a schema that somebody has owned in the copy.
func (r *run) heir(ctx context.Context, owner string) (string, error) {
	var there bool
	err := r.primary.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1)", owner).Scan(&there)
	if err != nil {
		return "", fmt.Errorf("look for the role %s: %w", owner, err)
	}
	if !there {
		return r.databaseOwner, nil
	}
	return owner, nil
}
