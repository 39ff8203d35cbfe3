package image

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// programs compiles a program for each architecture.
func programs(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, arch := range []string{"amd64", "arm64"} {
		path := filepath.Join(t.TempDir(), "program")
		cmd := exec.Command("go", "build", "-o", path, "./pause")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("compile for %s: %v\n%s", arch, err, out)
		}
		all = append(all, path)
	}
	return all
}

func TestAnImageForSeveralArchitectures(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	binaries, dir := programs(t), t.TempDir()
	one, two := filepath.Join(dir, "one.tar"), filepath.Join(dir, "two.tar")
	p := Program{Name: "toban:v1", Description: "a test"}
	digest, err := WriteIndex(one, p, binaries)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := WriteIndex(two, p, binaries); err != nil || again != digest || !same(t, one, two) {
		t.Errorf("the same programs gave %s and %s, %v", digest, again, err)
	}
	pushed, err := Push(t.Context(), host+"/team", one)
	if want := host + "/team/toban:v1@" + digest.String(); err != nil || pushed != want {
		t.Fatalf("pushed as %s, %v, want %s", pushed, err, want)
	}
	ref, err := name.ParseReference(host + "/team/toban@" + digest.String())
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 2 {
		t.Fatalf("the registry has %+v, %v", list, err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		image, err := index.Image(list.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkLayers(t, image)
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != arch || list.Manifests[i].Platform.Architecture != arch {
			t.Errorf("image %d is for %s by its config, for %s by the index, %v; want %s", i, config.Architecture,
				list.Manifests[i].Platform.Architecture, err, arch)
		}
	}
}

func same(t *testing.T, one, two string) bool {
	t.Helper()
	a, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(two)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(a, b)
}
