package tablerestore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres/sql"
)

// ofOurs is a mark as far as it counts: every owner can write a comment on what is his. So it counts on what belongs to
// the superuser, and on what belongs to whom this restore gives it: he could have nobody but himself believe it.
func ofOurs(m *mark, owner string, heirs ...string) *mark {
	if owner != naming.RoleSuperuser && !slices.Contains(heirs, owner) {
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

// owners are who owns on the primary what somebody owns in the copy.
type owners struct {
	primary *pgx.Conn
	// database owns the database on the primary.
	database string
	names    map[string]string
}

// heir is who owns on the primary a schema or the database that somebody has owned in the copy.
func (own *owners) heir(ctx context.Context, owner string) (string, error) {
	there, err := sql.Value[bool](ctx, own.primary, "look for the role "+owner,
		"select exists (select from pg_roles where rolname = $1)", owner)
	if err != nil {
		return "", err
	}
	if !there {
		return own.database, nil
	}
	return owner, nil
}

// of is who owns on the primary what somebody has owned in the copy.
func (own *owners) of(owner string) string {
	if o := own.names[owner]; o != "" {
		return o
	}
	return own.database
}

// ofTables finds who owns what is restored.
func (own *owners) ofTables(ctx context.Context, tables []*table) error {
	roles, err := column(ctx, own.primary, "select rolname::text from pg_roles")
	if err != nil {
		return err
	}
	own.names = map[string]string{}
	for _, t := range tables {
		for _, m := range t.family {
			switch {
			case own.names[m.owner] != "":
			case slices.Contains(roles, m.owner):
				own.names[m.owner] = m.owner
			case t.present != nil:
				own.names[m.owner] = t.present.owner
			default:
				own.names[m.owner] = own.database
			}
		}
		root := t.family[0].owner
		if t.owner = own.names[root]; t.owner != root {
			t.say("Its owner %s is not there any more: it belongs to %s.", root, t.owner)
		}
	}
	return nil
}

// ofEntries finds who owns on the primary what is in the dump.
func (own *owners) ofEntries(ctx context.Context, object *Object, entries []entry) (owners []string, err error) {
	roles, err := column(ctx, own.primary, "select rolname::text from pg_roles")
	if err != nil {
		return nil, err
	}
	own.names = map[string]string{"": own.database, "pg_database_owner": own.database}
	for _, e := range entries {
		if own.names[e.owner] == "" {
			own.names[e.owner] = e.owner
			if !slices.Contains(roles, e.owner) {
				own.names[e.owner] = own.database
				object.say("The owner %s is not there any more: what was his belongs to %s.", e.owner, own.database)
			}
		}
		if owner := own.names[e.owner]; !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	return owners, nil
}
