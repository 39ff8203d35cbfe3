package pki

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Marker is the first line of every kubeconfig made here, by which one may
// later be replaced or removed.
const Marker = "# Written by localkube; `localkube down` removes it.\n"

// Kubeconfig returns the text with which the owner of the pair called name
// reaches the API server.
func (s Store) Kubeconfig(authority, name, server string) (string, error) {
	var encoded [3]string
	for i, path := range []string{s.Cert(authority), s.Cert(name), s.Key(name)} {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("make the kubeconfig of %s: %w", name, err)
		}
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	return Marker + fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: localkube
contexts:
- name: localkube
  context: {cluster: localkube, user: %[2]s}
clusters:
- name: localkube
  cluster:
    server: %[1]s
    certificate-authority-data: %[3]s
users:
- name: %[2]s
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`, server, name, encoded[0], encoded[1], encoded[2]), nil
}

// WriteKubeconfig writes a kubeconfig, readable by its owner only. It replaces
// only what was written here: a user's own may hold the way to other clusters.
func WriteKubeconfig(path, text string) error {
	old, err := os.ReadFile(path)
	switch {
	case err == nil && string(old) == text:
		return nil
	case err == nil && !strings.HasPrefix(string(old), Marker):
		return fmt.Errorf("%s was not written by localkube, so it is left alone: choose another file with --kubeconfig", path)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the kubeconfig's directory: %w", err)
	}
	return write(path, []byte(text))
}

// RemoveKubeconfig removes what WriteKubeconfig wrote.
func RemoveKubeconfig(path string) error {
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(data), Marker) {
		return nil // gone, or by now somebody else's
	}
	return os.Remove(path)
}
