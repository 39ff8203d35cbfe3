package bluegreen

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// isOwn says of a schema n that it is ours, with all relations in it: they belong to the superuser who asks. A comment
// proves nothing, because every owner can write one. What is ours once stays so: nobody else can rename it, drop it,
// make something in it, or put a trigger there.
const isOwn = `(pg_get_userbyid(n.nspowner) = current_user and not exists (select from pg_class o
	where o.relnamespace = n.oid and pg_get_userbyid(o.relowner) <> current_user))`

// foreignPublication says that somebody else has a publication with the name of one of the links.
const foreignPublication = `exists (select from pg_publication where pubname in ('` + nameForward + `', '` + nameBack +
	`') and pg_get_userbyid(pubowner) <> current_user)`

// errForeign is where somebody else has made what has our names.
var errForeign = errors.New("the schema " + schema + ", something in it, or a publication " + nameForward + " or " +
	nameBack + " does not belong to the role postgres: rename it")

// own says whether the schema is there. It is an error where that is somebody else's: then nothing in it is touched,
// because it would run that one's code as superuser.
func own(ctx context.Context, conn *pgx.Conn) (there bool, err error) {
	var ours bool
	err = conn.QueryRow(ctx, `select count(*) > 0, coalesce(bool_and(`+isOwn+`), true) and not `+foreignPublication+`
		from pg_namespace n where n.nspname = $1`, schema).Scan(&there, &ours)
	if err != nil {
		return false, fmt.Errorf("look whose the schema %s is: %w", schema, err)
	}
	if !ours {
		return there, errForeign
	}
	return there, nil
}

// mustOwn is an error where the schema is somebody else's, or not there, so that somebody else could make it. From then
// on the session fires nobody's triggers and rules but those that are there for replicas: a second wall.
func mustOwn(ctx context.Context, conn *pgx.Conn) error {
	there, err := own(ctx, conn)
	if err != nil {
		return err
	}
	if !there {
		return errors.New("there is no schema " + schema)
	}
	return do(ctx, conn, "fire no triggers", "set session_replication_role = replica")
}
