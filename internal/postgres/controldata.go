package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"toban.dev/internal/wal"
)

// Control is what the control file of a data directory says, read with
// pg_controldata. It can be read while the server is down.
type Control struct {
	SystemIdentifier string
	// State as PostgreSQL words it, e.g. "in production", "shut down".
	State string
	// Checkpoint is where the record of the latest checkpoint begins, e.g. "0/3000028".
	// After a fast stop it is the shutdown's, the last record there is.
	Checkpoint string
	// Timeline of the latest checkpoint.
	Timeline wal.Timeline
	// Least has the parameters that a standby must not set lower than the primary
	// did, by name (PostgreSQL 17 documentation, 26.4.3 Administrator's Overview).
	Least map[string]int
	// Nonce is random, made by initdb, and told to nobody: the server uses it to answer logins of roles that do not
	// exist. Copies have the same.
	Nonce []byte
}

// leastParameters are the labels of pg_controldata by parameter.
var leastParameters = map[string]string{
	"max_connections setting":      "max_connections",
	"max_worker_processes setting": "max_worker_processes",
	"max_wal_senders setting":      "max_wal_senders",
	"max_prepared_xacts setting":   "max_prepared_transactions",
	"max_locks_per_xact setting":   "max_locks_per_transaction",
}

// BoundsStandby says whether a parameter is one that a standby must not set lower
// than its primary does.
func BoundsStandby(parameter string) bool {
	for _, name := range leastParameters {
		if name == parameter {
			return true
		}
	}
	return false
}

// Control reads the control file.
func (s *Server) Control(ctx context.Context) (Control, error) {
	cmd := s.Programs.command(ctx, "pg_controldata", "--pgdata", s.Data.Path())
	var out, messages words
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := Children.RunReading(ctx, s.Data.Path(), cmd); err != nil {
		return Control{}, fmt.Errorf("pg_controldata: %w: %s", err, lastLines(messages.String(), 1))
	}
	return parseControl(out.String())
}

func parseControl(text string) (Control, error) {
	c := Control{Least: map[string]int{}}
	for line := range strings.Lines(text) {
		label, value, _ := strings.Cut(line, ":")
		if err := c.set(label, strings.TrimSpace(value)); err != nil {
			return Control{}, fmt.Errorf("pg_controldata says %q: %w", strings.TrimSpace(line), err)
		}
	}
	if c.SystemIdentifier == "" {
		return Control{}, fmt.Errorf("pg_controldata does not say the system identifier")
	}
	return c, nil
}

func (c *Control) set(label, value string) error {
	switch label {
	case "Database system identifier":
		c.SystemIdentifier = value
	case "Database cluster state":
		c.State = value
	case "Latest checkpoint location":
		c.Checkpoint = value
	case "Mock authentication nonce":
		nonce, err := hex.DecodeString(value)
		c.Nonce = nonce
		return err
	case "Latest checkpoint's TimeLineID":
		n, err := strconv.ParseUint(value, 10, 32)
		c.Timeline = wal.Timeline(n)
		return err
	default:
		if parameter, ok := leastParameters[label]; ok {
			n, err := strconv.Atoi(value)
			c.Least[parameter] = n
			return err
		}
	}
	return nil
}
