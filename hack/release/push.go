package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// push pushes the operator's image, PostgreSQL's and the examples' to a registry, and tells the command that installs
// the operator from there. Log in before, with docker login or podman login. The manifests name the operator's image by
// its digest, so that nobody can put another image in its place.
func push(ctx context.Context, registry string) error {
	if registry == "" {
		return errRegistry
	}
	images, err := output(ctx, "hack/images.sh", "postgres:15", "postgres:17", "postgres:18")
	if err != nil {
		return err
	}
	examples, err := output(ctx, "hack/examples.sh")
	if err != nil {
		return err
	}
	args := append([]string{"image", "push", "--registry", registry}, strings.Fields(images)...)
	said, err := output(ctx, "bin/localkube", append(args, strings.Fields(examples)...)...)
	if err != nil {
		return err
	}
	pushed, _, _ := strings.Cut(said, "\n") // the operator's is the first
	if !strings.Contains(pushed, "@sha256:") {
		return fmt.Errorf("the operator's image was pushed without a digest: %s", pushed)
	}
	for _, name := range []string{"install.yaml", "install-namespaced.yaml"} {
		text, err := manifest(filepath.Join("config", name), pushed)
		if err == nil {
			err = errors.Join(makeFolder(".local"), writeFile(filepath.Join(".local", name), []byte(text)))
		}
		if err != nil {
			return fmt.Errorf("write the manifest of what was pushed: %w", err)
		}
	}
	fmt.Printf("%s\n\nThis installs the operator from there:\n"+
		"  kubectl apply --server-side -f config/crds.yaml -f .local/install.yaml\n", said)
	return nil
}
