package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// former says whether the data directory is of another major version than the programs, and of which: one that an
// upgrade of the others has left behind. Such data can't be used; only a Clone cures it.
func (s *Server) former() (major int, is bool, err error) {
	text, err := os.ReadFile(filepath.Join(s.Data.Path(), "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) || s.Programs.Major == 0 {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("see of which version the data directory is: %w", err)
	}
	if major, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return 0, false, fmt.Errorf("see of which version the data directory is: %w", err)
	}
	return major, major != s.Programs.Major, nil
}

// clearFormer removes what data of another major version has in tablespaces, before a copy takes its place: that has
// them in the same folders, which have to be empty.
func (s *Server) clearFormer() error {
	major, is, err := s.former()
	if err != nil || !is {
		return err
	}
	found, err := filepath.Glob(filepath.Join(s.Data.Path(), "pg_tblspc", "*", fmt.Sprintf("PG_%d_*", major)))
	if err != nil {
		return fmt.Errorf("look for the tablespaces of version %d: %w", major, err)
	}
	for _, path := range found {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove a tablespace of version %d: %w", major, err)
		}
	}
	return nil
}
