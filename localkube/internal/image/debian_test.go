package image

import (
	"os"
	"strings"
	"testing"
)

// Building takes minutes and the network, so it is asked for by name:
// LOCALKUBE_IMAGES="postgres:17 nginx:1.25" go test -run TestDebianImages -v
func TestDebianImages(t *testing.T) {
	names := strings.Fields(os.Getenv("LOCALKUBE_IMAGES"))
	if len(names) == 0 {
		t.Skip("LOCALKUBE_IMAGES names no image")
	}
	dir, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path, err := Builder{CacheDir: dir, Progress: t.Output()}.Build(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := Inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := "docker.io/library/" + name; ref.Name != want {
			t.Errorf("the image is called %q, want %q", ref.Name, want)
		}
	}
}

func TestEveryHookNamesItsRoot(t *testing.T) {
	for name, hook := range map[string]string{
		"postgres": script("major=17", "postgres-users", "postgres-layout", "trim"),
		"nginx":    script("", "nginx-users", "nginx-layout", "trim"),
	} {
		if !strings.HasPrefix(hook, "set -eu\nroot=$1\n") {
			t.Errorf("%s: the hook would run without a root and remove the host's files:\n%s", name, hook)
		}
	}
}
