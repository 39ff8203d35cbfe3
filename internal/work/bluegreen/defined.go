package bluegreen

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres/sql"
)

// DefinitionsDiffer is where a thing of a database is not the same on both sides, and no table.
const DefinitionsDiffer = "DefinitionsDiffer"

// sameDefinitions says as an error what of each database is not defined in the same way on both sides, template1 among
// them. Notes tell what is changed meanwhile; this finds what nobody has noted, and what the copy has not brought
// along. It takes a second for some thousand tables: it is for before a pause.
func (l Link) sameDefinitions(ctx context.Context) error {
	look, err := l.looks(ctx)
	if err != nil {
		return err
	}
	differ, err := gather(ctx, l.Serving, func(conn *pgx.Conn, d database) ([]string, error) {
		return in(ctx, l.Following, d, func(follower *pgx.Conn, _ database) ([]string, error) {
			return l.definitionsDiffer(ctx, look, conn, follower)
		})
	})
	if err != nil {
		return err
	}
	template, err := l.templateDiffers(ctx, look)
	if err != nil {
		return err
	}
	all := append(slices.Concat(differ...), template...)
	if len(all) == 0 {
		return nil
	}
	return InTheWay{DefinitionsDiffer, "this differs between the sides, and no note says why: " + some(all) + ". " +
		undoing(look.major)}
}

// silentSince is the first major version with event_triggers, by which something is undone without a note.
const silentSince = 17

// undoing says what to do about a difference. What is undone in the ordinary way is noted as another change.
func undoing(major int) string {
	if major < silentSince {
		return "Begin the upgrade anew, so that the copy has it: what undoes it is noted as a change of the schema"
	}
	return "Undo it as a superuser, with SET event_triggers = off before in the same session, because it is noted as " +
		"a change of the schema otherwise; or begin the upgrade anew, so that the copy has it"
}

// some are names, not too many.
func some(names []string) string {
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, "; ")
}

func (l Link) looks(ctx context.Context) (looks, error) {
	var majors [2]int
	for i, side := range []Side{l.Serving, l.Following} {
		var err error
		if majors[i], err = on(ctx, side, func(conn *pgx.Conn) (int, error) { return majorOf(ctx, conn) }); err != nil {
			return looks{}, err
		}
	}
	return looksOf(majors[0], majors[1]), nil
}

// templateDiffers is about template1, where that is a template: it is in no list of databases then.
func (l Link) templateDiffers(ctx context.Context, look looks) ([]string, error) {
	for _, side := range []Side{l.Serving, l.Following} {
		is, err := isTemplate(ctx, side)
		if err != nil || !is { // another one is told by the databases, or nobody gets in
			return nil, err
		}
	}
	template := database{Name: "template1"}
	return in(ctx, l.Serving, template, func(conn *pgx.Conn, _ database) ([]string, error) {
		return in(ctx, l.Following, template, func(follower *pgx.Conn, _ database) ([]string, error) {
			return l.definitionsDiffer(ctx, look, conn, follower)
		})
	})
}

// isTemplate says whether template1 is one, and somebody gets in.
func isTemplate(ctx context.Context, side Side) (bool, error) {
	return on(ctx, side, func(conn *pgx.Conn) (bool, error) {
		return sql.Value[bool](ctx, conn, "look whether template1 is a template", queryTemplate)
	})
}

// definitionsDiffer names what is not the same in one database. Sums are compared first, by sorts.
func (l Link) definitionsDiffer(ctx context.Context, look looks, serving, following *pgx.Conn) (differ []string,
	err error,
) {
	parts, err := partsOf(ctx, serving, look)
	if err != nil {
		return nil, err
	}
	sorts, err := sortsDiffer(ctx, look, parts, serving, following)
	if err != nil {
		return nil, err
	}
	for _, sort := range sorts {
		one, err := named(ctx, serving, look, sort, parts)
		if err != nil {
			return nil, err
		}
		other, err := named(ctx, following, look, sort, parts)
		if err != nil {
			return nil, err
		}
		names := unlike(one, other)
		if len(names) == 0 { // several may have one name, or somebody has changed it meanwhile
			still, err := sortsDiffer(ctx, look, parts, serving, following)
			if err != nil {
				return nil, err
			}
			if slices.Contains(still, sort) {
				differ = append(differ, fmt.Sprintf("%s: %s (it is not known which)", serving.Config().Database, sort))
			}
		}
		for _, name := range names {
			differ = append(differ, fmt.Sprintf("%s: %s %s%s", serving.Config().Database, sort, name,
				l.where(one[name], other[name])))
		}
	}
	return differ, nil
}

// sortsDiffer are the sorts of what is not the same in one database, by sums.
func sortsDiffer(ctx context.Context, look looks, parts int, serving, following *pgx.Conn) ([]string, error) {
	here, there, err := both(func() (map[string]string, error) { return sums(ctx, serving, look, parts) },
		func() (map[string]string, error) { return sums(ctx, following, look, parts) })
	if err != nil {
		return nil, err
	}
	return unlike(here, there), nil
}

// where says on which side alone something is, by its hash on both.
func (l Link) where(serving, following string) string {
	switch {
	case following == "":
		return " (only on " + l.Serving.Name + ")"
	case serving == "":
		return " (only on " + l.Following.Name + ")"
	}
	return ""
}

// unlike are the names that do not have the same in both.
func unlike(one, other map[string]string) (names []string) {
	for name, value := range one {
		if other[name] != value {
			names = append(names, name)
		}
	}
	for name := range other {
		if _, there := one[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sums are those of what all objects of a database are, by sorts, in whatever order they come. What locks is asked in
// parts.
func sums(ctx context.Context, conn *pgx.Conn, look looks, parts int) (map[string]string, error) {
	// Sixty bits of a hash each, which no version writes otherwise.
	const sum = `select sort, count(*) || ' ' || sum(('x' || left(md5(coalesce(name, '') || ' ' ||
		coalesce(text, '')), 15))::bit(60)::bigint) from (%s) d where %s group by sort`
	var queries []string
	all := map[string]string{}
	for _, d := range look.definitions() {
		query := fmt.Sprintf("select %s as sort, name, text from (%s) d", sql.Literal(d.sort), d.query)
		if !slices.Contains(locking, d.sort) {
			queries = append(queries, query)
			continue
		}
		for part := range parts {
			found, err := pairs(ctx, conn, fmt.Sprintf(sum, query, ofPart(parts, part)))
			if err != nil {
				return nil, err
			}
			all[d.sort] += found[d.sort] + ";"
		}
	}
	found, err := pairs(ctx, conn, fmt.Sprintf(sum, strings.Join(queries, " union all "), "true"))
	maps.Copy(all, found)
	return all, err
}

// named are the objects of one sort, each with a hash of what it is.
func named(ctx context.Context, conn *pgx.Conn, look looks, sort string, parts int) (map[string]string, error) {
	all := map[string]string{}
	if !slices.Contains(locking, sort) {
		parts = 1
	}
	for _, d := range look.definitions() {
		if d.sort != sort {
			continue
		}
		for part := range parts {
			found, err := pairs(ctx, conn, "select name, md5(coalesce(text, '')) from ("+d.query+
				") d where name is not null and "+ofPart(parts, part))
			if err != nil {
				return nil, err
			}
			maps.Copy(all, found)
		}
	}
	return all, nil
}

// partOf is about how many objects are in one part of what locks.
const partOf = 200

// partsOf is in how many parts a database is asked for what locks: as many on both sides, by what one of them has.
// Where no expression is asked for, nothing locks, and each part would read all for nothing.
func partsOf(ctx context.Context, conn *pgx.Conn, look looks) (int, error) {
	if !look.alike {
		return 1, nil
	}
	return sql.Value[int](ctx, conn, "count what is defined", fmt.Sprintf(`select 1 + (greatest((select count(*)
		from pg_rewrite where oid >= 16384), (select count(*) from pg_proc where oid >= 16384)) / %d)::int`, partOf))
}

// ofPart says of an object that it is in one of some parts. Its name, unlike its number, is the same on both sides.
func ofPart(parts, part int) string {
	return fmt.Sprintf("abs(hashtext(coalesce(name, ''))::bigint) %% %d = %d", parts, part)
}

// pairs are those that a query returns. Where somebody holds a lock for longer, it lets others go on, and asks again.
func pairs(ctx context.Context, conn *pgx.Conn, query string) (map[string]string, error) {
	if err := do(ctx, conn, "compile no query, and hold nobody up", "set jit = off",
		fmt.Sprintf("set lock_timeout = %d", lockTimeout.Milliseconds())); err != nil {
		return nil, err
	}
	const lockNotAvailable = "55P03"
	for until := time.Now().Add(comparePatience); ; {
		all, err := pairsOnce(ctx, conn, query)
		if sql.Code(err) != lockNotAvailable || !time.Now().Before(until) || !pause.For(ctx, lockTimeout) {
			return all, err
		}
	}
}

// pairsOnce is pairs, but for those who hold a lock.
func pairsOnce(ctx context.Context, conn *pgx.Conn, query string) (map[string]string, error) {
	all := map[string]string{}
	var name, value string
	_, err := pgx.ForEachRow(sql.Ask(ctx, conn, query), []any{&name, &value}, func() error {
		all[name] = value
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at what is defined: %w", err)
	}
	return all, nil
}
