package work

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

func TestExtensionsAreFoundByTheirControlFiles(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"bin/postgres":                    "",
		"share/extension/hstore.control":  "comment = 'pairs'\n  default_version='1.8'\n",
		"share/extension/citext.control":  "default_version = '1.6'\nmodule_pathname = '$libdir/citext'\n",
		"share/extension/broken.control":  "comment = 'no version'\n",
		"share/extension/hstore--1.8.sql": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := Extensions(t.Context(), postgres.Programs{Dir: filepath.Join(root, "bin"), Major: 99})
	if strings.Join(got, ", ") != "citext 1.6, hstore 1.8" {
		t.Errorf("they are %q", got)
	}
}

func TestICUIsKnownByItsLibrary(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := icu(root); got != "" {
		t.Errorf("without one it is %q", got)
	}
	for _, name := range []string{"libicuuc.so.76", "libicuuc.so.76.1"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := icu(root); got != "76.1" {
		t.Errorf("it is %q", got)
	}
}

// The kubelet keeps 4096 bytes: extensions are left out rather than the rest.
func TestManyExtensionsDoNotHideTheVersion(t *testing.T) {
	result := protocol.ImageResult{Version: "17.12"}
	for range 500 {
		result.Extensions = append(result.Extensions, "extension 1.0")
	}
	fitImage(&result)
	text, err := json.Marshal(result)
	if err != nil || len(text) > pod.MaxTermination || len(result.Extensions) < 200 || result.Version != "17.12" {
		t.Errorf("%d bytes with %d extensions, %v", len(text), len(result.Extensions), err)
	}
}

// Whatever came of it, the result is where the kubelet finds it.
func TestAnImageWithoutPostgreSQL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	err := Image(t.Context(), ImageOptions{Major: 99, Termination: path})
	text, _ := os.ReadFile(path)
	var result protocol.ImageResult
	if err == nil || json.Unmarshal(text, &result) != nil || !strings.Contains(result.Error, "PostgreSQL") {
		t.Errorf("%v; it has left %q", err, text)
	}
}
