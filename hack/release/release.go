package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A release is all that is handed out of one version.
type release struct {
	folder, version string
	// registry is where the operator's image will be, "" for one that is not published; url is below which address the
	// files will be.
	registry, url string
	// work is a folder for what does not become part of it.
	work string
	// image is the operator's, by its digest.
	image, digest string
}

var (
	errVersion  = errors.New("say which one: make release VERSION=v0.2.0")
	errRegistry = errors.New("say where to: make push REGISTRY=registry.example.com/team")
	versions    = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
)

// makeRelease makes all that a release has in a folder. Manifests, chart and bundle name the image in the registry;
// krew's manifest and the bundle say that the files will be below the URL.
func makeRelease(ctx context.Context, folder, version, registry, url string) (err error) {
	if !versions.MatchString(version) {
		return errVersion
	}
	r := release{folder: folder, version: version, registry: registry}
	// What is not published has a name that nobody can own (RFC 2606), so that nothing of somebody else is pulled.
	r.image = cmp.Or(registry, "unpublished.invalid") + "/toban"
	r.url = cmp.Or(url, "https://unpublished.invalid/toban/"+version)
	if err := errors.Join(os.RemoveAll(folder), makeFolder(folder)); err != nil {
		return fmt.Errorf("make room for the release: %w", err)
	}
	if r.work, err = os.MkdirTemp("", "toban-release-"); err != nil {
		return fmt.Errorf("make room for what the release is made of: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	for _, step := range []func(context.Context) error{
		r.servers, r.plugins, r.operatorImage, r.manifests, r.chart, r.bundle, r.sums,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("%s has the release %s, whose image is %s@%s\n", folder, version, r.image, r.digest)
	return nil
}

// servers are the whole program, for the systems that an operator runs on, with what it is made of.
func (r *release) servers(ctx context.Context) error {
	for _, arch := range []string{"amd64", "arm64"} {
		program, err := r.program(ctx, "toban", "linux", arch)
		if err != nil {
			return err
		}
		list := filepath.Join(r.folder, fmt.Sprintf("toban-%s-linux-%s.cdx.json", r.version, arch))
		if err := sbom(ctx, program, r.version, list); err != nil {
			return err
		}
	}
	return nil
}

// plugins are the programs of kubectl toban alone, with krew's manifest of them.
func (r *release) plugins(ctx context.Context) error {
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		system, arch, _ := strings.Cut(platform, "/")
		if _, err := r.program(ctx, "kubectl-toban", system, arch); err != nil {
			return err
		}
	}
	archives, err := filepath.Glob(filepath.Join(r.folder, "kubectl-toban-*.tar.gz"))
	if err != nil {
		return fmt.Errorf("look for the plugin: %w", err)
	}
	text, err := krew(r.version, r.url, archives)
	if err != nil {
		return err
	}
	return r.write("toban.yaml", text)
}

// program compiles a program of cmd, packs it, and returns its path.
func (r *release) program(ctx context.Context, name, system, arch string) (string, error) {
	fmt.Fprintf(os.Stderr, "%s for %s/%s\n", name, system, arch)
	folder := filepath.Join(r.work, name+"-"+system+"-"+arch)
	path := filepath.Join(folder, name)
	if system == "windows" {
		path += ".exe"
	}
	compile := command(ctx, []string{"GOOS=" + system, "GOARCH=" + arch}, "hack/compile.sh", name, path, r.version)
	if err := compile.Run(); err != nil {
		return "", fmt.Errorf("compile %s for %s/%s: %w", name, system, arch, err)
	}
	for _, beside := range []string{"LICENSE", "CHANGELOG.md"} {
		if err := copyFile(beside, folder); err != nil {
			return "", err
		}
	}
	return path, pack(filepath.Join(r.folder, fmt.Sprintf("%s-%s-%s-%s.tar.gz", name, r.version, system, arch)), folder)
}

func (r *release) operatorImage(ctx context.Context) (err error) {
	r.digest, err = output(ctx, "bin/localkube", "image", "index", "--name", "toban:"+r.version,
		"--out", filepath.Join(r.folder, "toban-"+r.version+"-image.tar"),
		"--description", "Toban, a Kubernetes operator for PostgreSQL",
		filepath.Join(r.work, "toban-linux-amd64/toban"), filepath.Join(r.work, "toban-linux-arm64/toban"))
	return err
}

const notPublished = `# NOTHING IS PUBLISHED: this release was made without a registry, and nodes can't pull the ` +
	`image below.
# Push it to a registry of yours, and put that in the place of unpublished.invalid (docs/install.md).
`

func (r *release) manifests(context.Context) error {
	if err := copyFile("config/crds.yaml", r.folder); err != nil {
		return err
	}
	for _, name := range []string{"install.yaml", "install-namespaced.yaml"} {
		text, err := manifest("config/"+name, r.image+"@"+r.digest)
		if err != nil {
			return err
		}
		if r.registry == "" {
			text = notPublished + text
		}
		if err := r.write(name, text); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) chart(ctx context.Context) error {
	folder := filepath.Join(r.work, "chart")
	err := command(ctx, nil, "go", "run", "./hack/chart", "-out", filepath.Join(folder, "toban"), "-version", r.version,
		"-repository", r.image, "-digest", r.digest).Run()
	if err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return pack(filepath.Join(r.folder, "toban-"+r.version+".tgz"), folder)
}

// annotations are those of the bundle, which its image has as labels.
var annotations = regexp.MustCompile(`(?m)^  ([^ #]*): (.*)$`)

// bundle writes the bundle for OLM, and its image.
func (r *release) bundle(ctx context.Context) error {
	folder := filepath.Join(r.folder, "bundle")
	write := command(ctx, nil, "go", "run", "./hack/bundle", "-out", folder, "-version", r.version,
		"-image", r.image+"@"+r.digest, "-url", r.url)
	write.Stdout = os.Stderr
	if err := write.Run(); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "metadata/annotations.yaml"))
	if err != nil {
		return fmt.Errorf("read the annotations of the bundle: %w", err)
	}
	args := []string{
		"image", "files", "--name", "toban-bundle:" + r.version,
		"--out", filepath.Join(r.folder, "toban-"+r.version+"-bundle-image.tar"),
	}
	labels := annotations.FindAllStringSubmatch(string(text), -1)
	if len(labels) == 0 {
		return errors.New("the bundle has no annotations for the labels of its image")
	}
	for _, label := range labels {
		args = append(args, "--label="+label[1]+"="+label[2])
	}
	_, err = output(ctx, "bin/localkube", append(args, folder)...)
	return err
}

// sums writes the sums of all files, in the order of their names.
func (r *release) sums(context.Context) error {
	if err := copyFile("CHANGELOG.md", r.folder); err != nil {
		return err
	}
	var names []string
	err := fs.WalkDir(os.DirFS(r.folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list the files of the release: %w", err)
	}
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		sum, err := sumOf(filepath.Join(r.folder, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
	}
	return r.write("SHA256SUMS", text.String())
}

func (r *release) write(name, text string) error {
	if err := writeFile(filepath.Join(r.folder, name), []byte(text)); err != nil {
		return fmt.Errorf("write a file of the release: %w", err)
	}
	return nil
}

// copyFile copies a file into a folder.
func copyFile(path, folder string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = writeFile(filepath.Join(folder, filepath.Base(path)), text)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", path, err)
	}
	return nil
}

// sumOf is the SHA-256 of a file, in hexadecimal digits.
func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("sum up %s: %w", path, err)
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("sum up %s: %w", path, err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// makeFolder makes a folder, and writeFile a file, that all may read: they are handed out.
func makeFolder(path string) error { return os.MkdirAll(path, 0o755) } //nolint:gosec // as above

func writeFile(path string, text []byte) error { return os.WriteFile(path, text, 0o644) } //nolint:gosec // as above
