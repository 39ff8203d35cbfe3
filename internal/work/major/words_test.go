package major

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// saidCheck is what pg_upgrade 18 says of a column that it can't take over.
const saidCheck = `Performing Consistency Checks
-----------------------------
Checking cluster versions                                     ok
Checking data type usage                                      failed fatal

Your installation contains system-defined types in user tables.
A list of the problem columns is in the file:
    /pgdata/restore/data/pg_upgrade_output.d/20261123T140000.000/tables_using_reg.txt
Failure, exiting
`

// saidRestore is what it says when a dump can't be read.
const saidRestore = `Restoring database schemas in the new cluster                 *failure*

Consult the last few lines of "/pgdata/restore/data/pg_upgrade_output.d/x/log/pg_upgrade_dump_5.log" for
the probable cause of the failure.
Failure, exiting
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWordsOfACheck(t *testing.T) {
	output := t.TempDir()
	write(t, filepath.Join(output, "x/tables_using_reg.txt"), "In database: shop\n  public.t.c\n")
	write(t, filepath.Join(output, "x/log/pg_upgrade_server.log"), "ERROR: of no interest\n")
	got := words(saidCheck, output, "/pgdata/restore", "/pgdata")
	for _, want := range []string{"system-defined types in user tables", "In database: shop, public.t.c"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	for _, not := range []string{"/pgdata", output, "Failure, exiting", "of no interest"} {
		if strings.Contains(got, not) {
			t.Errorf("%q has %q", got, not)
		}
	}
}

func TestWordsOfADumpThatCannotBeRead(t *testing.T) {
	output := t.TempDir()
	write(t, filepath.Join(output, "x/log/pg_upgrade_dump_5.log"),
		"command: pg_restore\npg_restore: error: could not execute query: ERROR:  no such option\nCommand was: x\n"+
			"FATAL:  terminating connection due to administrator command\n")
	got := words(saidRestore, output, "/pgdata")
	if !strings.Contains(got, "ERROR: no such option") || strings.Contains(got, "administrator") {
		t.Errorf("%q", got)
	}
}

func TestWordsAreBounded(t *testing.T) {
	output := t.TempDir()
	line := "a line that is as long as a table's name may be\n"
	write(t, filepath.Join(output, "many.txt"), strings.Repeat(line, 1000))
	got := words(saidCheck, output)
	if len(got) > mostWords+3 || !strings.Contains(got, "and 988 lines more") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestExtensionUpdates(t *testing.T) {
	got := extensionUpdates("\\connect shop\nALTER EXTENSION \"hstore\" UPDATE;\nALTER EXTENSION \"a b\" UPDATE;\n" +
		"\\connect -reuse-previous=on \"dbname='my shop'\"\nALTER EXTENSION \"x\" UPDATE;\n")
	if want := []string{"shop: hstore", "shop: a b", "my shop: x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestInitdbOptionsMatchTheOldData(t *testing.T) {
	for name, c := range map[string]struct {
		size, checksums string
		major           int
		want            string
		refused         bool
	}{
		"with checksums":        {"16777216", "1", 18, "--data-checksums", false},
		"without":               {"16777216", "0", 18, "--no-data-checksums", false},
		"without, before 18":    {"16777216", "0", 17, "", false},
		"another segment size":  {"67108864", "1", 18, "", true},
		"an unknown one":        {"", "1", 18, "", true},
		"checksums not told of": {"16777216", "", 18, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := initdbOptions(map[string]string{"Bytes per WAL segment": c.size,
				"Data page checksum version": c.checksums}, c.major)
			if (err != nil) != c.refused {
				t.Fatalf("%v", err)
			}
			var has string
			for _, option := range got {
				if strings.Contains(option, "checksums") {
					has = option
				}
			}
			if has != c.want {
				t.Errorf("%q, want %q", has, c.want)
			}
		})
	}
}

func TestWhatPgUpgradeIsDoing(t *testing.T) {
	var got []string
	w := &statusWriter{begins: func(what string) { got = append(got, what) }}
	for _, text := range []string{
		"Performing Upgrade\n------------------\n", "Linking user relation files          ", "ok\n",
		"Setting next OID   ok\nSome words\nChecking", "  ok\n",
	} {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"Linking user relation files", "Setting next OID", "Checking"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyParametersOfTheDataAreKept(t *testing.T) {
	u := newUpgrade(Options{Parameters: map[string]string{
		"Shared_Preload_Libraries": "x", "cron.database_name": "shop", "max_locks_per_transaction": "4096",
		"old_snapshot_threshold": "1h", "archive_mode": "on",
	}})
	got := u.parameters(17)
	for name, want := range map[string]string{
		"shared_preload_libraries": "x", "cron.database_name": "shop", "max_locks_per_transaction": "4096",
		"old_snapshot_threshold": "", "archive_mode": "", "max_active_replication_origins": "",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
