package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/opencontainers/go-digest"
)

const (
	// namespace is where the kubelet's images are in containerd.
	namespace = "k8s.io"
	// managedLabel is what containerd's Kubernetes side puts on an image once
	// it knows of it. Until then a Pod would try to pull the image.
	managedLabel = "io.cri-containerd.image"
	managedWait  = 5 * time.Second
	managedPoll  = 10 * time.Millisecond
)

// Node is where an image can be loaded.
type Node struct {
	// Name is for messages.
	Name string
	// Socket is the path of the node's containerd socket.
	Socket string
}

// Load brings the image in a tar to every node, all at once, under its own name or another one that is given, and by
// its digest, as a pull does. A node that has the same digest under the same name already is left alone.
func Load(ctx context.Context, nodes []Node, tar, as string) error {
	ref, err := Inspect(tar)
	if err != nil {
		return err
	}
	if as != "" {
		if ref.Name, err = canonical(as); err != nil {
			return err
		}
	}
	if ref.Name == "" {
		return fmt.Errorf("image tar %s has no name: it needs the annotation %s", tar, nameAnnotation)
	}
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() {
			if err := loadOne(ctx, node, tar, ref); err != nil {
				errs[i] = fmt.Errorf("load %s into node %s: %w", ref.Name, node.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func loadOne(ctx context.Context, node Node, tar string, ref Reference) error {
	c, err := client.New(node.Socket, client.WithDefaultNamespace(namespace))
	if err != nil {
		return fmt.Errorf("connect to containerd at %s (is the cluster up?): %w", node.Socket, err)
	}
	defer c.Close()
	byDigest, err := digestName(ref)
	if err != nil {
		return err
	}
	for _, known := range []string{byDigest, ref.Name} {
		has, err := present(ctx, c, known, ref.Digest.String())
		if err != nil {
			return err
		}
		if !has {
			return importAs(ctx, c, tar, ref.Name, byDigest)
		}
	}
	return nil
}

// importAs copies the image into the node under two names, until Kubernetes knows it by both.
func importAs(ctx context.Context, c *client.Client, tar, tag, byDigest string) error {
	if err := importTar(ctx, c, tar, tag, byDigest); err != nil {
		return err
	}
	for _, known := range []string{tag, byDigest} {
		if err := awaitManaged(ctx, c, known); err != nil {
			return err
		}
	}
	return nil
}

// present tells whether a node has the very image under a name, unpacked and ready.
func present(ctx context.Context, c *client.Client, called, want string) (bool, error) {
	image, err := c.GetImage(ctx, called)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the image: %w", err)
	}
	if image.Target().Digest.String() != want {
		return false, nil
	}
	unpacked, err := image.IsUnpacked(ctx, "")
	if err != nil {
		return false, fmt.Errorf("look for the image's snapshot: %w", err)
	}
	return unpacked, nil
}

// digestName is the name by which an image never changes. A Pod that runs the image is said to run this one.
func digestName(ref Reference) (string, error) {
	tag, err := name.NewTag(ref.Name)
	if err != nil {
		return "", fmt.Errorf("image name %q: %w", ref.Name, err)
	}
	return dockerHub(tag.Context().Name()) + "@" + ref.Digest.String(), nil
}

// importTar copies the image into the node and unpacks it there and then, so
// that the first Pod need not wait for that. The layer's blob is given up once
// it is unpacked: nothing on a node reads it again.
func importTar(ctx context.Context, c *client.Client, tar, tag, byDigest string) error {
	file, err := os.Open(tar)
	if err != nil {
		return fmt.Errorf("open image tar: %w", err)
	}
	defer file.Close()
	ctx, done, err := c.WithLease(ctx) // keeps the blobs from the garbage collector until they are unpacked
	if err != nil {
		return fmt.Errorf("take a lease: %w", err)
	}
	defer func() { _ = done(context.WithoutCancel(ctx)) }() // one that stays ends by itself after a day

	imported, err := c.Import(ctx, file, client.WithDiscardUnpackedLayers(),
		client.WithDigestRef(func(digest.Digest) string { return byDigest }))
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	for _, image := range imported {
		if err := client.NewImage(c, image).Unpack(ctx, ""); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
	return tagAs(ctx, c, byDigest, tag)
}

// tagAs gives an image another name, which a former image may have had.
func tagAs(ctx context.Context, c *client.Client, from, tag string) error {
	image, err := c.ImageService().Get(ctx, from)
	if err != nil {
		return fmt.Errorf("look for %s: %w", from, err)
	}
	image.Name, image.Labels = tag, nil
	_, err = c.ImageService().Create(ctx, image)
	if errdefs.IsAlreadyExists(err) {
		_, err = c.ImageService().Update(ctx, image)
	}
	if err != nil {
		return fmt.Errorf("name it %s: %w", tag, err)
	}
	return nil
}

// awaitManaged waits until Kubernetes' side of containerd has seen the image.
// It learns of it from an event a moment later; a Pod created in between would
// fail to pull and then wait for its back-off. Not seeing the label in time is
// no error: a containerd without that side works for everything else.
func awaitManaged(ctx context.Context, c *client.Client, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, managedWait, errManagedWait)
	defer cancel()
	for {
		image, err := c.ImageService().Get(ctx, name)
		if err == nil && image.Labels[managedLabel] != "" {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errManagedWait) {
				return nil
			}
			return ctx.Err()
		case <-time.After(managedPoll):
		}
	}
}

var errManagedWait = errors.New("containerd's Kubernetes side has not taken note of the image")
