package pooler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// files are what PgBouncer reads: the kubelet brings some of it, which may change, and the rest is made of that.
type files struct {
	settingsFile string
	paths        paths
	listen       listening
	names        string // where look-ups are answered

	settings protocol.PoolSettings
	// written is of what the files were made last.
	written []byte
}

// write makes the files, and says whether PgBouncer has to read them.
func (f *files) write() (changed bool, err error) {
	var all [][]byte
	for _, file := range []string{
		f.settingsFile, filepath.Join(f.paths.certificate, naming.KeyTLSCertificate),
		filepath.Join(f.paths.certificate, naming.KeyTLSKey),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, fmt.Errorf("read what the pooler is told: %w", err)
		}
		all = append(all, text)
	}
	text := bytes.Join(all, []byte("\n"))
	if bytes.Equal(text, f.written) {
		return false, nil
	}
	settings, err := readSettings(f.settingsFile)
	if err != nil {
		return false, err
	}
	if settings.Server == "" {
		return false, errors.New("the pooler's settings do not say by which name to know a server: " +
			"wait until the operator has written them")
	}
	for path, content := range map[string]string{
		f.paths.authority():     settings.Authority + settings.Given,
		f.paths.resolver():      resolver(f.names),
		f.paths.access():        access,
		f.paths.configuration(): configuration(settings, f.paths, f.listen),
	} {
		if err := postgres.WriteFile(path, []byte(content), 0o600); err != nil {
			return false, err
		}
	}
	f.settings, f.written = settings, text
	return true, nil
}

// forget has the files made again.
func (f *files) forget() { f.written = nil }

// authorities are those that the instances' agents are known by. They are read anew, as they may be rotated.
func (f *files) authorities() string {
	settings, err := readSettings(f.settingsFile)
	if err != nil {
		return ""
	}
	return settings.Authority
}

// operator is the authority that the operator is known by, "" where it asks nothing.
func (f *files) operator() string {
	settings, err := readSettings(f.settingsFile)
	if err != nil {
		return ""
	}
	return settings.Operator
}

func readSettings(file string) (settings protocol.PoolSettings, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return settings, fmt.Errorf("read the pooler's settings: %w", err)
	}
	if err := json.Unmarshal(text, &settings); err != nil {
		return settings, fmt.Errorf("understand the pooler's settings: %w", err)
	}
	return settings, nil
}
