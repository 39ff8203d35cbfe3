package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// RoleReplication is the role that standbys log in with, by certificate.
const RoleReplication = "toban_replication"

// RoleBackup is the role that takes base backups, by certificate.
const RoleBackup = "toban_backup"

// RoleLink is the role by which the other side of a blue/green upgrade follows this one, with a password. It may come
// though the server is closed to clients.
const RoleLink = "toban_link"

// The application names of those that copy and do not follow. No instance has
// such a name, for those end with a number: pg_basebackup with a slot reports
// what it has written as a standby does, and under a name of the rule in
// synchronous_standby_names that would count as an acknowledgement.
const (
	nameClone  = "toban-clone"
	nameRewind = "toban-rewind"
)

// How long what was sent may stay unacknowledged by the network (milliseconds),
// at either end, before the connection is given up. A standby does better to
// connect anew than to wait for TCP, which waits twice as long after each packet lost in a row; a
// copy would have to start over. But it also gets the present segment of WAL from its start then: with less patience
// than for the fifth try (after 0.2, 0.4, 0.8, 1.6 and 3.2 s), one that follows over a network which loses a third of
// the packets never gets to the end (docs/measurements.md, "A network that loses packets").
const (
	followPatience = 6500
	onlyPatience   = 3000
	copyPatience   = 10000
)

// conninfo is the libpq connection string of an upstream (PostgreSQL 17
// documentation, 32.1.1). The server is known by its authority, not by its name, unless that is not the SampleDB's own.
func (k keys) conninfo(u Upstream, name, key string, patience int) string {
	mode, authorities := "verify-ca", FileAuthority
	if u.ByName {
		mode, authorities = "verify-full", FileServers
	}
	pairs := []string{
		"host=" + u.Host, "port=" + strconv.Itoa(u.Port), "user=" + RoleReplication, "application_name=" + name,
		"sslmode=" + mode, "sslrootcert=" + filepath.Join(string(k), authorities),
		"sslcert=" + filepath.Join(string(k), FileCertificate), "sslkey=" + filepath.Join(string(k), key),
		"connect_timeout=3", "keepalives_idle=5", "keepalives_interval=2", "keepalives_count=3",
		fmt.Sprintf("tcp_user_timeout=%d", patience),
		fmt.Sprintf("options='-c search_path=pg_catalog -c tcp_user_timeout=%d'", patience),
	}
	if u.Address != "" {
		pairs = append(pairs, "hostaddr="+u.Address)
	}
	return strings.Join(pairs, " ")
}

// followingInfo is the connection string of a standby, which is of one term.
func (k keys) followingInfo(u Upstream) string {
	patience := followPatience
	if u.Only {
		patience = onlyPatience
	}
	return k.conninfo(u, u.Name, keyLink(u.Term), patience)
}

// copyingInfo is the connection string of a program that copies.
func (k keys) copyingInfo(u Upstream, name string) string {
	return k.conninfo(u, name, FileKey, copyPatience)
}

const (
	linkPrefix = "replication-"
	linkSuffix = ".key"
	// fileRevoked has the lowest term that a server may follow in.
	fileRevoked = "replication.term"
)

// keys are the TLS files in Run, by which a server logs in where it copies and follows.
type keys string

func (s *Server) keys() keys { return keys(s.Run) }

// keyLink is the name of a term's key there.
func keyLink(term uint64) string { return linkPrefix + strconv.FormatUint(term, 10) + linkSuffix }

// links keeps Revoke and Configure from making and removing links at once.
var links sync.Mutex

// allow lets the server follow in a term: its key link is made.
func (k keys) allow(term uint64) error {
	links.Lock()
	defer links.Unlock()
	lowest, err := k.lowestTerm()
	if err != nil {
		return err
	}
	if term < lowest {
		return fmt.Errorf("follow a server in term %d: terms before %d have been revoked", term, lowest)
	}
	err = os.Symlink(FileKey, filepath.Join(string(k), keyLink(term)))
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the key link of term %d: %w", term, err)
	}
	return nil
}

// Revoke ends the right to follow in all terms before the given one, for this
// Server and for as long as Run lasts: their key links are removed, and Configure
// refuses to make them again. A startup process may still have the connection
// string of an older term in memory, and new WAL receivers would get it; but
// libpq looks for the key when it connects and fails without: "certificate present, but not
// private key file" (initialize_SSL in PostgreSQL's fe-secure-openssl.c,
// the same in 15 to 18). A receiver that is connected already goes on: see StopReceiving.
func (s *Server) Revoke(term uint64) error { return s.keys().revoke(term) }

func (k keys) revoke(term uint64) error {
	links.Lock()
	defer links.Unlock()
	if err := k.raiseLowestTerm(term); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(k))
	if err != nil {
		return fmt.Errorf("revoke the terms before %d: %w", term, err)
	}
	for _, entry := range entries {
		of, ok := linkTerm(entry.Name())
		if !ok || of >= term {
			continue
		}
		if err := os.Remove(filepath.Join(string(k), entry.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("revoke term %d: %w", of, err)
		}
	}
	return nil
}

// linkTerm is the term of a key link's name.
func linkTerm(name string) (term uint64, ok bool) {
	text, prefixed := strings.CutPrefix(name, linkPrefix)
	text, suffixed := strings.CutSuffix(text, linkSuffix)
	term, err := strconv.ParseUint(text, 10, 64)
	return term, prefixed && suffixed && err == nil
}

// lowestTerm is the lowest that has not been revoked.
func (k keys) lowestTerm() (uint64, error) {
	text, err := os.ReadFile(filepath.Join(string(k), fileRevoked))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read which terms are revoked: %w", err)
	}
	term, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read which terms are revoked: %w", err)
	}
	return term, nil
}

func (k keys) raiseLowestTerm(term uint64) error {
	lowest, err := k.lowestTerm()
	if err != nil || term <= lowest {
		return err
	}
	return WriteFile(filepath.Join(string(k), fileRevoked), []byte(strconv.FormatUint(term, 10)+"\n"), 0o600)
}
