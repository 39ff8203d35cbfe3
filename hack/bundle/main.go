// Command bundle writes the OLM bundle (registry+v1): a ClusterServiceVersion with the objects of config, the kinds,
// and what a catalog asks for beside. It is made of the same files as the manifests and the chart: rights,
// Deployment, kinds, examples and the README's introduction are told nowhere twice. hack/bundle/files has what only a
// bundle has.
package main

import (
	"embed"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed files
var own embed.FS

// release is what one bundle has that others have not.
type release struct {
	version string // without the v
	image   string // the operator's, with its digest
	url     string // where the release's files are
}

func main() {
	var r release
	out := flag.String("out", "", "the folder to write the bundle to")
	flag.StringVar(&r.version, "version", "", "the release's version, such as v0.1.0")
	flag.StringVar(&r.image, "image", "", "the operator's image with its digest")
	flag.StringVar(&r.url, "url", "", "where the release's files can be loaded")
	flag.Parse()
	r.version = strings.TrimPrefix(r.version, "v")
	if err := write(".", *out, r); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// write makes a bundle of the repository at root.
func write(root, out string, r release) error {
	files, err := bundle(root, r)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // everyone may read it
			return fmt.Errorf("make the bundle's folder: %w", err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // everyone may read it
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	return nil
}

// bundle is all files of a bundle by their paths in it.
func bundle(root string, r release) (map[string][]byte, error) {
	c, err := read(root)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, path := range map[string]string{
		"annotations.yaml": "metadata/annotations.yaml",
		"scorecard.yaml":   "tests/scorecard/config.yaml",
	} {
		if files[path], err = own.ReadFile("files/" + name); err != nil {
			return nil, fmt.Errorf("read the bundle's own files: %w", err)
		}
	}
	maps.Copy(files, c.kindFiles)
	service, err := c.serviceVersion(r)
	if err != nil {
		return nil, err
	}
	if files["manifests/toban.clusterserviceversion.yaml"], err = manifest(service); err != nil {
		return nil, err
	}
	for _, object := range c.others {
		name := fmt.Sprintf("manifests/%s_%s.yaml", object.GetName(), strings.ToLower(object.GetKind()))
		if files[name], err = manifest(object.Object); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// manifest is an object as YAML, without what only a cluster writes.
func manifest(object any) ([]byte, error) {
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write a manifest: %w", err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("read a manifest again: %w", err)
	}
	delete(fields, "status")
	return yaml.Marshal(fields)
}
