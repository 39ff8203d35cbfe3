package passwords

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// MaxLength is the longest password (bytes) that is taken. PostgreSQL takes longer ones; poolers and drivers do not.
const MaxLength = 512

// Read reads the Secrets that are mounted in a folder, each in a folder of its own name.
func Read(folder string) (map[string]Found, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for the mounted Secrets: %w", err)
	}
	out := map[string]Found{}
	for _, entry := range entries {
		found, err := readOne(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read Secret %s: %w", entry.Name(), err)
		}
		out[entry.Name()] = found
	}
	return out, nil
}

func readOne(folder string) (Found, error) {
	text, err := os.ReadFile(filepath.Join(folder, Key))
	if errors.Is(err, fs.ErrNotExist) {
		return missing(folder)
	}
	if err != nil {
		return Found{}, err
	}
	// Who makes a Secret of a file has its last line break in it.
	password := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if problem := check(password); problem != "" {
		return Found{Problem: problem}, nil
	}
	return Found{Password: password}, nil
}

// missing tells a Secret without the key from none at all. The kubelet puts each key of a Secret into a file.
func missing(folder string) (Found, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return Found{}, err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "..") { // the kubelet's own
			return Found{Problem: KeyMissing}, nil
		}
	}
	return Found{Problem: SecretMissing}, nil
}

func check(password string) Problem {
	switch {
	case password == "":
		return Empty
	case len(password) > MaxLength:
		return TooLong
	case strings.ContainsAny(password, "\x00\r\n"), !utf8.ValidString(password):
		return Malformed
	}
	return ""
}

// Digest tells one state of the Secrets from another.
func Digest(found map[string]Found) (string, error) {
	text, err := json.Marshal(found) //nolint:gosec // it does not leave; the keys of a map are sorted
	if err != nil {
		return "", fmt.Errorf("encode the passwords: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}
