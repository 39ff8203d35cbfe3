package pki

import (
	"encoding/base64"
	"fmt"
	"os"
)

// origin tells readers of a kubeconfig whose it is. kubectl leaves it out when it
// changes one, so programs judge by the content: see package kubeconfig.
const origin = "# Written by localkube; `localkube down` removes it.\n"

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
	return origin + fmt.Sprintf(`apiVersion: v1
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
