package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push sends the image in a tar to a registry and returns its name there, with
// the digest. registry is a host, or a host and a path. Credentials are those
// that docker login (or podman login) left.
func Push(ctx context.Context, registry, tar string) (string, error) {
	a, err := openArchive(tar)
	if err != nil {
		return "", err
	}
	defer a.Close()
	target, err := inRegistry(registry, a.descriptor.Annotations[nameAnnotation])
	if err != nil {
		return "", err
	}
	ref, err := name.NewTag(target)
	if err != nil {
		return "", fmt.Errorf("registry %q (give HOST or HOST/PATH): %w", registry, err)
	}
	err = a.write(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", fmt.Errorf("push %s (docker login %s first?): %w", ref, ref.RegistryStr(), err)
	}
	return ref.Name() + "@" + a.descriptor.Digest.String(), nil
}

// write sends what is in the archive: an image, or one for several architectures.
func (a *archive) write(ref name.Reference, options ...remote.Option) error {
	if a.descriptor.MediaType.IsIndex() {
		return remote.WriteIndex(ref, archiveIndex{a}, options...)
	}
	image, err := a.image()
	if err != nil {
		return fmt.Errorf("read the image tar: %w", err)
	}
	return remote.Write(ref, image, options...)
}
