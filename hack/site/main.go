// Command site writes the documentation as a site: the Markdown pages of the repository as plain HTML, with a
// navigation, a table of contents for each page and a search. It needs no server and asks nobody: the pages can be read
// from the disk. The same pages always give the same files.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "dist/docs", "folder for the site; a former site in it is removed first")
	repository := flag.String("repository", "", "address below which the files of the repository are, for links to "+
		"files that are no pages: https://example.com/toban/tree/main; without it, these links are plain text")
	flag.Parse()
	written, err := build(".", *out, *repository)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s: open %s/index.html\n", written, *out, *out)
}

// build reads the pages below root and writes the site. It returns how many pages it has.
func build(root, out, repository string) (int, error) {
	s, err := read(root, repository)
	if err != nil {
		return 0, err
	}
	for _, p := range s.pages {
		if err := s.relink(p); err != nil {
			return 0, fmt.Errorf("%s: %w", p.source, err)
		}
	}
	if err := removeFormer(out); err != nil {
		return 0, err
	}
	return len(s.pages), s.write(out)
}

// removeFormer removes a former site, since a page that was renamed must not stay. It removes nothing else.
func removeFormer(out string) error {
	entries, err := os.ReadDir(out)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return fmt.Errorf("look for a former site: %w", err)
	}
	if _, err := os.Stat(filepath.Join(out, indexName)); err != nil {
		return fmt.Errorf("%s is no former site, so nothing in it is removed: give an empty folder", out)
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove the former site: %w", err)
	}
	return nil
}
