package major

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The bounds of what a failure is told with.
const (
	mostWords = 1100 // bytes
	mostLines = 12   // of each file
)

// failure is how pg_upgrade ends a line about what has failed.
var failure = regexp.MustCompile(`\s*(fatal|failed|\*failure\*)$`)

// words are pg_upgrade's own about its failure: what it has said last, and what it has written into files, without the
// places of our folders.
func words(said, output string, folders ...string) string {
	parts := []string{complaint(said)}
	files, logs := written(output)
	for _, path := range files {
		parts = append(parts, filepath.Base(path)+": "+head(path))
	}
	for _, path := range logs {
		if text := grumbles(path); len(files) == 0 && text != "" {
			parts = append(parts, filepath.Base(path)+": "+text)
		}
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return clip(tidy(strings.Join(parts, "; "), append(folders, output)...), mostWords)
}

// complaint is what pg_upgrade has said since it last said "ok", without lines that only name a file.
func complaint(said string) string {
	var kept []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if strings.HasSuffix(line, " ok") || strings.HasPrefix(line, "---") {
			kept = nil
			continue
		}
		line = strings.TrimSpace(failure.ReplaceAllString(line, ""))
		if line == "" || strings.HasPrefix(line, "/") || line == "Failure, exiting" ||
			strings.HasPrefix(line, "A list of ") || strings.HasPrefix(line, "Consult the last few lines") ||
			strings.HasPrefix(line, `"/`) || strings.HasPrefix(line, "the probable cause") ||
			strings.HasPrefix(line, "child process exited abnormally") {
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept[max(0, len(kept)-mostLines):], " ")
}

// written are the lists and the logs that pg_upgrade has left, the newest folder's.
func written(output string) (lists, logs []string) {
	_ = filepath.WalkDir(output, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // what can't be read is not told
		}
		switch filepath.Ext(path) {
		case ".txt":
			lists = append(lists, path)
		case ".log":
			logs = append(logs, path)
		}
		return nil
	})
	return lists, logs
}

func head(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if len(lines) > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("and %d lines more", len(lines)-mostLines))
	}
	return strings.Join(lines, ", ")
}

// bad is a line of a log that says why.
var bad = regexp.MustCompile(`(FATAL|PANIC|ERROR|error|fatal|HINT|DETAIL):`)

// consequence is what another process says of the end of its server.
var consequence = regexp.MustCompile(`terminating connection due to administrator command|` +
	`server closed the connection unexpectedly`)

// grumbles are the last lines of a log that say why.
func grumbles(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if bad.MatchString(line) && !consequence.MatchString(line) {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	return strings.Join(kept[max(0, len(kept)-3):], " ")
}

// tidy leaves out the places of folders.
func tidy(text string, folders ...string) string {
	for _, folder := range folders {
		text = strings.ReplaceAll(text, folder+"/", "")
		text = strings.ReplaceAll(text, folder, "")
	}
	return strings.Join(strings.Fields(text), " ")
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}
