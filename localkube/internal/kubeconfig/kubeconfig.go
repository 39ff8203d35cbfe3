// Package kubeconfig writes and removes kubeconfigs of the local cluster, and leaves
// those alone that lead elsewhere too.
package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// Write writes a kubeconfig for server, readable by its owner only. It replaces
// only one that leads to server and nowhere else, whoever wrote it last: kubectl
// changes kubeconfigs (kubectl config set-context), and then writes them in its
// own form. Any other may hold a user's only way to another cluster.
//
// What was chosen in the replaced one, such as a namespace, is gone: who starts
// the cluster gets the kubeconfig that it is documented to have.
func Write(path, server, text string) error {
	old, err := os.ReadFile(path)
	switch {
	case err == nil && string(old) == text:
		return nil
	case err == nil && !leadsOnlyTo(server, old):
		return fmt.Errorf("%s is not a kubeconfig of this cluster (%s) alone, so it is left as it is: "+
			"choose another file with --kubeconfig", path, server)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the kubeconfig's directory: %w", err)
	}
	// In one go: a reader sees all of it or nothing.
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// Remove removes a kubeconfig that leads to server and nowhere else.
func Remove(path, server string) error {
	data, err := os.ReadFile(path)
	if err != nil || !leadsOnlyTo(server, data) {
		return nil // gone, or by now somebody else's
	}
	return os.Remove(path)
}

// leadsOnlyTo says whether a kubeconfig has a cluster, and no cluster but server.
// What can't be read may lead anywhere.
func leadsOnlyTo(server string, data []byte) bool {
	config, err := clientcmd.Load(data)
	if err != nil || len(config.Clusters) == 0 {
		return false
	}
	for _, cluster := range config.Clusters {
		if cluster.Server != server {
			return false
		}
	}
	return true
}
