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
	image, err := a.image()
	if err != nil {
		return "", fmt.Errorf("read image tar %s: %w", tar, err)
	}
	target, err := inRegistry(registry, a.descriptor.Annotations[nameAnnotation])
	if err != nil {
		return "", err
	}
	ref, err := name.NewTag(target)
	if err != nil {
		return "", fmt.Errorf("registry %q (give HOST or HOST/PATH): %w", registry, err)
	}
	err = remote.Write(ref, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", fmt.Errorf("push %s (docker login %s first?): %w", ref, ref.RegistryStr(), err)
	}
	return ref.Name() + "@" + a.descriptor.Digest.String(), nil
}
