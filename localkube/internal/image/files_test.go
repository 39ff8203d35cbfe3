package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnImageOfFiles(t *testing.T) {
	folder, dir := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "metadata"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "metadata", "about"), []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	one, two := filepath.Join(dir, "one.tar"), filepath.Join(dir, "two.tar")
	digest, err := WriteFiles(one, "toban-bundle:v1", folder, map[string]string{"package": "toban"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := WriteFiles(two, "toban-bundle:v1", folder, map[string]string{"package": "toban"})
	if err != nil || again != digest || !same(t, one, two) {
		t.Errorf("the same files gave %s and %s, %v", digest, again, err)
	}
	a, err := openArchive(one)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	image, err := a.image()
	if err != nil {
		t.Fatal(err)
	}
	checkLayers(t, image)
	config, err := image.ConfigFile()
	if err != nil || config.Config.Labels["package"] != "toban" || a.descriptor.Digest != digest {
		t.Errorf("the image %s is %+v, %v; want %s", a.descriptor.Digest, config, err, digest)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := listed(t, r), "metadata/ -rwxr-xr-x , metadata/about -rw-r--r-- words"; got != want {
		t.Errorf("the image has %q, want %q", got, want)
	}
	if _, err := WriteFiles(one, "toban-bundle:v1", t.TempDir(), nil); err == nil {
		t.Error("an image of an empty folder was made")
	}
}

// listed are the files of a layer with their modes and contents.
func listed(t *testing.T, layer io.Reader) string {
	t.Helper()
	var all []string
	r := tar.NewReader(layer)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(all, ", ")
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(header.Name, " ", header.FileInfo().Mode().Perm(), " ", string(data)))
	}
}
