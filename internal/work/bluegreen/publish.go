package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/wal"
)

// markPrefix is how the comment of the schema begins. That it belongs to the superuser is what counts (isOwn); this
// tells it from one that a person has made as that.
const markPrefix = "made by Toban for a blue/green upgrade: "

// failoverSince is the first major version whose slots can come along when another instance is elected.
const failoverSince = 17

// ErrLongTransaction says that a slot has waited in vain for the transactions that were under way.
var ErrLongTransaction = errors.New("a transaction is under way for too long")

// notes are what notices a change of the schema. What concerns temporary objects, and what Toban makes, is none. It
// runs as its owner, a superuser, with no search path but PostgreSQL's, and reads no table of a user.
const notes = `
create schema toban_sides;
comment on schema toban_sides is %s;
create table toban_sides.barrier (id int primary key, n bigint not null);
insert into toban_sides.barrier values (1, 0);
create table toban_sides.slot (name text primary key, lsn pg_lsn not null);
create table toban_sides.noted (
	id bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(),
	tag text not null, object text not null
);
%s;
revoke all on function toban_sides.note() from public;
create event trigger toban_sides_end on ddl_command_end execute function toban_sides.note();
alter event trigger toban_sides_end enable always;
create event trigger toban_sides_drop on sql_drop execute function toban_sides.note();
alter event trigger toban_sides_drop enable always`

// noting is the function that writes a note, and what it does after that.
const noting = `
create or replace function toban_sides.note() returns event_trigger language plpgsql security definer
	set search_path = pg_catalog, pg_temp as $function$
declare
	n bigint;
	-- What Toban keeps in the database postgres is about one side alone. See ofUsers.
	ours constant boolean := current_database() = 'postgres' and session_user = 'postgres';
	kept constant text := '^toban(\.(claim|rebuilt|analyzed|verifier)($|_pkey$|[.(]).*)?$';
begin
	if tg_tag = 'REINDEX' or tg_tag = 'ALTER COLLATION' and session_user = 'postgres'
		and current_setting('application_name') = 'toban init' then -- the Job that rebuilds indexes
		return;
	end if;
	if tg_event = 'sql_drop' then
		insert into toban_sides.noted (tag, object)
			select tg_tag, object_identity from pg_event_trigger_dropped_objects()
			where original and not is_temporary and coalesce(schema_name, '') <> 'toban_sides'
				and object_identity not in ('toban_to_green', 'toban_to_blue', 'toban_sides')
				and not (ours and object_identity ~ kept);
	else
		insert into toban_sides.noted (tag, object)
			select tg_tag, coalesce(object_identity, object_type) from pg_event_trigger_ddl_commands()
			where coalesce(schema_name, '') not in ('pg_temp', 'toban_sides')
				and coalesce(object_identity, '') not in ('toban_to_green', 'toban_to_blue', 'toban_sides')
				and not (ours and coalesce(object_identity, '') ~ kept);
	end if;
	get diagnostics n = row_count;
	if n = 0 and tg_event = 'ddl_command_end' and tg_tag = 'DROP OWNED' and not ours then
		insert into toban_sides.noted (tag, object) values (tg_tag, 'by a role'); -- it lists no policy
		n := 1;
	end if;
	%s
end $function$`

// refusing lets superusers alone change the schema, and notes that. A materialized view may be refreshed.
const refusing = `if n > 0 and tg_tag <> 'REFRESH MATERIALIZED VIEW'
		and not (select rolsuper from pg_roles where rolname = session_user) then
		raise exception 'the schema can''t be changed (%) while the former side of an upgrade follows', tg_tag
			using errcode = 'object_not_in_prerequisite_state', hint = 'Accept the upgrade, or take it back, and try '
			|| 'again when that is done: kubectl toban upgrade NAME --accept, or --back.';
	end if;`

// HoldSchema has the serving side refuse to change its schema: the following one would not have the change, and there
// would be no way back. Superusers may change it all the same.
func (p Publisher) HoldSchema(ctx context.Context) error {
	return each(ctx, p.Serving, func(conn *pgx.Conn, _ database) error {
		there, err := hasNotes(ctx, conn)
		if err != nil || !there {
			return err
		}
		return do(ctx, conn, "hold the schema", fmt.Sprintf(noting, refusing))
	})
}

// Publish makes what the following side reads: in each database the notes, a publication of all tables that there are,
// and a slot. It returns the position: whoever has all WAL up to it, and nothing from it on, can follow.
//
// A table whose CREATE was under way when the tables were listed is in no list, and nobody has noted it; but it is in
// the copy, because a slot waits for the transactions that were under way. So once the slots are there the tables are
// looked at again, and where one is missing it begins anew: no other can come without a note.
func (p Publisher) Publish(ctx context.Context, patience time.Duration) (position wal.LSN, err error) {
	for range beginnings {
		position, missing, err := p.publishOnce(ctx, patience)
		if err != nil || len(missing) == 0 {
			return position, err
		}
		if err := p.beginAnew(ctx); err != nil {
			return 0, err
		}
	}
	return 0, InTheWay{SchemaChanged, "tables are made all the time. Wait until that has ended"}
}

// beginnings is how often a publication is begun before it is given up.
const beginnings = 5

// publishOnce makes what is missing, and returns the tables that are not published for all that.
func (p Publisher) publishOnce(ctx context.Context, patience time.Duration) (at wal.LSN, missing []string, err error) {
	err = each(ctx, p.Serving, func(conn *pgx.Conn, _ database) error { return p.publish(ctx, conn) })
	if err != nil {
		return 0, nil, err
	}
	starts, err := gather(ctx, p.Serving, func(conn *pgx.Conn, d database) (wal.LSN, error) {
		return p.makeSlot(ctx, conn, d, patience)
	})
	if err != nil {
		return 0, nil, err
	}
	lacking, err := gather(ctx, p.Serving, func(conn *pgx.Conn, _ database) ([]string, error) {
		return p.unpublished(ctx, conn)
	})
	if missing = slices.Concat(lacking...); err != nil || len(missing) > 0 {
		return 0, missing, err
	}
	return slices.Max(starts), nil, p.pass(ctx)
}

// beginAnew drops the slots, which begin too early for a table that is to be published: what was written there before
// would be neither in the copy nor sent. The publications go after them, so that whoever comes next sees the same,
// wherever this one was cut off. Where somebody reads a slot, it is too late for that.
func (p Publisher) beginAnew(ctx context.Context) error {
	conn, err := p.Serving.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(conn)
	slots, err := p.ourSlots(ctx)
	if err != nil {
		return err
	}
	read, err := sql.Value[bool](ctx, conn, "look for who reads the slots",
		"select exists (select from pg_replication_slots where slot_name = any ($1) and active)", slots)
	if err != nil {
		return err
	}
	if read {
		return InTheWay{TablesDiffer, "a table is not published, and the other side follows already"}
	}
	gone := func() (bool, error) { return dropSlots(ctx, conn, slots) }
	if err := wait(ctx, "remove the slots of "+p.Serving.Name, gone); err != nil {
		return err
	}
	return each(ctx, p.Serving, func(conn *pgx.Conn, _ database) error {
		return do(ctx, conn, "remove the publication", "drop publication if exists "+p.Name)
	})
}

// publish makes the notes and the publication of one database, where they are missing.
func (p Publisher) publish(ctx context.Context, conn *pgx.Conn) error {
	noted, err := own(ctx, conn)
	if errors.Is(err, errForeign) { // whoever owns a publication says what is sent
		return InTheWay{bluegreen.NameTaken, conn.Config().Database + ": " + err.Error()}
	}
	if err != nil {
		return err
	}
	published, err := sql.Value[bool](ctx, conn, "look for the publication",
		"select exists (select from pg_publication where pubname = $1)", p.Name)
	if err != nil {
		return err
	}
	if !noted {
		statements := fmt.Sprintf(notes, sql.Literal(markPrefix+p.Mark), fmt.Sprintf(noting, ""))
		if err := do(ctx, conn, "make the notes", statements); err != nil {
			return err
		}
	}
	if published {
		return nil
	}
	missing, err := p.unpublished(ctx, conn)
	if err != nil {
		return err
	}
	// A table that is seen only now was not looked at before.
	if err := carriesAll(ctx, conn, p.Serving.Newest); err != nil {
		return err
	}
	return do(ctx, conn, "make the publication",
		fmt.Sprintf("create publication %s for table only %s", p.Name, strings.Join(missing, ", only ")))
}

// makeSlot makes the slot of a database, if it is not there, and returns where it starts. One that is not noted was
// made by somebody else, who may read it, and move it on; one that was intended and is not noted was made by a Pod that
// was cut off then, is read by nobody, and is made anew.
func (p Publisher) makeSlot(ctx context.Context, conn *pgx.Conn, d database, patience time.Duration) (wal.LSN, error) {
	major, err := majorOf(ctx, conn)
	if err != nil {
		return 0, err
	}
	failover := ""
	if major >= failoverSince {
		failover = ", failover => true"
	}
	if err := mustOwn(ctx, conn); err != nil {
		return 0, err
	}
	if err := dropIntended(ctx, conn, p.slot(d)); err != nil {
		return 0, err
	}
	var start string
	var noted bool
	err = conn.QueryRow(ctx, `select r.confirmed_flush_lsn::text, `+isNoted+` and plugin = 'pgoutput'
		and database = current_database() and not temporary
		from pg_replication_slots r where slot_name = $1`, p.slot(d)).Scan(&start, &noted)
	if err == nil && !noted {
		return 0, InTheWay{bluegreen.NameTaken, fmt.Sprintf("there is a replication slot %s that is not Toban's. Stop "+
			"who reads it, and drop it (pg_drop_replication_slot)", p.slot(d))}
	}
	if errors.Is(err, pgx.ErrNoRows) {
		// Where this Pod is gone the server gives up soon, and no slot is made that nobody notes.
		limit := fmt.Sprintf("set statement_timeout = %d; set client_connection_check_interval = 1000",
			patience.Milliseconds())
		if err := do(ctx, conn, "limit the time", limit); err != nil {
			return 0, err
		}
		start, err = makeNotedSlot(ctx, conn, p.slot(d), failover)
	}
	const canceled = "57014"
	if sql.Code(err) == canceled && ctx.Err() == nil {
		return 0, fmt.Errorf("%w: %s", ErrLongTransaction, oldest(ctx, p.Serving))
	}
	if err != nil {
		return 0, fmt.Errorf("make a slot: %w", err)
	}
	return wal.ParseLSN(start)
}

// dropIntended drops the slot of a name if it was intended, is not noted, and is read by nobody.
func dropIntended(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, `select pg_drop_replication_slot(slot_name) from pg_replication_slots r
		where slot_name = $1 and plugin = 'pgoutput' and database = current_database() and not temporary and `+
		isIntended, name)
	if err != nil {
		return fmt.Errorf("drop a slot that was not noted: %w", err)
	}
	return nil
}

// makeNotedSlot makes a slot, and notes it in the same transaction. PostgreSQL makes none where the transaction has
// written before, and by two statements: what it decodes while it makes one, where others change a schema, leaves the
// statement with the resource owner of the transaction (pg_create_logical_replication_slot of 17 and 18, which does not
// restore it as pg_logical_slot_get_changes does). An INSERT that has the slot as its source fails then, and the slot
// is there without a note. A note may be left of one that was lost.
//
// The slot is on disk before the note is: whoever is cut off between leaves one. So that it is meant is committed
// before, as a note without a position. It is no note of a slot that another Pod has made meanwhile.
func makeNotedSlot(ctx context.Context, conn *pgx.Conn, name, options string) (start string, err error) {
	const note = `insert into toban_sides.slot select $1::text, $2::pg_lsn where $2 > '0/0' or not exists (
		select from pg_replication_slots where slot_name = $1) on conflict (name) do update set lsn = excluded.lsn`
	if _, err := conn.Exec(ctx, note, name, "0/0"); err != nil {
		return "", fmt.Errorf("note that a slot is to be made: %w", err)
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		made := fmt.Sprintf("select lsn::text from pg_create_logical_replication_slot(%s, 'pgoutput'%s)",
			sql.Literal(name), options)
		if err := tx.QueryRow(ctx, made).Scan(&start); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, note, name, start)
		return err
	})
	return start, err
}

// oldest names the transaction that is under way for the longest time.
func oldest(ctx context.Context, side Side) string {
	const unknown = "it is not known which"
	conn, err := side.Connect(ctx, "postgres")
	if err != nil {
		return unknown
	}
	defer sql.HangUp(conn)
	var words string
	err = conn.QueryRow(ctx, `select format('process %s of %s in %s, since %s', pid, usename, datname, xact_start)
		from pg_stat_activity where backend_xid is not null order by xact_start limit 1`).Scan(&words)
	if err != nil {
		return unknown
	}
	return words
}

// pass writes something behind the position, so that a server that replays up to it comes to know that it is there.
func (p Publisher) pass(ctx context.Context) error {
	return doOn(ctx, p.Serving, "write behind the position",
		"select pg_logical_emit_message(true, 'toban', 'position')")
}

// SwitchWAL ends the file of WAL that a side writes, so that the archive gets it.
func SwitchWAL(ctx context.Context, side Side) error {
	return doOn(ctx, side, "switch the WAL", "select pg_switch_wal()")
}
