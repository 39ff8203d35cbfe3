package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"toban.dev/internal/postgres/sql"
)

// ofCopy is how the folder of a tablespace ends that a copy has made beside one with something in it.
var ofCopy = regexp.MustCompile(`\.toban-[0-9a-f]{8}$`)

// spacesOf are the folders of the tablespaces that a source has. Where it does not say, a copy goes on as if there were
// none: pg_basebackup then has them where the source has them, or says that it can't.
func (s *Server) spacesOf(ctx context.Context, from string, progress io.Writer) []string {
	const query = `select pg_catalog.pg_tablespace_location(oid) from pg_catalog.pg_tablespace
		where pg_catalog.pg_tablespace_location(oid) like '/%'`
	cmd := s.Programs.command(ctx, "psql", "--no-psqlrc", "--no-password", "--tuples-only", "--no-align",
		"--record-separator-zero", "--command", query, from+" dbname=postgres")
	cmd.Env = append(cmd.Env, sql.OptionsVariable(sql.Settings(RoleReplication, nil)))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, progress
	if err := Children.Run(cmd); err != nil {
		_, _ = fmt.Fprintf(progress, "the source does not say which tablespaces it has: %v\n", err)
		return nil
	}
	return slices.DeleteFunc(strings.Split(said.String(), "\x00"), func(folder string) bool {
		return strings.TrimSpace(folder) == ""
	})
}

// spaces are the folders of the tablespaces of data that is copied.
type spaces struct {
	data DataDirectory
	// list asks the source which it has.
	list     func() []string
	progress io.Writer
	// folders are those that the source has, or the data had that is replaced.
	folders []string
}

// place removes what is left in folders of tablespaces, and gives the options by which pg_basebackup has those of a
// source where they can be.
func (s *spaces) place() (options []string, err error) {
	of := s.list()
	if s.folders, err = TablespaceLinks(s.data.Path()); err != nil {
		return nil, err
	}
	s.folders = append(s.folders, of...)
	s.sweep()
	return mapSpaces(of)
}

// sweep is sweepSpaces. What it can't remove only takes room.
func (s *spaces) sweep() {
	if err := s.data.sweepSpaces(s.folders); err != nil {
		_, _ = fmt.Fprintf(s.progress, "what is left of tablespaces stays: %v\n", err)
	}
}

// longestSpace is how long the path of a tablespace's folder may be: base backups have it in a tar archive, as where a
// link leads (tarCreateHeader in PostgreSQL's tar.c).
const longestSpace = 99

// mapSpaces are the options by which pg_basebackup gives tablespaces folders of their own. It wants them to be empty,
// and where a copy takes the place of data that has tablespaces, or had some, they are not.
func mapSpaces(folders []string) (options []string, err error) {
	escape := strings.NewReplacer(`=`, `\=`)
	taken := map[string]bool{}
	for _, folder := range folders {
		target := ofCopy.ReplaceAllString(folder, "")
		entries, err := os.ReadDir(target)
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("look at the folder of a tablespace: %w", err)
		}
		if len(entries) > 0 || taken[target] {
			mark := make([]byte, 4)
			_, _ = rand.Read(mark) // it never fails
			target += ".toban-" + hex.EncodeToString(mark)
		}
		if len(target) > longestSpace {
			return nil, fmt.Errorf("the folder of a tablespace would be %s, which is longer than %d bytes: "+
				"move it to a shorter one", target, longestSpace)
		}
		if taken[target] = true; target != folder {
			options = append(options, "--tablespace-mapping", escape.Replace(folder)+"="+escape.Replace(target))
		}
	}
	return options, nil
}

// sweepSpaces removes what no data on the volume has any more of the folders of tablespaces: what copies have made that
// were given up, and what data had that was replaced. Of a folder that somebody else has made only what PostgreSQL has
// made in it goes (PG_17_…, PostgreSQL 17 documentation, 65.1). Folders that are not on the volume stay. Where it is
// not known which ones data has, nothing goes.
func (d DataDirectory) sweepSpaces(folders []string) error {
	if len(folders) == 0 {
		return nil
	}
	volume, err := filepath.EvalSymlinks(d.Volume)
	if err != nil {
		return fmt.Errorf("look for the folders of tablespaces: %w", err)
	}
	used, err := d.linkedSpaces()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		base := ofCopy.ReplaceAllString(folder, "")
		copies, err := filepath.Glob(quoteGlob(base) + ".toban-*")
		if err != nil {
			return fmt.Errorf("look for the folders of tablespaces: %w", err)
		}
		for _, path := range append(copies, base) {
			resolved, err := filepath.EvalSymlinks(path)
			if err != nil || !strings.HasPrefix(resolved, volume+"/") || used[resolved] {
				continue // one that is not there has nothing in it
			}
			if err := clearSpace(resolved); err != nil {
				return err
			}
		}
	}
	return nil
}

// clearSpace removes what PostgreSQL has made in the folder of a tablespace, and the folder if a copy has made it.
func clearSpace(folder string) error {
	made, err := filepath.Glob(filepath.Join(quoteGlob(folder), "PG_*"))
	if err != nil {
		return fmt.Errorf("remove what is left of a tablespace: %w", err)
	}
	for _, path := range made {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what is left of a tablespace: %w", err)
		}
	}
	if ofCopy.MatchString(folder) {
		_ = os.Remove(folder) // somebody else's things may be in it
	}
	return nil
}

// linkedSpaces are the folders, without links in their paths, that any data on the volume has tablespaces in, also what
// was set aside.
func (d DataDirectory) linkedSpaces() (map[string]bool, error) {
	used := map[string]bool{}
	above, err := folders(d.Volume)
	if err != nil {
		return nil, err
	}
	for _, folder := range above {
		below, err := folders(folder)
		if err != nil {
			return nil, err
		}
		for _, data := range append(below, folder) {
			links, err := TablespaceLinks(data)
			if err != nil {
				return nil, err
			}
			for _, link := range links {
				if resolved, err := filepath.EvalSymlinks(link); err == nil {
					link = resolved
				}
				used[link] = true
			}
		}
	}
	return used, nil
}

// folders are those in a folder; of none, or of what is no folder, there are none.
func folders(in string) (list []string, err error) {
	entries, err := os.ReadDir(in)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("look for the folders of tablespaces: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			list = append(list, filepath.Join(in, entry.Name()))
		}
	}
	return list, nil
}

// TablespaceLinks are where the tablespaces of a data directory are, as it has them; one that is not there has none.
func TablespaceLinks(data string) (list []string, err error) {
	in := filepath.Join(data, "pg_tblspc")
	entries, err := os.ReadDir(in)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("look for the folders of tablespaces: %w", err)
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 {
			continue // one inside of the data directory (allow_in_place_tablespaces)
		}
		to, err := os.Readlink(filepath.Join(in, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("look for the folders of tablespaces: %w", err)
		}
		list = append(list, to)
	}
	return list, nil
}

// quoteGlob has a path stand for itself in a pattern.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
