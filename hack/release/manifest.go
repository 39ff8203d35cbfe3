package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var namesImage = regexp.MustCompile(`(?m)^ *(?:- )?image: "?([^" \n]+)"?$`)

// manifest is a file of config with another image of the operator, wherever it names it. The image may be named by its
// digest: toban@sha256:….
func manifest(file, image string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the manifest: %w", err)
	}
	current := namesImage.FindSubmatch(text)
	switch {
	case image == "":
		return "", errUsage
	case current == nil:
		return "", fmt.Errorf("%s names no image", file)
	}
	return strings.ReplaceAll(string(text), string(current[1]), image), nil
}

const krewHead = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: toban
spec:
  version: %s
  shortDescription: Operate PostgreSQL databases of Toban
  description: |
    Shows what state a SampleDB is in and why, and does what its operator leaves to people: switchovers, backups,
    restores, upgrades, drills.
  platforms:
`

const krewPlatform = `    - selector:
        matchLabels: {os: %s, arch: %s}
      uri: %s/%s
      sha256: %s
      bin: %s
`

var platforms = regexp.MustCompile(`-(linux|darwin|windows)-([a-z0-9]+)\.tar\.gz$`)

// krew is the manifest by which krew installs the plugin of a release from archives, which will be below a URL.
func krew(version, url string, archives []string) (string, error) {
	if len(archives) == 0 {
		return "", errors.New("there is no archive from which krew could install the plugin")
	}
	var out strings.Builder
	fmt.Fprintf(&out, krewHead, version)
	for _, archive := range archives {
		platform := platforms.FindStringSubmatch(archive)
		if platform == nil {
			return "", fmt.Errorf("%s does not say for which platform it is", archive)
		}
		sum, err := sumOf(archive)
		if err != nil {
			return "", err
		}
		program := map[string]string{"windows": "kubectl-toban.exe"}[platform[1]]
		fmt.Fprintf(&out, krewPlatform, platform[1], platform[2], url, filepath.Base(archive), sum,
			cmp.Or(program, "kubectl-toban"))
	}
	return out.String(), nil
}
