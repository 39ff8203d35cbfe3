package image

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"time"
)

// epoch is the time of every file that this package puts in an image, so that
// the same content gives the same digest on every machine and day.
var epoch = time.Unix(0, 0)

// entry is one file or directory of a root file system that is made by hand.
// A name that ends with a slash is a directory.
type entry struct {
	name string
	mode int64
	data []byte
}

// writeRootfs writes entries as a tar, in the order given: parents come first.
func writeRootfs(path string, entries []entry) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create the layer: %w", err)
	}
	defer file.Close()
	if err := writeEntries(file, entries); err != nil {
		return fmt.Errorf("write the layer: %w", err)
	}
	return file.Close()
}

func writeEntries(w io.Writer, entries []entry) error {
	tw := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{
			Name: e.name, Mode: e.mode, Size: int64(len(e.data)),
			ModTime: epoch, Typeflag: tar.TypeReg,
		}
		if e.name[len(e.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := tw.WriteHeader(header); err != nil {
			return err
		}
		if _, err := tw.Write(e.data); err != nil {
			return err
		}
	}
	return tw.Close()
}
