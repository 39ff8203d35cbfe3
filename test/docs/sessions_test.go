package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// clients are PostgreSQL's programs that connect to a server, and those of others that our images have.
var clients = strings.Fields(`psql pg_amcheck pg_basebackup pg_createsubscriber pg_dump pg_dumpall pg_isready
	pg_receivewal pg_recvlogical pg_restore pg_rewind pg_upgrade pgbench pgbouncer clusterdb createdb createuser dropdb
	dropuser reindexdb vacuumdb --single`)

// connecting are the packages that connect to a server, and connects their functions.
var (
	connecting = []string{"pgx", "pgconn", "pgxpool", "sql", "stdlib"}
	connects   = regexp.MustCompile(`^(Connect|Connect\w*(Config|Options)|New|NewWithConfig|Open\w*)$`)
	// connectsItself is in SQL and settings that have the server itself connect to another one.
	connectsItself = regexp.MustCompile(`(?i)\b(create|alter) subscription\b.* connection\b|\bdblink_connect`)
)

// pinnedBy are places whose settings another function makes. A place is a file, a function there, and what connects.
var pinnedBy = map[string]string{
	"internal/archive/restore/inspect.go amcheck: pg_amcheck": "internal/archive/restore/session.go optionsVariable",
	"internal/archive/take/snapshot.go BeginSession: pgconn":  "internal/work/takehost.go connection",
	"internal/archive/take/stream.go openStream: pgconn":      "internal/work/takehost.go connection",
	"internal/work/tablerestore/dump.go write: pg_dump":       "internal/work/tablerestore/dump.go pgOptions",
	"internal/work/tablerestore/dump.go loadAs: pg_restore":   "internal/work/tablerestore/dump.go pgOptions",
	"internal/cli/psql/psql.go command: psql":                 "internal/cli/psql/psql.go PSQLOptions",
	"internal/work/initjob/connect.go open: pgx":              "internal/work/initjob/connect.go config",
	"internal/work/major/trial.go copy: psql":                 "internal/work/major/trial.go programOptions",
	"internal/work/major/trial.go copyAll: pg_dump":           "internal/work/major/trial.go programOptions",
	"internal/work/major/trial.go copyAll: pg_dumpall":        "internal/work/major/trial.go programOptions",
	"internal/postgres/rewind.go Rewind: pg_rewind":           "internal/postgres/rewind.go askingSource",
	"internal/postgres/rewind.go unsettled: psql":             "internal/postgres/rewind.go askingSource",
	"internal/work/drill/pod.go connectWith: pgx":             "internal/work/drill/pod.go settings",
	"internal/work/drill/pod.go connectWith: a connection":    "internal/work/drill/pod.go settings",
	"internal/work/takehost.go askPrimary: pgconn":            "internal/work/takehost.go connection",
	"internal/work/takehost.go probe: pgconn":                 "internal/work/takehost.go connection",
}

// unpinned are places that have no settings of ours, and why that harms nobody.
var unpinned = map[string]string{
	"internal/work/bluegreen/follow.go subscription: subscription": appliesPinned,
	"internal/work/bluegreen/login.go Reconnect: subscription":     appliesPinned,
	"internal/work/tablerestore/dump.go contents: pg_restore": "it lists what is in a file, " +
		"and connects to nothing",
	"internal/cli/process/pooler.go Pooler: pgbouncer": "PgBouncer's sessions are those of clients, by their own " +
		"logins, and of a role without rights that runs one query in the database postgres",
	"internal/postgres/single.go letUsIn: --single": "it is no session that somebody has settings for, and its two " +
		"statements name no object by a path",
	"internal/work/former/collect.go var: pg_dump":    collects,
	"internal/work/former/collect.go var: pg_dumpall": collects,
	"internal/work/former/collect.go var: pg_restore": collects,
	"internal/work/former/collect.go var: psql":       collects,
	"internal/work/major/dump.go dumps: pg_dump":      "it is the name of the file in whose place this program runs",
	"internal/work/major/pgupgrade.go pgUpgrade: pg_upgrade": "it and its programs empty search_path before their " +
		"first statement, and other settings could only make it fail; nobody else gets at its servers",
	"internal/postgres/sql/open.go Open: pgx":             "who names the connection says the settings",
	"internal/postgres/query.go Connection: a connection": "who opens a session with it says the settings",
	"internal/operator/desired/myapp/deployment.go podTemplate: a connection": "it is how an application is told of " +
		"its database",
	"internal/front/pooler/console.go connect: pgconn": "it is PgBouncer's console, and no server",
	"internal/front/pooler/console.go var: pgbouncer":  "it is the name of PgBouncer's own user and database",
	"internal/postgres/copy.go run: pg_basebackup": "it is a session of the replication protocol in no database: " +
		"what is set for a database or a role does not count there, and it runs no SQL",
	"internal/postgres/copy.go withNewSlot: pg_receivewal": "it is such a session too",
	"internal/postgres/query.go Standbys: pg_basebackup":   "it is the name of a session",
}

const (
	appliesPinned = "PostgreSQL's workers empty search_path themselves, on both sides, and set the options of their " +
		"connection"
	collects = "it is the name of a file"
)

// An owner of a database sets by ALTER DATABASE … SET what sessions there begin with, also "role" and search_path. So
// every session of ours, and every one that we start for somebody, takes its settings from internal/postgres/sql, which
// count before that.
func TestEverySessionOfOursHasItsSettings(t *testing.T) {
	s := scan{T: t, places: map[string]bool{}, makes: map[string]bool{}}
	for _, top := range []string{"internal", "cmd"} {
		s.walk(top)
	}
	for place, pinned := range s.places {
		by, other := pinnedBy[place]
		_, declared := unpinned[place]
		switch {
		case other && declared:
			t.Errorf("%s: it has settings, and is declared to have none", place)
		case other && !s.makes[by]:
			t.Errorf("%s: %s, which is to make its settings, takes none from internal/postgres/sql", place, by)
		case !other && !declared && !pinned:
			t.Errorf("%s: it takes no settings from internal/postgres/sql: pin it, or declare here why it needs none",
				place)
		}
	}
	for _, declared := range append(slices.Collect(maps.Keys(pinnedBy)), slices.Collect(maps.Keys(unpinned))...) {
		if _, there := s.places[declared]; !there {
			t.Errorf("%s: nothing connects there any more", declared)
		}
	}
}

// scan finds the places of the program that connect to a server.
type scan struct {
	*testing.T
	// places are all of them, with whether their own function takes settings from internal/postgres/sql; makes are the
	// functions that do, by file and name.
	places, makes map[string]bool
}

func (s *scan) walk(top string) {
	err := filepath.WalkDir(filepath.Join(root, top), func(name string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
		for _, d := range file.Decls {
			s.declaration(strings.TrimPrefix(filepath.ToSlash(name), root+"/"), d)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scan) declaration(file string, d ast.Decl) {
	name := "var"
	if f, is := d.(*ast.FuncDecl); is {
		name = f.Name.Name
	}
	pinned, found := false, []string{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			by, is := n.X.(*ast.Ident)
			pinned = pinned || is && by.Name == "sql" && strings.HasPrefix(n.Sel.Name, "Settings")
			switch {
			case is && slices.Contains(connecting, by.Name) && connects.MatchString(n.Sel.Name):
				found = append(found, by.Name)
			case n.Sel.Name == "Connection": // of internal/postgres/sql: who names one says the settings
				found = append(found, "a connection")
			}
		case *ast.BasicLit:
			if what := s.program(n); what != "" {
				found = append(found, what)
			}
		case *ast.ImportSpec: // it names a package, such as that of the verb psql
			return false
		case *ast.Field: // a tag is no text of the program
			return n.Tag == nil
		}
		return true
	})
	s.makes[file+" "+name] = pinned
	for _, what := range found {
		s.places[file+" "+name+": "+what] = pinned
	}
}

// program is the client that a text names, or what has the server itself connect.
func (s *scan) program(text *ast.BasicLit) string {
	value, err := strconv.Unquote(text.Value)
	if text.Kind != token.STRING || err != nil {
		return ""
	}
	if base := path.Base(value); slices.Contains(clients, base) {
		return base
	}
	if connectsItself.MatchString(value) {
		return "subscription"
	}
	return ""
}
