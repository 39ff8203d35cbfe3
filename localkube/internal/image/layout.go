package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// nameAnnotation is what containerd names an imported image by.
const nameAnnotation = "io.containerd.image.name"

// describe makes an image of one compressed layer file and its config.
func describe(layerFile, architecture string, config v1.Config) (v1.Image, error) {
	layer, err := tarball.LayerFromFile(layerFile, tarball.WithMediaType(types.OCILayerZStd))
	if err != nil {
		return nil, fmt.Errorf("read the layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{
		Architecture: architecture, OS: "linux", Config: config,
		Created: v1.Time{Time: epoch}, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("set the config: %w", err)
	}
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, History: v1.History{CreatedBy: "localkube", Created: v1.Time{Time: epoch}},
	})
	if err != nil {
		return nil, fmt.Errorf("add the layer: %w", err)
	}
	return image, nil
}

// writeLayout writes an image as a tar in the OCI layout, called name. The small
// files come first, so that a reader that only wants the digest reads little.
func writeLayout(path, name string, image v1.Image) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create the image tar: %w", err)
	}
	defer file.Close()
	tw := tar.NewWriter(file)
	if err := writeIndex(tw, name, image); err != nil {
		return fmt.Errorf("write the image's index: %w", err)
	}
	if err := writeBlobs(tw, image); err != nil {
		return fmt.Errorf("write the image's blobs: %w", err)
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("finish the image tar: %w", err)
	}
	return file.Close()
}

func writeIndex(tw *tar.Writer, name string, image v1.Image) error {
	manifest, err := image.RawManifest()
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	return writeTop(tw, v1.Descriptor{
		MediaType:   types.OCIManifestSchema1,
		Platform:    &v1.Platform{OS: config.OS, Architecture: config.Architecture},
		Annotations: map[string]string{nameAnnotation: name, specs.AnnotationRefName: name},
	}, manifest)
}

// writeTop writes the files that name the one thing in the layout, and that: the manifest of an image, or of several.
func writeTop(tw *tar.Writer, what v1.Descriptor, manifest []byte) error {
	hash, length, err := v1.SHA256(bytes.NewReader(manifest))
	if err != nil {
		return err
	}
	what.Digest, what.Size = hash, length
	index, err := json.Marshal(v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{what},
	})
	if err != nil {
		return err
	}
	for _, f := range []entry{
		{name: specs.ImageLayoutFile, data: []byte(`{"imageLayoutVersion":"` + specs.ImageLayoutVersion + `"}`)},
		{name: specs.ImageIndexFile, data: index},
		{name: blobPath(hash), data: manifest},
	} {
		if err := writeFile(tw, f.name, int64(len(f.data)), bytes.NewReader(f.data)); err != nil {
			return err
		}
	}
	return nil
}

func writeBlobs(tw *tar.Writer, image v1.Image) error {
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	hash, err := image.ConfigName()
	if err != nil {
		return err
	}
	if err := writeFile(tw, blobPath(hash), int64(len(config)), bytes.NewReader(config)); err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := writeLayer(tw, layer); err != nil {
			return err
		}
	}
	return nil
}

func writeLayer(tw *tar.Writer, layer v1.Layer) error {
	hash, err := layer.Digest()
	if err != nil {
		return err
	}
	length, err := layer.Size()
	if err != nil {
		return err
	}
	r, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer r.Close()
	return writeFile(tw, blobPath(hash), length, r)
}

func writeFile(tw *tar.Writer, name string, length int64, r io.Reader) error {
	header := &tar.Header{Name: name, Mode: 0o644, Size: length, ModTime: epoch, Typeflag: tar.TypeReg}
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(tw, r)
	return err
}

// blobPath is where the OCI layout keeps a blob.
func blobPath(hash v1.Hash) string {
	return "blobs/" + hash.Algorithm + "/" + hash.Hex
}
