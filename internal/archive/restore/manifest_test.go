package restore

import (
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/archive/format"
)

func TestTheChecksumsOfManifests(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "file"), []byte("123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ algorithm, checksum, problem string }{
		{"CRC32C", "839206e3", ""}, // 0xE3069283 is the algorithm's known value
		{"CRC32C", "e3069283", format.Altered},
		{"SHA256", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225", ""},
		{"SHA256", "839206e3", format.Altered},
		{"SHA512", "", `its checksum is "SHA512", which is not known`},
	} {
		got := ""
		if err := (manifestFile{
			Path: "file", Size: 9, Algorithm: c.algorithm, Checksum: c.checksum,
		}).verify(data); err != nil {
			got = err.Error()
		}
		if got != c.problem {
			t.Errorf("%s %s: %q, expected %q", c.algorithm, c.checksum, got, c.problem)
		}
	}
}
