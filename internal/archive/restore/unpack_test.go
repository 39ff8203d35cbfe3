package restore

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

func tarOf(t *testing.T, headers ...tar.Header) *bytes.Reader {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(text.Bytes())
}

func TestNothingIsUnpackedOutsideOfItsFolder(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 3} }
	spaces := tar.Header{Name: "pg_tblspc", Typeflag: tar.TypeDir}
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
	}
	for name, c := range map[string]struct {
		headers []tar.Header
		ok      bool
	}{
		"files, a folder, a tablespace": {
			[]tar.Header{file("backup_label"), spaces, link("pg_tblspc/5", "/old")}, true,
		},
		"the folder above":        {[]tar.Header{file("../x")}, false},
		"a root":                  {[]tar.Header{file("/x")}, false},
		"a way back":              {[]tar.Header{spaces, file("pg_tblspc/../../x")}, false},
		"through a tablespace":    {[]tar.Header{spaces, link("pg_tblspc/5", "/old"), file("pg_tblspc/5/x")}, false},
		"a link elsewhere":        {[]tar.Header{link("base", "..")}, false},
		"a tablespace nobody has": {[]tar.Header{spaces, link("pg_tblspc/6", "/old")}, false},
		"a hard link":             {[]tar.Header{{Name: "x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, false},
		"a device":                {[]tar.Header{{Name: "x", Typeflag: tar.TypeChar}}, false},
		"a file twice":            {[]tar.Header{file("x"), file("x")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			data, space := filepath.Join(outside, "data"), filepath.Join(outside, "space")
			for _, folder := range []string{data, space} {
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			u := &unpacking{meter: transfer.NewMeter(nil, 0)}
			u.Workers, u.Bucket, u.Decoder = 2, buckettest.NewMemory(), &format.Decoder{}
			content, err := io.ReadAll(tarOf(t, c.headers...))
			if err != nil {
				t.Fatal(err)
			}
			piece := putPiece(t, u.Bucket, format.Backup{}, format.PieceName(format.BaseTar, 0), content)
			err = u.unpackTar(t.Context(), format.Backup{Pieces: []format.Object{piece}}, format.BaseTar, data,
				map[uint32]string{5: space})
			if (err == nil) != c.ok {
				t.Errorf("the error is %v", err)
			}
			for _, folder := range []string{outside, space} {
				if entries, err := os.ReadDir(folder); err != nil || len(entries) > 2 ||
					folder == space && len(entries) > 0 {
					t.Errorf("in %s there is %v, %v", folder, entries, err)
				}
			}
		})
	}
}

func TestTargets(t *testing.T) {
	if _, err := Settings(book.Target{XID: "7", Name: "x"}, 1); err == nil {
		t.Error("two targets are taken")
	}
	all, err := Settings(book.Target{LSN: 1 << 32, Exclusive: true}, 7)
	if err != nil || all["recovery_target_lsn"] != "1/0" || all["recovery_target_inclusive"] != "false" ||
		all["recovery_target_timeline"] != "7" {
		t.Errorf("the settings are %v, %v", all, err)
	}
	if _, set := all["recovery_target_time"]; set {
		t.Error("a target that is not meant is set")
	}
}
