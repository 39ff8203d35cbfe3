// Package releases has PgBouncer, and PostgreSQL of major versions that this machine's own packages do not have, for
// tests that need them: those of the local cluster's images, unpacked and made to run here with the libraries that
// came with them.
package releases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// cache is where it is unpacked: any user may run it there.
const cache = "/var/tmp/toban-postgres"

// Wanted is the major version that tests are asked to run with in the place of the newest one that is installed, by
// TOBAN_TEST_MAJOR; 0 where they are not.
func Wanted() int {
	major, err := strconv.Atoi(os.Getenv("TOBAN_TEST_MAJOR"))
	if err != nil {
		return 0
	}
	return major
}

// Programs is the folder with the programs of a major version. The first time it takes root, and what makes the image.
func Programs(ctx context.Context, major int) (string, error) {
	n := server(major, fmt.Sprintf("postgres:%d", major))
	if installed := "/" + n.bin; isFile(filepath.Join(installed, n.program)) {
		return installed, nil
	}
	return n.unpacked(ctx)
}

// server is that of a major version in an image.
func server(major int, image string) needed {
	return needed{image, fmt.Sprintf("usr/lib/postgresql/%d/bin", major), "postgres"}
}

// The local cluster's images with two minor versions of PostgreSQL 17: that of Debian's stable archive, and that with
// its security updates. Just after a point release of Debian both have the same.
const (
	OlderMinor = "postgres:17-stable"
	NewerMinor = "postgres:17"
)

// Minors are the versions in these images, as SHOW server_version has them.
func Minors(ctx context.Context) (older, newer string, err error) {
	for image, version := range map[string]*string{OlderMinor: &older, NewerMinor: &newer} {
		folder, err := server(17, image).unpacked(ctx)
		if err != nil {
			return "", "", err
		}
		said, err := output(exec.CommandContext(ctx, filepath.Join(folder, "postgres"), "--version"))
		if err != nil {
			return "", "", err
		}
		*version = strings.TrimSpace(strings.TrimPrefix(said, "postgres (PostgreSQL) "))
	}
	return older, newer, nil
}

// Load brings one of the local cluster's images to its nodes, under another name.
func Load(ctx context.Context, name, image string) error {
	localkube, err := localkube()
	if err != nil {
		return err
	}
	_, err = output(exec.CommandContext(ctx, localkube, "load", "--as", name, image))
	return err
}

// PgBouncer is the program of the image that poolers run by default.
func PgBouncer(ctx context.Context) (string, error) {
	folder, err := needed{"pgbouncer:1.24", "usr/sbin", "pgbouncer"}.unpacked(ctx)
	return filepath.Join(folder, "pgbouncer"), err
}

// needed is the program that is needed of an image, and the folder where it is there.
type needed struct{ image, bin, program string }

// unpacked is the folder with the programs.
func (n needed) unpacked(ctx context.Context) (string, error) {
	image, err := image(ctx, n.image)
	if err != nil {
		return "", fmt.Errorf("%s: %w", n.image, err)
	}
	root := filepath.Join(cache, strings.TrimSuffix(filepath.Base(image), ".tar"))
	if n.isIn(root) {
		return filepath.Join(root, n.bin), nil
	}
	if err := n.unpack(ctx, image, root); err != nil {
		return "", fmt.Errorf("unpack %s: %w", n.image, err)
	}
	return filepath.Join(root, n.bin), nil
}

func (n needed) isIn(root string) bool { return isFile(filepath.Join(root, n.bin, n.program)) }

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Repository is the folder of the repository in which the tests run: the next one up with a go.mod. The program does
// not know it: it is built with -trimpath, so that every copy of the repository shares what was compiled.
func Repository() (string, error) {
	begin, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := begin; ; folder = filepath.Dir(folder) {
		if isFile(filepath.Join(folder, "go.mod")) {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("%s is in no folder with a go.mod", begin)
		}
	}
}

// image has the local cluster's image made, which is kept, and is its path.
func image(ctx context.Context, name string) (string, error) {
	if os.Getuid() != 0 {
		return "", errors.New("it is not installed, and only root can make it of an image")
	}
	localkube, err := localkube()
	if err != nil {
		return "", err
	}
	out, err := output(exec.CommandContext(ctx, localkube, "image", "build", name))
	if err != nil {
		return "", err
	}
	lines := strings.Fields(out)
	if len(lines) == 0 {
		return "", errors.New("localkube names no image")
	}
	return lines[len(lines)-1], nil
}

// localkube is the program of this repository.
func localkube() (string, error) {
	repository, err := Repository()
	if err != nil {
		return "", err
	}
	path := filepath.Join(repository, "bin/localkube")
	if !isFile(path) {
		return "", errors.New("bin/localkube is not there: make build")
	}
	return path, nil
}

// output runs a command, and has what it says on its error output in the error.
func output(cmd *exec.Cmd) (string, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(said.Bytes()))
	}
	return string(out), nil
}

// unpack unpacks an image beside its place, and gives it that when it runs: one that was cut off is none.
func (n needed) unpack(ctx context.Context, image, root string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, "unpacked-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what is left is in nobody's way
	layers := filepath.Join(work, "layers")
	if err := os.Mkdir(layers, 0o700); err != nil {
		return err
	}
	if _, err := output(exec.CommandContext(ctx, "tar", "-x", "-C", layers, "-f", image)); err != nil {
		return err
	}
	files, err := layersOf(layers)
	if err != nil {
		return err
	}
	made := filepath.Join(work, "root")
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		if err := n.extract(ctx, file, made); err != nil {
			return err
		}
	}
	if err := settle(ctx, made, root, filepath.Join(made, n.bin)); err != nil {
		return err
	}
	if err := os.Rename(made, root); err != nil && !n.isIn(root) {
		return err // and not another's, who was first
	}
	return nil
}

// extract unpacks what the program needs of a layer, names with or without the dot, as who has packed it likes. The
// folder of PostgreSQL's programs is below that of the libraries: tar says of a pattern that it is not in the archive
// where another one has taken all that it fits.
func (n needed) extract(ctx context.Context, layer, into string) error {
	args := []string{"-x", "-C", into, "--zstd", "--no-same-owner", "--wildcards", "-f", layer,
		"*usr/lib/*", "*usr/lib64/*", "*usr/share/*"}
	if !strings.HasPrefix(n.bin, "usr/lib/") {
		args = append(args, "*"+n.bin+"/"+n.program)
	}
	_, err := output(exec.CommandContext(ctx, "tar", args...))
	return err
}

// layersOf are the files with an image's layers (OCI image layout).
func layersOf(folder string) ([]string, error) {
	type object struct {
		Digest string `json:"digest"`
	}
	blob := func(o object) string { return filepath.Join(folder, "blobs", strings.Replace(o.Digest, ":", "/", 1)) }
	var index struct {
		Manifests []object `json:"manifests"`
	}
	if err := readJSON(filepath.Join(folder, "index.json"), &index); err != nil || len(index.Manifests) == 0 {
		return nil, errors.Join(err, errors.New("the image has no manifest"))
	}
	var manifest struct {
		Layers []object `json:"layers"`
	}
	if err := readJSON(blob(index.Manifests[0]), &manifest); err != nil {
		return nil, err
	}
	var files []string
	for _, layer := range manifest.Layers {
		files = append(files, blob(layer))
	}
	return files, nil
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// settle makes the programs run where they will be: with the loader and the libraries that came with them, and not this
// machine's, which may be older. What PostgreSQL itself looks for it finds from where its program is.
func settle(ctx context.Context, made, root, programs string) error {
	loaders, err := filepath.Glob(filepath.Join(made, "usr/lib*/ld-linux-*.so.*"))
	if err != nil || len(loaders) == 0 {
		return errors.Join(err, errors.New("the image has no loader"))
	}
	libraries, err := filepath.Glob(filepath.Join(made, "usr/lib/*-linux-gnu*"))
	if err != nil || len(libraries) == 0 {
		return errors.Join(err, errors.New("the image has no libraries"))
	}
	at := func(path string) string { return root + strings.TrimPrefix(path, made) }
	entries, err := os.ReadDir(programs)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := filepath.Join(programs, entry.Name())
		if head, err := os.ReadFile(name); err != nil || !bytes.HasPrefix(head, []byte("\x7fELF")) {
			continue
		}
		if _, err := output(exec.CommandContext(ctx, "patchelf", "--set-interpreter", at(loaders[0]),
			"--force-rpath", "--set-rpath", at(libraries[0]), name)); err != nil {
			return err
		}
	}
	return nil
}
