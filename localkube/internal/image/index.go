package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// architectures are those of which images are made, by how a program says that it is for one.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// WriteIndex makes one image of the same static program for several architectures, as a tar in the OCI layout, and
// returns the digest by which nodes of each of them can pull it. The same programs and certificates give the same
// bytes. The path of p is not read.
func WriteIndex(out string, p Program, binaries []string) (digest v1.Hash, err error) {
	name, err := canonical(p.Name)
	if err != nil {
		return digest, err
	}
	work, err := os.MkdirTemp("", "localkube-index-")
	if err != nil {
		return digest, err
	}
	defer func() { _ = os.RemoveAll(work) }() // a temporary folder
	var index v1.ImageIndex = empty.Index
	for i, binary := range binaries {
		p.Path = binary
		image, arch, err := programImage(filepath.Join(work, fmt.Sprint(i)), name, p)
		if err != nil {
			return digest, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	if err := writeIndexLayout(out, name, index); err != nil {
		return digest, fmt.Errorf("write %s: %w", out, err)
	}
	return index.Digest()
}

// programImage makes an image of a static program for the architecture that it is for. Its layer stays in work.
func programImage(work, name string, p Program) (v1.Image, string, error) {
	if err := checkStatic(p.Path); err != nil {
		return nil, "", err
	}
	arch, err := architecture(p.Path)
	if err != nil {
		return nil, "", err
	}
	entries, err := binaryEntries(p.Path)
	if err != nil {
		return nil, "", err
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return nil, "", err
	}
	rootfs, layer := filepath.Join(work, "rootfs.tar"), filepath.Join(work, "layer.tar.zst")
	if err := errors.Join(writeRootfs(rootfs, entries), compress(layer, rootfs)); err != nil {
		return nil, "", err
	}
	image, err := describe(layer, arch, binaryConfig(name, p))
	return image, arch, err
}

// architecture is the one that a program is for.
func architecture(binary string) (string, error) {
	file, err := elf.Open(binary)
	if err != nil {
		return "", fmt.Errorf("%s is not a Linux program: %w", binary, err)
	}
	defer file.Close()
	arch, known := architectures[file.Machine]
	if !known {
		return "", fmt.Errorf("%s is for %s, of which no image can be made", binary, file.Machine)
	}
	return arch, nil
}

// writeIndexLayout writes an index and its images as a tar in the OCI layout.
func writeIndexLayout(path, name string, index v1.ImageIndex) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	tw := tar.NewWriter(file)
	manifest, err := index.RawManifest()
	if err != nil {
		return err
	}
	top := v1.Descriptor{
		MediaType:   types.OCIImageIndex,
		Annotations: map[string]string{nameAnnotation: name, specs.AnnotationRefName: name},
	}
	if err := writeTop(tw, top, manifest); err != nil {
		return err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range list.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		if err := writeImage(tw, d.Digest, image); err != nil {
			return err
		}
	}
	return errors.Join(tw.Close(), file.Close())
}

func writeImage(tw *tar.Writer, digest v1.Hash, image v1.Image) error {
	manifest, err := image.RawManifest()
	if err != nil {
		return err
	}
	if err := writeFile(tw, blobPath(digest), int64(len(manifest)), bytes.NewReader(manifest)); err != nil {
		return err
	}
	return writeBlobs(tw, image)
}

// archiveIndex is an archive that holds an image for several architectures.
type archiveIndex struct{ *archive }

// Digest, Size, IndexManifest, Image and ImageIndex are what go-containerregistry needs to see an index.

// Digest is the index's.
func (a archiveIndex) Digest() (v1.Hash, error) { return a.descriptor.Digest, nil }

// Size is the index's.
func (a archiveIndex) Size() (int64, error) { return a.descriptor.Size, nil }

// IndexManifest lists the images.
func (a archiveIndex) IndexManifest() (*v1.IndexManifest, error) {
	raw, err := a.RawManifest()
	if err != nil {
		return nil, err
	}
	var list v1.IndexManifest
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read the index of images: %w", err)
	}
	return &list, nil
}

// Image is that of one architecture.
func (a archiveIndex) Image(digest v1.Hash) (v1.Image, error) {
	list, err := a.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range list.Manifests {
		if d.Digest == digest {
			return partial.CompressedToImage(&archive{file: a.file, descriptor: d, blobs: a.blobs})
		}
	}
	return nil, fmt.Errorf("image tar %s has no image %s", a.file.Name(), digest)
}

// ImageIndex is never asked for: no index here is in another one.
func (a archiveIndex) ImageIndex(digest v1.Hash) (v1.ImageIndex, error) {
	return nil, fmt.Errorf("image tar %s has no index %s in its index", a.file.Name(), digest)
}
