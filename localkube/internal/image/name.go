package image

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// canonical is the full name of an image as the kubelet and containerd write it:
// toban:dev is docker.io/library/toban:dev to them, and an image imported under
// the short name would not be found.
func canonical(image string) (string, error) {
	ref, err := name.NewTag(image, name.WithDefaultTag("latest"))
	if err != nil {
		return "", fmt.Errorf("image name %q: %w", image, err)
	}
	return dockerHub(ref.Name()), nil
}

// dockerHub is a name as everyone else writes it: go-containerregistry says index.docker.io for docker.io.
func dockerHub(name string) string { return strings.Replace(name, "index.docker.io/", "docker.io/", 1) }

// repository is an image's full name without its tag.
func repository(image string) (string, error) {
	ref, err := name.NewTag(image)
	if err != nil {
		return "", fmt.Errorf("image name %q: %w", image, err)
	}
	return ref.Context().Name(), nil
}

// inRegistry is what an image is called in another registry: its host is
// replaced, and docker.io's library/ is left out. registry may have a path.
func inRegistry(registry, image string) (string, error) {
	full, err := canonical(image)
	if err != nil {
		return "", err
	}
	_, path, _ := strings.Cut(full, "/")
	path = strings.TrimPrefix(path, "library/")
	return strings.TrimSuffix(registry, "/") + "/" + path, nil
}
