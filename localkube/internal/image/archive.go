package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// Reference is what an image tar holds: a name and the digest of its manifest.
type Reference struct {
	Name   string
	Digest v1.Hash
}

// Inspect reads the name and the digest of an image from its tar.
func Inspect(path string) (Reference, error) {
	file, err := os.Open(path)
	if err != nil {
		return Reference{}, fmt.Errorf("open image tar: %w", err)
	}
	defer file.Close()
	index, err := readIndex(file)
	if err != nil {
		return Reference{}, fmt.Errorf("read image tar %s: %w", path, err)
	}
	if len(index.Manifests) != 1 {
		return Reference{}, fmt.Errorf("image tar %s holds %d images, want one", path, len(index.Manifests))
	}
	m := index.Manifests[0]
	return Reference{Name: m.Annotations[nameAnnotation], Digest: m.Digest}, nil
}

func readIndex(r io.Reader) (*v1.IndexManifest, error) {
	tr := tar.NewReader(r)
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it has no index.json: not a tar in the OCI image layout")
		}
		if err != nil {
			return nil, err
		}
		if header.Name != specs.ImageIndexFile {
			continue
		}
		index := &v1.IndexManifest{}
		return index, json.NewDecoder(tr).Decode(index)
	}
}
