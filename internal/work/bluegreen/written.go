package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// written is what one side writes for its own definitions, each as a hash, as it was when it was first noted. Between
// two major versions an expression, as that of a view, is not written in the same way: then each side is compared with
// itself. A row without a name says that all are noted. Another version may write something else: its number counts.
const written = `create table if not exists toban_sides.written (id bigint generated always as identity primary
	key, version int not null, sort text not null, name text not null, hash text not null)`

// versionNow is the number of the version of a server.
const versionNow = "current_setting('server_version_num')::int"

// noteWritten notes what a side writes in a database, whose schema is known to be ours, where that is not noted yet.
func noteWritten(ctx context.Context, conn *pgx.Conn) error {
	if err := do(ctx, conn, "make room for what is defined", written); err != nil {
		return err
	}
	noted, err := sql.Value[bool](ctx, conn, "look for what was defined",
		"select exists (select from toban_sides.written where name = '' and version = "+versionNow+")")
	if err != nil || noted {
		return err
	}
	now, err := writes(ctx, conn)
	if err != nil {
		return err
	}
	sorts, names, hashes := []string{""}, []string{""}, []string{""}
	for sort, all := range now {
		for name, hash := range all {
			sorts, names, hashes = append(sorts, sort), append(names, name), append(hashes, hash)
		}
	}
	// What follows in this session waits for locks again.
	if err := do(ctx, conn, "wait for locks", "set lock_timeout = 0"); err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "delete from toban_sides.written"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into toban_sides.written (version, sort, name, hash) select "+versionNow+`, *
			from unnest($1::text[], $2::text[], $3::text[])`, sorts, names, hashes)
		return err
	})
	if err != nil {
		return fmt.Errorf("note what is defined: %w", err)
	}
	return nil
}

// writes is what a side writes now for what has an expression, by sorts and names.
func writes(ctx context.Context, conn *pgx.Conn) (map[string]map[string]string, error) {
	major, err := majorOf(ctx, conn)
	if err != nil {
		return nil, err
	}
	look := looksOf(major, major)
	plain := look
	plain.alike = false
	parts, err := partsOf(ctx, conn, look)
	if err != nil {
		return nil, err
	}
	all, without := map[string]map[string]string{}, plain.definitions()
	for i, d := range look.definitions() {
		// Where both are the same there is no expression in it. Two queries of one sort are both asked at once.
		if d.query == without[i].query || all[d.sort] != nil {
			continue
		}
		if all[d.sort], err = named(ctx, conn, look, d.sort, parts); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// wasWritten is what was noted of a side, nil where nothing was, or by another version.
func wasWritten(ctx context.Context, conn *pgx.Conn) (map[string]map[string]string, error) {
	there, err := own(ctx, conn)
	if errors.Is(err, errForeign) {
		return nil, nil
	}
	if err == nil && there {
		there, err = sql.Value[bool](ctx, conn, "look for what was defined",
			"select to_regclass('toban_sides.written') is not null")
	}
	if err != nil || !there {
		return nil, err
	}
	var all map[string]map[string]string
	var sort, name, hash string
	rows := sql.Ask(ctx, conn, "select sort, name, hash from toban_sides.written where version = "+versionNow)
	_, err = pgx.ForEachRow(rows, []any{&sort, &name, &hash}, func() error {
		if all == nil {
			all = map[string]map[string]string{}
		}
		if name == "" {
			return nil
		}
		if all[sort] == nil {
			all[sort] = map[string]string{}
		}
		all[sort][name] = hash
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at what was defined: %w", err)
	}
	return all, nil
}

// writesOtherwise names what a side writes otherwise than it did when that was noted, in all databases.
func writesOtherwise(ctx context.Context, side Side) ([]string, error) {
	all, err := gather(ctx, side, func(conn *pgx.Conn, d database) (differ []string, err error) {
		was, err := wasWritten(ctx, conn)
		if err != nil || was == nil {
			return nil, err
		}
		now, err := writes(ctx, conn)
		if err != nil {
			return nil, err
		}
		for _, sort := range slices.Sorted(maps.Keys(now)) {
			for _, name := range unlike(was[sort], now[sort]) {
				differ = append(differ, fmt.Sprintf("%s: %s %s (not what it was on %s)", d.Name, sort, name, side.Name))
			}
		}
		return differ, nil
	})
	return slices.Concat(all...), err
}

// writeOtherwise names what either side of a link writes otherwise than it did when that was noted.
func writeOtherwise(ctx context.Context, l Link) ([]string, error) {
	here, there, err := both(func() ([]string, error) { return writesOtherwise(ctx, l.Serving) },
		func() ([]string, error) { return writesOtherwise(ctx, l.Following) })
	return append(here, there...), err
}
