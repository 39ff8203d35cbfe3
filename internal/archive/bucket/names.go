package bucket

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxName is the length of the longest name, in bytes: that of S3 and Google
	// Cloud Storage (Amazon S3 User Guide, "Naming Amazon S3 objects").
	maxName = 1024
	// maxPart is the length of what is between two slashes, in bytes: a file's name on Linux.
	maxPart = 255
)

// checkName says what is wrong with the name of an object. What is legal is so
// in every store: a file system has no empty names nor "..", Azure changes
// backslashes and dots at the end, and names with a dot in front are the
// Folder's own.
func checkName(name string) error {
	if why := badText(name); why != "" {
		return fmt.Errorf("%w: the name %q %s", ErrInvalid, name, why)
	}
	for part := range strings.SplitSeq(name, "/") {
		if why := badPart(part); why != "" {
			return fmt.Errorf("%w: the name %q has a part which %s", ErrInvalid, name, why)
		}
	}
	return nil
}

// checkPrefix says what is wrong with the beginning of names: its last part may
// be cut off anywhere.
func checkPrefix(prefix string) error {
	if why := badText(prefix); why != "" {
		return fmt.Errorf("%w: the prefix %q %s", ErrInvalid, prefix, why)
	}
	if folder := folderOf(prefix); folder != "" {
		return checkName(strings.TrimSuffix(folder, "/"))
	}
	return nil
}

func badText(name string) string {
	switch {
	case len(name) > maxName:
		return fmt.Sprintf("is longer than %d bytes", maxName)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character"
	case strings.Contains(name, `\`):
		return "has a backslash"
	}
	return ""
}

func badPart(part string) string {
	switch {
	case part == "":
		return "is empty"
	case len(part) > maxPart:
		return fmt.Sprintf("is longer than %d bytes", maxPart)
	case part[0] == '.' || part[len(part)-1] == '.':
		return "begins or ends with a dot"
	}
	return ""
}

// folderOf is the part of a name or prefix that ends with a slash.
func folderOf(name string) string { return name[:strings.LastIndexByte(name, '/')+1] }

// check says what is wrong with an object that is to be written.
func check(name string, content []byte) error {
	if len(content) > MaxObject {
		return fmt.Errorf("%w: %s has %d bytes, more than %d", ErrInvalid, name, len(content), MaxObject)
	}
	return checkName(name)
}
