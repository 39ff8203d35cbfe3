package postgres

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// logDelay is how long the last words of a postmaster that has ended are waited for. A session that outlives its
// postmaster holds the log open: that must not hide the postmaster's end.
const logDelay = 50 * time.Millisecond

// serverLog is what a server writes to its standard error, by a pipe that outlasts the program that reads it.
type serverLog struct {
	read *os.File
	to   io.Writer
	over chan struct{}
}

// begin begins to read.
func (l *serverLog) begin() {
	l.over = make(chan struct{})
	go func() {
		defer close(l.over)
		_, _ = io.Copy(l.to, l.read) // it ends with the server, or when it is paused
	}()
}

// pause stops reading: all that was read has been passed on, and what is written meanwhile waits in the pipe.
func (l *serverLog) pause() error {
	if err := l.read.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return fmt.Errorf("stop reading the server's log: %w", err)
	}
	<-l.over
	return nil
}

// resume goes on after pause.
func (l *serverLog) resume() {
	_ = l.read.SetReadDeadline(time.Time{}) // it could be set before
	l.begin()
}

// end reads the last words of a server that has ended.
func (l *serverLog) end() {
	_ = l.read.SetReadDeadline(time.Now().Add(logDelay)) // without a deadline it is read to the end
	<-l.over
	_ = l.read.Close() // nothing was written
}

// logTail keeps the last lines of a log.
type logTail struct{ lines []string }

const tailLines = 20

// Write takes what os/exec copies; it is called by one goroutine.
func (t *logTail) Write(p []byte) (int, error) {
	scanner := bufio.NewScanner(strings.NewReader(string(p)))
	for scanner.Scan() {
		t.lines = append(t.lines, scanner.Text())
	}
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
	return len(p), nil
}

func (t *logTail) rejection() string { return lastWords(t.lines) }

// culprit is how the postmaster names the process that it stops for.
var culprit = regexp.MustCompile(`\(PID (\d+)\) (?:exited|was terminated)`)

// lastWords are the last fatal message of a server, or its last line. Where the postmaster names a process that it
// stops for, they are that one's: others may fail of the same cause, and say less of it.
func lastWords(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if named := culprit.FindStringSubmatch(lines[i]); named != nil {
			if _, words := lastFatal(lines[:i], "["+named[1]+"]"); words != "" {
				return words
			}
		}
	}
	if at, words := lastFatal(lines, ""); words != "" {
		return words + cause(lines[:at])
	}
	for _, line := range slices.Backward(lines) {
		// A postmaster that can't write one of its own files ends with no fatal message (CreateOptsFile).
		if _, text, ok := strings.Cut(line, "LOG:"); ok && strings.Contains(text, "could not write file") {
			return strings.TrimSpace(text)
		}
	}
	if len(lines) == 0 {
		return "it said nothing"
	}
	return lines[len(lines)-1]
}

// noFolder is how PostgreSQL says that a folder is missing, redoCreate what it was replaying then.
var (
	noFolder   = regexp.MustCompile(`(?:FATAL|ERROR): +directory "(/[^"]+)" does not exist$`)
	redoCreate = regexp.MustCompile(`CONTEXT: +WAL redo at [0-9A-F/]+ for Tablespace/CREATE: `)
)

// missingTablespace is the folder that a server's last words name as missing for a tablespace, "" if they name none.
func missingTablespace(lines []string) string {
	for i, line := range slices.Backward(lines) {
		found := noFolder.FindStringSubmatch(line)
		if found != nil && slices.ContainsFunc(lines[i:], redoCreate.MatchString) {
			return found[1]
		}
	}
	return ""
}

// lastFatal is the last fatal message in lines that contain something, and which line it is; "" if there is none.
func lastFatal(lines []string, of string) (at int, words string) {
	for i := len(lines) - 1; i >= 0; i-- {
		if !strings.Contains(lines[i], of) {
			continue
		}
		for _, level := range []string{"FATAL:", "PANIC:"} {
			if _, text, ok := strings.Cut(lines[i], level); ok {
				return i, strings.TrimSpace(text)
			}
		}
	}
	return 0, ""
}

// cause is the message before a fatal one, which often has the detail.
func cause(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	_, text, ok := strings.Cut(lines[len(lines)-1], "LOG:")
	if !ok || strings.Contains(text, "starting PostgreSQL") || strings.Contains(text, "listening on") {
		return ""
	}
	return " (" + strings.TrimSpace(text) + ")"
}
