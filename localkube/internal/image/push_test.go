package image

import (
	"errors"
	"fmt"
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
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// program compiles a program that a test can put in an image.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-o", path, "./pause")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return path
}

func TestPushedImageIsWhole(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")

	tar, err := Builder{CacheDir: t.TempDir()}.Binary(t.Context(),
		Program{Path: program(t), Name: "toban:dev", Description: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := Push(t.Context(), host+"/team", tar)
	if err != nil {
		t.Fatal(err)
	}
	if want := host + "/team/toban:dev@sha256:"; !strings.HasPrefix(pushed, want) {
		t.Errorf("pushed as %s, want %s...", pushed, want)
	}
	ref, err := name.ParseReference(host + "/team/toban:dev")
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	checkLayers(t, image)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/program" {
		t.Errorf("config is %+v", config.Config)
	}
}

// checkLayers unpacks every layer and compares it with what the config says.
func checkLayers(t *testing.T, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) == 0 || len(layers) != len(config.RootFS.DiffIDs) {
		t.Fatalf("%d layers, %d in the config, %v", len(layers), len(config.RootFS.DiffIDs), err)
	}
	for i, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := v1.SHA256(r)
		if err != nil || got != config.RootFS.DiffIDs[i] {
			t.Errorf("layer %d is %s, %v, want %s", i, got, err, config.RootFS.DiffIDs[i])
		}
	}
}

func TestNameInRegistry(t *testing.T) {
	for image, want := range map[string]string{
		"docker.io/library/postgres:17": "reg.example/postgres:17",
		"localhost/pause:1":             "reg.example/pause:1",
		"toban":                         "reg.example/toban:latest",
		"ghcr.io/wheel/toban:v1":        "reg.example/wheel/toban:v1",
	} {
		got, err := inRegistry("reg.example/", image)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", image, got, err, want)
		}
	}
}

func TestBinaryRefusesWhatCannotRunInItsImage(t *testing.T) {
	dynamic, err := exec.LookPath("ls")
	if err != nil {
		t.Skip("no ls here")
	}
	for path, want := range map[string]string{
		dynamic:        "CGO_ENABLED=0",
		"push_test.go": "not a Linux program",
	} {
		_, err := Builder{CacheDir: t.TempDir()}.Binary(t.Context(), Program{Path: path, Name: "toban:dev"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want one with %q", path, err, want)
		}
	}
}

func TestBinaryKeepsFewOldImages(t *testing.T) {
	b := Builder{CacheDir: t.TempDir()}
	binary := program(t)
	for i := range keepBinaries + 2 {
		file, err := os.OpenFile(binary, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.Write([]byte{byte(i)})
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Binary(t.Context(), Program{Path: binary, Name: fmt.Sprintf("toban:%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	tars, _ := filepath.Glob(filepath.Join(b.CacheDir, "image-*.tar"))
	if len(tars) != keepBinaries {
		t.Errorf("%d tars are kept, want %d: %v", len(tars), keepBinaries, tars)
	}
}
