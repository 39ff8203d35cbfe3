package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/postgres/sql"
)

// isOwn says of a schema n that it is ours, with all relations in it: they belong to the superuser who asks. A comment
// proves nothing, because every owner can write one. What is ours once stays so: nobody else can rename it, drop it,
// make something in it, or put a trigger there.
const isOwn = `(pg_get_userbyid(n.nspowner) = current_user and not exists (select from pg_class o
	where o.relnamespace = n.oid and pg_get_userbyid(o.relowner) <> current_user))`

// foreignPublication says that somebody else has a publication with the name of one of the links. A person may have
// made it as the superuser: one of ours is never there without the schema.
const foreignPublication = `exists (select from pg_publication where pubname in ('` + nameForward + `', '` + nameBack +
	`') and (pg_get_userbyid(pubowner) <> current_user or to_regnamespace('` + schema + `') is null))`

// ourSubscription says of a subscription s with the name of a link that it is ours: by its owner, and by what it reads
// from where.
const ourSubscription = `(pg_get_userbyid(s.subowner) = current_user and s.subpublications = array[s.subname::text]
	and s.subslotname ~ ('^' || s.subname || '_[0-9]+$'))`

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

// subscribed says whether a database has the subscription. All databases see those of all. Where somebody else has one
// of that name, it is in the way. Ours stays ours: nobody else can drop it, or give it another owner.
func (s Subscriber) subscribed(ctx context.Context, conn *pgx.Conn) (there bool, err error) {
	var ours bool
	err = conn.QueryRow(ctx, `select count(*) > 0, coalesce(bool_and(`+ourSubscription+`), true)
		from pg_subscription s join pg_database d on d.oid = s.subdbid
		where d.datname = current_database() and s.subname = $1`, s.Name).Scan(&there, &ours)
	if err != nil {
		return false, fmt.Errorf("look for the subscription: %w", err)
	}
	if !ours {
		return false, InTheWay{bluegreen.NameTaken, fmt.Sprintf("%s: there is a subscription %s that is not Toban's. "+
			"Drop or rename it", conn.Config().Database, s.Name)}
	}
	return there, nil
}

// ourSlots are the slots of the link that are noted as ours, each in its own database:
// slots have no owner, and everybody who may replicate can make one of any name.
func (p Publisher) ourSlots(ctx context.Context) (ours []string, err error) {
	named, err := on(ctx, p.Serving, func(conn *pgx.Conn) ([]string, error) {
		return sql.Column[string](ctx, conn, "look for slots", "select distinct database::text "+slotsOfLink+
			" and exists (select from pg_database d where d.datname = database and d.datallowconn)", p.Name)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range named { // also where no side follows any more
		noted, err := in(ctx, p.Serving, database{Name: name}, func(conn *pgx.Conn, _ database) ([]string, error) {
			return notedSlots(ctx, conn)
		})
		if err != nil {
			return nil, err
		}
		ours = append(ours, noted...)
	}
	ours = slices.DeleteFunc(ours, func(name string) bool { return !strings.HasPrefix(name, p.Name+"_") })
	return ours, nil
}

// isMade says of a replication slot r with a name of ours that a session of the superuser is just making it: its Pod
// may be gone, before the slot is noted.
const isMade = `(r.slot_name ~ '^(` + nameForward + `|` + nameBack + `)_' and r.confirmed_flush_lsn is null
	and exists (select from pg_stat_activity a where a.pid = r.active_pid and a.usename = current_user))`

// isNoted says of a replication slot r that it is noted in its database as ours, and isIntended that it is only noted
// that it was to be made: then it is ours as long as nobody reads it.
const (
	isNoted    = `exists (select from toban_sides.slot s where s.name = r.slot_name and s.lsn > '0/0')`
	isIntended = `not r.active and exists (select from toban_sides.slot s where s.name = r.slot_name and s.lsn = '0/0')`
)

// notedSlots are the slots of a database that are noted there as ours, or are being made. In a schema of somebody else
// nothing is noted.
func notedSlots(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	there, err := sql.Value[bool](ctx, conn, "look for notes of slots", `select to_regclass('toban_sides.slot') is not
		null and exists (select from pg_namespace n where n.nspname = $1 and `+isOwn+`)`, schema)
	if err != nil || !there {
		return nil, err
	}
	return sql.Column[string](ctx, conn, "look for what is noted of slots", `select r.slot_name::text
		from pg_replication_slots r where r.database = current_database() and r.plugin = 'pgoutput' and not r.temporary
		and (`+isMade+` or `+isNoted+` or `+isIntended+`)`)
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
