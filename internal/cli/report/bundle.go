package report

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"

	escape "toban.dev/internal/cli/root"
)

// bundle is a compressed archive that is written file by file.
type bundle struct {
	zip   *gzip.Writer
	tar   *tar.Writer
	root  string
	at    time.Time
	files []string
}

// newBundle begins one; all of it is in a folder of that name.
func newBundle(out io.Writer, root string, at time.Time) *bundle {
	zip := gzip.NewWriter(out)
	return &bundle{zip: zip, tar: tar.NewWriter(zip), root: root, at: at}
}

// add writes a file of text. Who helps reads it in a terminal.
func (b *bundle) add(name string, content []byte) error {
	content = escape.EscapedText(content)
	header := &tar.Header{
		Name: b.root + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: b.at, Format: tar.FormatPAX,
	}
	if err := b.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := b.tar.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	b.files = append(b.files, name)
	return nil
}

func (b *bundle) close() error { return errors.Join(b.tar.Close(), b.zip.Close()) }
