package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// ImageOptions are all that a look into an image needs.
type ImageOptions struct {
	// Major is the major version of the programs that are looked for.
	Major int
	// Termination is the file for the result.
	Termination string
}

// Image looks what is in the image that it runs in, and leaves that where the kubelet finds it, whatever came of it.
func Image(ctx context.Context, o ImageOptions) error {
	result, err := lookIntoImage(ctx, o.Major)
	result.Error = pod.Words(err)
	fitImage(&result)
	return errors.Join(err, pod.Leave(o.Termination, result, &result.Error))
}

func lookIntoImage(ctx context.Context, major int) (protocol.ImageResult, error) {
	programs, err := postgres.FindPrograms(ctx, major)
	if err != nil {
		return protocol.ImageResult{}, err
	}
	return protocol.ImageResult{
		Version: programs.Version, CLibrary: CLibrary(ctx), ICU: icu("/"), Extensions: Extensions(ctx, programs),
	}, nil
}

// fitImage leaves out extensions that a termination message has no room for, the last ones first.
func fitImage(result *protocol.ImageResult) {
	pod.Fit(result, pod.MaxTermination, pod.Drop(&result.Extensions, 0))
}

// CLibrary is the C library: glibc says its version itself (getconf, GNU_LIBC_VERSION); musl is known by its loader.
func CLibrary(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "getconf", "GNU_LIBC_VERSION").Output()
	if text := strings.TrimSpace(string(out)); err == nil && text != "" && text != "undefined" {
		return text
	}
	if found, _ := filepath.Glob("/lib/ld-musl-*.so.1"); len(found) > 0 {
		return "musl"
	}
	return ""
}

// icuLibrary is a library of ICU by its full version, to which the shorter names are links.
var icuLibrary = regexp.MustCompile(`^libicuuc\.so\.(\d+\.\d+)`)

// icu is the version of ICU below a root, "" where none is found.
func icu(root string) string {
	for _, pattern := range []string{"usr/lib/*/libicuuc.so.*", "usr/lib/libicuuc.so.*", "usr/lib64/libicuuc.so.*"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern)) // only a malformed pattern is an error
		for _, path := range found {
			if match := icuLibrary.FindStringSubmatch(filepath.Base(path)); match != nil {
				return match[1]
			}
		}
	}
	return ""
}

// defaultVersion is the line of a control file that says it (PostgreSQL 18 documentation, "Extension Files").
var defaultVersion = regexp.MustCompile(`(?m)^\s*default_version\s*=\s*'([^']*)'`)

// Extensions are those that can be created, by the control files in the folder of PostgreSQL's shared files.
func Extensions(ctx context.Context, programs postgres.Programs) []string {
	var out []string
	for _, folder := range SharedFolders(ctx, programs) {
		files, _ := filepath.Glob(filepath.Join(folder, "extension", "*.control"))
		for _, path := range files {
			text, err := os.ReadFile(path)
			match := defaultVersion.FindSubmatch(text)
			if err == nil && match != nil {
				out = append(out, fmt.Sprintf("%s %s", strings.TrimSuffix(filepath.Base(path), ".control"), match[1]))
			}
		}
		if len(out) > 0 {
			break
		}
	}
	slices.Sort(out)
	return out
}

// SharedFolders are the folders in which the shared files may be: where pg_config says, else where Debian and a build
// with a prefix of its own have them.
func SharedFolders(ctx context.Context, programs postgres.Programs) []string {
	folders := []string{
		fmt.Sprintf("/usr/share/postgresql/%d", programs.Major),
		filepath.Join(programs.Dir, "../share/postgresql"), filepath.Join(programs.Dir, "../share"),
	}
	out, err := exec.CommandContext(ctx, filepath.Join(programs.Dir, "pg_config"), "--sharedir").Output()
	if err != nil {
		return folders
	}
	return append([]string{strings.TrimSpace(string(out))}, folders...)
}
