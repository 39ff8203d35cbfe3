package logs

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Who has logged a line.
const (
	sourcePostgreSQL = "postgresql"
	sourceAgent      = "agent"
)

// logLine is a line in the log of an instance.
type logLine struct {
	// Time is when the node has read it.
	Time     time.Time `json:"time"`
	Instance string    `json:"instance"`
	// Role is the one that the instance has now, "" where it has none.
	Role string `json:"role,omitempty"`
	// Source is postgresql or agent.
	Source string `json:"source"`
	Line   string `json:"line"`
	// PostgreSQL has the fields of a line of the server, nil where it has none.
	PostgreSQL *serverFields `json:"postgresql,omitempty"`
}

func (l logLine) String() string {
	return fmt.Sprintf("%s %-7s %s", l.Instance, cmp.Or(l.Role, "-"), l.Line)
}

// sourceOf says who has logged a line. The agent writes objects of slog, and its last words; PostgreSQL's
// log_line_prefix begins with a time.
func sourceOf(line string) string {
	var words struct {
		Time  *time.Time `json:"time"`
		Level *string    `json:"level"`
		Msg   *string    `json:"msg"`
	}
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &words) == nil &&
		words.Time != nil && words.Level != nil && words.Msg != nil || strings.HasPrefix(line, "toban: ") {
		return sourceAgent
	}
	return sourcePostgreSQL
}

// podLog is the log of an instance, with line as the present one.
type podLog struct {
	instance, role string
	reader         *bufio.Reader
	line           logLine
	err            error
	// last is what keepLast has left to show, with the error at its end; nil for what the reader gives.
	last *lastLines
}

// lastLines are the last lines of a log, and why there may be more.
type lastLines struct {
	lines []logLine
	err   error
}

// keepLast reads the log to its end, and leaves the last so many lines of those that are wanted.
func (p *podLog) keepLast(n int, wanted func(logLine) bool) {
	last := &lastLines{}
	for p.next() {
		if !wanted(p.line) {
			continue
		}
		if last.lines = append(last.lines, p.line); len(last.lines) > n {
			last.lines = last.lines[1:]
		}
	}
	last.err, p.err, p.last = p.err, nil, last
}

func newPodLog(instance, role string, from io.Reader) *podLog {
	return &podLog{instance: instance, role: role, reader: bufio.NewReader(from)}
}

// next goes on to the next line, and says whether there is one; err is why not, nil at the end.
func (p *podLog) next() bool {
	if p.last != nil {
		return p.nextLast()
	}
	text, err := p.reader.ReadString('\n')
	if text == "" {
		if !errors.Is(err, io.EOF) {
			p.err = fmt.Errorf("read the log of %s: %w", p.instance, err)
		}
		return false
	}
	stamp, line, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil { // the kubelet's own words, such as that a file is gone
		at, line = p.line.Time, strings.TrimSuffix(text, "\n")
	}
	p.line = logLine{Time: at, Instance: p.instance, Role: p.role, Source: sourceOf(line), Line: line}
	if p.line.Source == sourcePostgreSQL {
		p.line.PostgreSQL = fieldsOf(line)
	}
	return true
}

func (p *podLog) nextLast() bool {
	if len(p.last.lines) == 0 {
		p.err = p.last.err
		return false
	}
	p.line, p.last.lines = p.last.lines[0], p.last.lines[1:]
	return true
}

// mergeLogs shows the lines of several logs in the order of their time, and those of one log in its order.
func mergeLogs(logs []*podLog, show func(logLine) error) error {
	var failed error
	goOn := func(p *podLog) bool {
		more := p.next()
		failed = errors.Join(failed, p.err)
		return more
	}
	open := slices.DeleteFunc(slices.Clone(logs), func(p *podLog) bool { return !goOn(p) })
	for len(open) > 0 {
		first := slices.MinFunc(open, func(a, b *podLog) int { return a.line.Time.Compare(b.line.Time) })
		if err := show(first.line); err != nil {
			return errors.Join(failed, err)
		}
		if !goOn(first) {
			open = slices.DeleteFunc(open, func(p *podLog) bool { return p == first })
		}
	}
	return failed
}
