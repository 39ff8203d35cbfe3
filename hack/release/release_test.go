package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

func TestAManifestNamesAnotherImage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "install.yaml")
	write(t, file, "a: 1\n  - image: \"here/toban:1\"\n    args: [--image=here/toban:1]\n", 0o600)
	got, err := manifest(file, "there/toban@sha256:12")
	if want := "a: 1\n  - image: \"there/toban@sha256:12\"\n    args: [--image=there/toban@sha256:12]\n"; err != nil ||
		got != want {
		t.Errorf("%v, and not %q but %q", err, want, got)
	}
	write(t, file, "a: 1\n", 0o600)
	if got, err := manifest(file, "there/toban"); err == nil {
		t.Errorf("a file that names no image: %q", got)
	}
	if got, err := manifest(file, ""); !errors.Is(err, errUsage) {
		t.Errorf("no image: %q, %v", got, err)
	}
}

func TestAManifestForKrewWithoutAnArchiveFails(t *testing.T) {
	if got, err := krew("v1.2.3", "https://example.com", nil); err == nil {
		t.Errorf("without an archive: %q", got)
	}
	folder := t.TempDir()
	unix, windows := filepath.Join(folder, "kubectl-toban-v1.2.3-linux-amd64.tar.gz"),
		filepath.Join(folder, "kubectl-toban-v1.2.3-windows-amd64.tar.gz")
	write(t, unix, "x", 0o600)
	write(t, windows, "x", 0o600)
	got, err := krew("v1.2.3", "https://example.com", []string{unix, windows})
	for _, want := range []string{
		"os: linux, arch: amd64", "bin: kubectl-toban\n", "bin: kubectl-toban.exe\n",
		"uri: https://example.com/kubectl-toban-v1.2.3-linux-amd64.tar.gz\n",
		"sha256: 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\n",
	} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%v, and there is no %q in\n%s", err, want, got)
		}
	}
	if got, err := krew("v1.2.3", "https://example.com", []string{"x.zip"}); err == nil {
		t.Errorf("of an unknown platform: %q", got)
	}
}

func TestAListOfModulesThatHasNoneFails(t *testing.T) {
	if text, _, err := withoutTime(`{"metadata": {"tools": []}, "components": []}`); err == nil {
		t.Errorf("without a module: %q", text)
	}
	text, modules, err := withoutTime(
		`{"metadata": {"timestamp": "now", "tools": [{"name": "a", "hashes": 1}]}, "components": [{"name": "<b>"}]}`)
	want := `{
  "components": [
    {
      "name": "<b>"
    }
  ],
  "metadata": {
    "tools": [
      {
        "name": "a"
      }
    ]
  }
}
`
	if err != nil || modules != 1 || string(text) != want {
		t.Errorf("%d modules, %v, and not %s but %s", modules, err, want, text)
	}
}

func TestOfAReleaseTheVersionIsSaid(t *testing.T) {
	for _, version := range []string{"", "0.2.0", "v1", "v0.2.0; true"} {
		if err := makeRelease(t.Context(), t.TempDir(), version, "", ""); !errors.Is(err, errVersion) {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// The same files give the same archive, whoever has them, since whenever, with whatever rights.
func TestAnArchiveIsTheSameTwice(t *testing.T) {
	var sums []string
	for _, rights := range []os.FileMode{0o755, 0o700} {
		folder := t.TempDir()
		write(t, filepath.Join(folder, "b", "program"), "x", rights)
		write(t, filepath.Join(folder, "a"), "y", rights&0o666)
		archive := filepath.Join(t.TempDir(), "a.tar.gz")
		if err := pack(archive, folder); err != nil {
			t.Fatal(err)
		}
		sum, err := sumOf(archive)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
		if got, want := list(t, archive), []string{"-rw-r--r-- a", "drwxr-xr-x b/", "-rwxr-xr-x b/program"}; !slices.
			Equal(got, want) {
			t.Errorf("not %q but %q", want, got)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("the archives differ: %q", sums)
	}
}

// list is what is in an archive.
func list(t *testing.T, archive string) (names []string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(unpacked); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.FileInfo().Mode().String()+" "+header.Name)
	}
}
