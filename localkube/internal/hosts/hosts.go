// Package hosts keeps the cluster's lines in /etc/hosts: a block between two
// marker lines. What is outside the markers is never changed.
package hosts

import (
	"fmt"
	"os"
	"strings"
)

const (
	begin = "# localkube: begin"
	end   = "# localkube: end"
)

// An Entry is one line: an address and its name.
type Entry struct{ IP, Name string }

// Set returns content with the block holding exactly these entries; with none
// the block is gone.
func Set(content string, entries []Entry) string {
	rest := remove(content)
	if len(entries) == 0 {
		return rest
	}
	var b strings.Builder
	b.WriteString(rest)
	if rest != "" && !strings.HasSuffix(rest, "\n") {
		b.WriteString("\n")
	}
	b.WriteString(begin + "\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "%s %s\n", e.IP, e.Name)
	}
	b.WriteString(end + "\n")
	return b.String()
}

// remove drops every block. A block whose end marker is missing was written by
// nobody (the file is written in one go), so then only the marker is dropped.
func remove(content string) string {
	for {
		from := strings.Index(content, begin+"\n")
		if from < 0 {
			return content
		}
		after := content[from+len(begin)+1:]
		if to := strings.Index(after, end+"\n"); to >= 0 {
			after = after[to+len(end)+1:]
		}
		content = content[:from] + after
	}
}

// Update sets the block in the file at path, and leaves the file alone when
// nothing changes. The file is written in place: in containers /etc/hosts is
// often a mount, which cannot be replaced by a rename.
func Update(path string, entries []Entry) error {
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	updated := Set(string(old), entries)
	if updated == string(old) {
		return nil
	}
	if err := os.WriteFile(path, []byte(updated), 0o644); err != nil { //nolint:gosec // everyone may read it
		return fmt.Errorf("write the node names to %s: %w", path, err)
	}
	return nil
}
