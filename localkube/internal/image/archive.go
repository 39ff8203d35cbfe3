package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
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
	descriptor, err := readDescriptor(file)
	if err != nil {
		return Reference{}, fmt.Errorf("read image tar %s: %w", path, err)
	}
	return Reference{Name: descriptor.Annotations[nameAnnotation], Digest: descriptor.Digest}, nil
}

// readDescriptor finds the one image that a tar holds. The index is near the
// beginning, so little is read.
func readDescriptor(r io.Reader) (v1.Descriptor, error) {
	tr := tar.NewReader(r)
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return v1.Descriptor{}, errors.New("it has no index.json: not a tar in the OCI image layout")
		}
		if err != nil {
			return v1.Descriptor{}, err
		}
		if header.Name == specs.ImageIndexFile {
			return decodeIndex(tr)
		}
	}
}

func decodeIndex(r io.Reader) (v1.Descriptor, error) {
	var index v1.IndexManifest
	if err := json.NewDecoder(r).Decode(&index); err != nil {
		return v1.Descriptor{}, fmt.Errorf("read index.json: %w", err)
	}
	if len(index.Manifests) != 1 {
		return v1.Descriptor{}, fmt.Errorf("it holds %d images, want one", len(index.Manifests))
	}
	return index.Manifests[0], nil
}

// archive is an image inside a tar in the OCI layout. Blobs are read in place.
type archive struct {
	file       *os.File
	descriptor v1.Descriptor
	blobs      map[string]*io.SectionReader
}

// openArchive finds every blob in an image tar. Close the archive when the image
// is no longer used.
func openArchive(path string) (*archive, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open image tar: %w", err)
	}
	a := &archive{file: file, blobs: map[string]*io.SectionReader{}}
	if err := a.scan(); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("read image tar %s: %w", path, err)
	}
	return a, nil
}

func (a *archive) scan() error {
	tr := tar.NewReader(a.file)
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		// The tar reader takes nothing beyond a header before it is asked to.
		offset, err := a.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		a.blobs[header.Name] = io.NewSectionReader(a.file, offset, header.Size)
	}
	index, ok := a.blobs[specs.ImageIndexFile]
	if !ok {
		return errors.New("it has no index.json: not a tar in the OCI image layout")
	}
	var err error
	a.descriptor, err = decodeIndex(index)
	return err
}

func (a *archive) Close() error { return a.file.Close() }

func (a *archive) image() (v1.Image, error) { return partial.CompressedToImage(a) }

func (a *archive) blob(hash v1.Hash) (io.Reader, error) {
	blob, ok := a.blobs[blobPath(hash)]
	if !ok {
		return nil, fmt.Errorf("image tar %s lacks blob %s", a.file.Name(), hash)
	}
	return io.NewSectionReader(blob, 0, blob.Size()), nil
}

func (a *archive) readBlob(hash v1.Hash) ([]byte, error) {
	r, err := a.blob(hash)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// MediaType, RawManifest, RawConfigFile and LayerByDigest are what
// go-containerregistry needs to see an image.

// MediaType is the manifest's.
func (a *archive) MediaType() (types.MediaType, error) { return a.descriptor.MediaType, nil }

// RawManifest returns the manifest's very bytes.
func (a *archive) RawManifest() ([]byte, error) { return a.readBlob(a.descriptor.Digest) }

// RawConfigFile returns the config's very bytes.
func (a *archive) RawConfigFile() ([]byte, error) {
	manifest, err := partial.Manifest(a)
	if err != nil {
		return nil, err
	}
	return a.readBlob(manifest.Config.Digest)
}

// LayerByDigest finds a layer; the config passes for one when it is pushed.
func (a *archive) LayerByDigest(hash v1.Hash) (partial.CompressedLayer, error) {
	manifest, err := partial.Manifest(a)
	if err != nil {
		return nil, err
	}
	for _, d := range append(manifest.Layers, manifest.Config) {
		if d.Digest == hash {
			return archiveLayer{a, d}, nil
		}
	}
	return nil, fmt.Errorf("image tar %s has no layer %s", a.file.Name(), hash)
}

// archiveLayer is one blob of an archive as a layer.
type archiveLayer struct {
	archive    *archive
	descriptor v1.Descriptor
}

// Digest is the hash of the blob as it is stored.
func (l archiveLayer) Digest() (v1.Hash, error) { return l.descriptor.Digest, nil }

// Size is the length of the blob as it is stored.
func (l archiveLayer) Size() (int64, error) { return l.descriptor.Size, nil }

// MediaType says how the blob is compressed.
func (l archiveLayer) MediaType() (types.MediaType, error) { return l.descriptor.MediaType, nil }

// Compressed reads the blob as it is stored.
func (l archiveLayer) Compressed() (io.ReadCloser, error) {
	r, err := l.archive.blob(l.descriptor.Digest)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(r), nil
}
