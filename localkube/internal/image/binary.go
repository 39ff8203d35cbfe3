package image

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	certificates = "/etc/ssl/certs/ca-certificates.crt"
	users        = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	groups       = "root:x:0:\nnonroot:x:65532:\n"
	// keepBinaries is how many images of one repository stay in the cache: each
	// compilation makes a new one, often with a tag of its own, and nobody goes
	// back far.
	keepBinaries = 5
)

// Program is a static binary of which an image is made.
type Program struct {
	// Path is the binary's file. In the image it lies at the root, under its own name.
	Path string
	// Name is the image's, such as toban:dev.
	Name string
	// Description is for people who find the image in a registry. It may be empty.
	Description string
}

// Binary makes an image of a static binary, with the certificates it needs to
// talk to others by HTTPS, on nothing. The same binary and certificates give the
// same digest everywhere.
func (b Builder) Binary(ctx context.Context, p Program) (string, error) {
	name, err := canonical(p.Name)
	if err != nil {
		return "", err
	}
	if err := checkStatic(p.Path); err != nil {
		return "", err
	}
	entries, err := binaryEntries(p.Path)
	if err != nil {
		return "", err
	}
	config := binaryConfig(name, p)
	path, err := b.cached(ctx, name, []any{name, config, digests(entries)}, func(work, out string) error {
		return assemble(work, out, name, entries, config)
	})
	if err != nil {
		return "", err
	}
	return path, b.prune(name, path)
}

// binaryConfig is how the program of an image called name is run.
func binaryConfig(name string, p Program) v1.Config {
	return v1.Config{
		Entrypoint: []string{"/" + filepath.Base(p.Path)}, User: "65532:65532", WorkingDir: "/",
		Env:    []string{"PATH=/"},
		Labels: labels(name, p.Description),
	}
}

func binaryEntries(binary string) ([]entry, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the binary: %w", err)
	}
	roots, err := os.ReadFile(certificates)
	if err != nil {
		return nil, fmt.Errorf("read the CA certificates (apt-get install ca-certificates): %w", err)
	}
	return []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, data: []byte(groups)},
		{name: "etc/passwd", mode: 0o644, data: []byte(users)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: certificates[1:], mode: 0o644, data: roots},
		{name: "tmp/", mode: 0o1777},
		{name: filepath.Base(binary), mode: 0o755, data: program},
	}, nil
}

// checkStatic refuses a binary that needs a dynamic loader: the image has none,
// and what the Pod would say is "no such file or directory".
func checkStatic(binary string) error {
	file, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("%s is not a Linux program: %w", binary, err)
	}
	defer file.Close()
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically: build it with CGO_ENABLED=0", binary)
		}
	}
	return nil
}

func labels(name, description string) map[string]string {
	repository, tag, _ := strings.Cut(filepath.Base(name), ":")
	all := map[string]string{specs.AnnotationTitle: repository, specs.AnnotationVersion: tag}
	if description != "" {
		all[specs.AnnotationDescription] = description
	}
	return all
}

func digests(entries []entry) []string {
	var all []string
	for _, e := range entries {
		sum := sha256.Sum256(e.data)
		all = append(all, fmt.Sprintf("%s %o %s", e.name, e.mode, hex.EncodeToString(sum[:])))
	}
	return all
}

// prune removes old tars of one repository, whatever their tags, from the cache,
// but never current.
func (b Builder) prune(name, current string) error {
	wanted, err := repository(name)
	if err != nil {
		return err
	}
	tars, err := filepath.Glob(filepath.Join(b.CacheDir, "image-*.tar"))
	if err != nil {
		return fmt.Errorf("list old images of %s: %w", name, err)
	}
	// A file's name does not tell where the repository ends and the tag begins.
	tars = slices.DeleteFunc(tars, func(tar string) bool {
		image, err := Inspect(tar)
		if err != nil {
			return true // gone meanwhile, or not ours to judge
		}
		found, err := repository(image.Name)
		return err != nil || found != wanted
	})
	keepNewest(tars, keepBinaries, current)
	return nil
}

// keepNewest removes tars but for the newest, and never current. Their locks stay:
// see lock.
func keepNewest(tars []string, keep int, current string) {
	sort.Slice(tars, func(i, j int) bool { return modified(tars[i]) > modified(tars[j]) })
	for i, tar := range tars {
		if i < keep || tar == current {
			continue
		}
		// Another builder may have been quicker.
		_ = os.Remove(tar)
	}
}

// modified is a file's time in nanoseconds, 0 if it is gone.
func modified(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}
