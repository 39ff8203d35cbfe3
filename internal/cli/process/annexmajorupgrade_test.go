package process

import (
	"os"
	"path/filepath"
	"testing"
)

// The verb in the place of pg_dump gives it all arguments, also those that look like flags of its own.
func TestUpgradeDump(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dump")
	const text = `ALTER TABLE ONLY "s"."t" ALTER COLUMN "c" SET (pg_attver=28860760);` + "\n"
	c := upgradeDump()
	c.SetArgs([]string{"/bin/sh", "-c", `printf '%s\n' "$1" >"${2#--file=}"`, "pg_dump", text[:len(text)-1],
		"--file=" + file, "--help", "-V"})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `ALTER TABLE ONLY "s"."t" ALTER COLUMN "c" RESET (n_distinct)      ;` + "\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("the dump is %q, %v", got, err)
	}
}
