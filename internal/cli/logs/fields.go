package logs

import (
	"regexp"
	"strconv"
)

// serverLine is a line of PostgreSQL with the log_line_prefix that Toban sets by default. docs/kubectl-toban.md has it
// for those who collect logs elsewhere, so its groups are written as all programs know them.
const serverLine = `^(?P<timestamp>\S+ \S+ \S+) \[(?P<pid>[0-9]+)\] db=(?P<dbname>.*),user=(?P<user>.*),` +
	`app=(?P<application_name>.*),client=(?P<remote_host>\S*) (?P<error_severity>[A-Z0-9]+):  (?P<message>.*)$`

var serverLineFields = regexp.MustCompile(serverLine)

// serverFields are the fields of a line of PostgreSQL, with the names that PostgreSQL's jsonlog has for them.
type serverFields struct {
	Timestamp       string `json:"timestamp"`
	PID             int    `json:"pid"`
	DBName          string `json:"dbname,omitempty"`
	User            string `json:"user,omitempty"`
	ApplicationName string `json:"application_name,omitempty"`
	RemoteHost      string `json:"remote_host,omitempty"`
	// ErrorSeverity is also DETAIL, HINT, STATEMENT and so on, each of which has a line of its own.
	ErrorSeverity string `json:"error_severity"`
	Message       string `json:"message"`
}

// fieldsOf reads a line of PostgreSQL; nil for one without the prefix, such as the second line of a message.
func fieldsOf(line string) *serverFields {
	m := serverLineFields.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	pid, err := strconv.Atoi(m[2])
	if err != nil {
		return nil
	}
	return &serverFields{m[1], pid, m[3], m[4], m[5], m[6], m[7], m[8]}
}
