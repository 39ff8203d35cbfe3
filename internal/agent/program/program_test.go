package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"toban.dev/internal/protocol"
)

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestAProgramIsWhatItIsSaidToBe(t *testing.T) {
	t.Parallel()
	const text = "#!/bin/sh\necho hello\n"
	for name, c := range map[string]struct {
		is    protocol.Program
		taken bool
	}{
		"right":        {protocol.Program{SHA256: sha(text), Architecture: runtime.GOARCH}, true},
		"another hash": {protocol.Program{SHA256: sha("x"), Architecture: runtime.GOARCH}, false},
		"no hash":      {protocol.Program{Architecture: runtime.GOARCH}, false},
		"a path as hash": {
			protocol.Program{SHA256: "../../" + sha(text)[6:], Architecture: runtime.GOARCH}, false,
		},
		"another architecture": {protocol.Program{SHA256: sha(text), Architecture: "riscv64"}, false},
	} {
		folder := Folder(filepath.Join(t.TempDir(), "programs"))
		path, err := folder.Take(c.is, strings.NewReader(text))
		var refused *RefusedError
		if c.taken != (err == nil) || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %q, %v", name, path, err)
		}
		entries, _ := os.ReadDir(string(folder))
		if want := map[bool]int{true: 1}[c.taken]; len(entries) != want {
			t.Errorf("%s: %d files are left", name, len(entries))
		}
	}
}

func TestARehearsal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		passes bool
	}{
		"passes": {
			"#!/bin/sh\n[ \"$1 $2 $3\" = 'agent --name=x --rehearse' ] && echo could take over\n", true,
		},
		"fails":                  {"#!/bin/sh\necho no >&2\nexit 3\n", false},
		"knows of no rehearsals": {"#!/bin/sh\necho hello\n", false},
		"is no program":          {"hello\n", false},
	} {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte(c.script), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := Rehearse(t.Context(), path, []string{"agent", "--name=x"})
		if c.passes != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A rehearsal that nobody waits for any more says nothing of the program, which may be given again.
func TestARehearsalThatIsGivenUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Rehearse(ctx, path, nil)
	var refused *RefusedError
	if err == nil || errors.As(err, &refused) {
		t.Errorf("it ends with %v", err)
	}
}
