package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// pack packs what is in a folder: the same archive of the same files, whoever packs them, whenever.
func pack(archive, folder string) (err error) {
	out, err := os.Create(archive)
	if err != nil {
		return fmt.Errorf("pack %s: %w", archive, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression) // it notes no name and no time unless it is told one
	if err != nil {
		return fmt.Errorf("pack %s: %w", archive, err)
	}
	files := tar.NewWriter(packed)
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // in the order of the names
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return fmt.Errorf("name a file: %w", err)
		}
		return add(files, filepath.ToSlash(name), path, d)
	})
	if err := errors.Join(err, files.Close(), packed.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", archive, err)
	}
	return nil
}

// add adds a file or a folder to an archive: of nobody, without a time, and without rights that differ by who packs.
func add(files *tar.Writer, name, path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644, ModTime: time.Unix(0, 0),
		Format: tar.FormatUSTAR,
	}
	switch {
	case d.IsDir():
		header.Typeflag, header.Name, header.Size, header.Mode = tar.TypeDir, name+"/", 0, 0o755
	case info.Mode()&0o100 != 0:
		header.Mode = 0o755
	}
	if err := files.WriteHeader(header); err != nil || d.IsDir() {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(files, file)
	return err
}
