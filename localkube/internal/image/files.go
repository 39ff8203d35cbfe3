package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// WriteFiles makes an image that has nothing but the files of a folder, as a tar in the OCI layout, and returns its
// digest. Such an image is read, and never run, so it is for no architecture: it names amd64 because it has to name
// one. The same files give the same bytes.
func WriteFiles(out, name, folder string, imageLabels map[string]string) (digest v1.Hash, err error) {
	full, err := canonical(name)
	if err != nil {
		return digest, err
	}
	entries, err := folderEntries(folder)
	if err != nil {
		return digest, err
	}
	work, err := os.MkdirTemp("", "localkube-files-")
	if err != nil {
		return digest, err
	}
	defer func() { _ = os.RemoveAll(work) }() // a temporary folder
	rootfs, layer := filepath.Join(work, "rootfs.tar"), filepath.Join(work, "layer.tar.zst")
	if err := errors.Join(writeRootfs(rootfs, entries), compress(layer, rootfs)); err != nil {
		return digest, err
	}
	image, err := describe(layer, "amd64", v1.Config{Labels: imageLabels})
	if err != nil {
		return digest, err
	}
	if err := writeLayout(out, full, image); err != nil {
		return digest, fmt.Errorf("write %s: %w", out, err)
	}
	return image.Digest()
}

// folderEntries are the files of a folder and of the folders in it, in the order of their names.
func folderEntries(folder string) ([]entry, error) {
	var all []entry
	files := os.DirFS(folder)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			all = append(all, entry{name: name + "/", mode: 0o755})
			return nil
		}
		data, err := fs.ReadFile(files, name)
		all = append(all, entry{name: name, mode: 0o644, data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the files of an image: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no files for an image", folder)
	}
	return all, nil
}
