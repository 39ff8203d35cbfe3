package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// connects are the calls that connect to a PostgreSQL server.
var connects = regexp.MustCompile(`\b(?:pgx|pgconn|pgxpool|sql)\.(Connect|ConnectConfig|New|NewWithConfig|Open)\(`)

// given has the files whose settings another one makes.
var given = map[string]string{
	"internal/backup/stream.go":   "internal/worker/takehost.go",
	"internal/backup/snapshot.go": "internal/worker/takehost.go",
}

// noServers has the files that connect to something else than a PostgreSQL server: PgBouncer's console.
var noServers = []string{"internal/pooler/console.go"}

// An owner of a database sets by ALTER DATABASE … SET what sessions there begin with, also "role". So every session of
// ours takes its settings from internal/session, which counts before that.
func TestEverySessionOfOursHasItsSettings(t *testing.T) {
	found := 0
	isOurs := func(path string) bool {
		return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") &&
			!slices.Contains(noServers, strings.TrimPrefix(path, root+"/"))
	}
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !isOurs(path) {
				return err
			}
			text := read(t, path)
			for _, call := range connects.FindAllStringSubmatch(text, -1) {
				found++
				if call[1] != "ConnectConfig" {
					t.Errorf("%s calls %s, which has no settings of ours: use ConnectConfig", path, call[0])
				}
				by := path
				if other, ok := given[strings.TrimPrefix(path, root+"/")]; ok {
					by = filepath.Join(root, other)
				}
				if !strings.Contains(read(t, by), "= session.Settings") {
					t.Errorf("%s connects to a server, and %s takes no settings from internal/session", path, by)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 6 {
		t.Errorf("only %d places were found that connect to a server", found)
	}
}
