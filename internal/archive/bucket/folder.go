package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// staging is the folder where objects are written before they get their names.
	staging = ".incoming"
	// abandoned is how old a file there is that nobody is writing any more: the
	// largest object takes seconds.
	abandoned = time.Hour
)

// Folder is a bucket in a file system: an object is a file. Several processes may
// use one at the same time.
type Folder struct{ path string }

// OpenFolder makes a bucket of a folder, which need not be there yet: until it is,
// everything is ErrNoBucket. What writers that were killed have left is removed.
func OpenFolder(path string) *Folder {
	f := &Folder{path}
	f.sweep(time.Now().Add(-abandoned))
	return f
}

// sweep removes files that were to become objects, from before a moment. One that
// can't be removed is in nobody's way.
func (f *Folder) sweep(before time.Time) {
	root, err := f.root()
	if err != nil {
		return
	}
	defer root.Close()
	entries, _ := fs.ReadDir(root.FS(), staging)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.ModTime().Before(before) {
			_ = root.Remove(path.Join(staging, entry.Name())) // it is tried again
		}
	}
}

// root opens the folder. That is done each time: a volume that comes later, or
// goes, is seen. No name leads out of it, not even by a symbolic link.
func (f *Folder) root() (*os.Root, error) {
	root, err := os.OpenRoot(f.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%w: %w", ErrNoBucket, err)
	}
	return root, fileError(err)
}

// Put writes an object, replacing one of the same name.
func (f *Folder) Put(ctx context.Context, name string, content []byte) error {
	if err := check(name, content); err != nil {
		return err
	}
	return f.write(ctx, name, bytes.NewReader(content), (*os.Root).Rename)
}

// Create writes an object that must not be there yet: link(2) makes a name for a
// file only if there is none, even on NFS.
func (f *Folder) Create(ctx context.Context, name string, content []byte) error {
	if err := check(name, content); err != nil {
		return err
	}
	return f.write(ctx, name, bytes.NewReader(content), (*os.Root).Link)
}

// write makes a file of content, and gives it its name once it is on the disk.
func (f *Folder) write(
	ctx context.Context, name string, content io.Reader, place func(root *os.Root, from, to string) error,
) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	root, err := f.root()
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer root.Close()
	temporary, err := stage(root, content)
	defer root.Remove(temporary) //nolint:errcheck // after a rename there is none
	if err == nil {
		err = enter(root, temporary, name, place)
	}
	if err == nil {
		err = syncFolders(root, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, fileError(err))
	}
	return nil
}

// stage writes a file and waits until it is on the disk. It returns its name even
// with an error.
func stage(root *os.Root, content io.Reader) (string, error) {
	if err := root.Mkdir(staging, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return staging + "/none", fmt.Errorf("make the folder for incoming objects: %w", err)
	}
	name := path.Join(staging, rand.Text())
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return name, fmt.Errorf("make a file: %w", err)
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return name, fmt.Errorf("write a file: %w", err)
	}
	return name, nil
}

// enter gives a file its name. Its folder may be missing, and may go again, as long
// as there is nothing in it: Delete removes empty ones. MkdirAll then says that it is
// missing, or that it exists, where another has made it meanwhile: neither is about the object.
func enter(root *os.Root, temporary, name string, place func(root *os.Root, from, to string) error) error {
	const attempts = 20
	var err error
	for range attempts {
		if err = place(root, temporary, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err := root.MkdirAll(path.Dir(name), 0o700)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make a folder: %w", err)
		}
	}
	return err
}

// syncFolders waits until the name of an object is on the disk, and those of the
// folders above it, whoever has made them.
func syncFolders(root *os.Root, name string) error {
	for folder := path.Dir(name); ; folder = path.Dir(folder) {
		if err := syncFolder(root, folder); err != nil {
			return err
		}
		if folder == "." {
			return nil
		}
	}
}

// syncFolder waits until what was done in a folder is on the disk. One that is gone
// has nothing to keep.
func syncFolder(root *os.Root, folder string) error {
	file, err := root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open a folder: %w", err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return fmt.Errorf("write a folder: %w", err)
	}
	return nil
}

// Get reads an object from its beginning. It is an *os.File.
func (f *Folder) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	file, _, err := f.open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return file, nil
}

// open opens an object, and says how long it is (bytes).
func (f *Folder) open(ctx context.Context, name string) (*os.File, int64, error) {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return nil, 0, err
	}
	root, err := f.root()
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	file, err := root.Open(name)
	if absent(err) {
		return nil, 0, fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	if err != nil {
		return nil, 0, fileError(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotExist // a folder is no object
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// List goes through the objects whose names begin with prefix.
func (f *Folder) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return f.ListAfter(ctx, prefix, "")
}

// Delete removes objects, and the folders that are empty then.
func (f *Folder) Delete(ctx context.Context, names ...string) error {
	root, err := f.root()
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	defer root.Close()
	folders := map[string]bool{}
	for _, name := range names {
		if err := remove(ctx, root, name); err != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
		folders[path.Dir(name)] = true
	}
	for folder := range folders {
		if err := syncFolder(root, folder); err != nil && !errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("delete: %w", err)
		}
		prune(root, folder)
	}
	return nil
}

func remove(ctx context.Context, root *os.Root, name string) error {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	if absent(err) || err == nil && info.IsDir() {
		return nil
	}
	if err != nil {
		return fileError(err)
	}
	if err := root.Remove(name); err != nil && !absent(err) {
		return fileError(err)
	}
	return nil
}

// prune removes a folder and those above it as far as they are empty: rmdir(2)
// leaves the others alone.
func prune(root *os.Root, folder string) {
	for ; folder != "."; folder = path.Dir(folder) {
		if info, err := root.Lstat(folder); err == nil && !info.IsDir() {
			return
		}
		if err := root.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// absent says that there is no file of a name, or that what would be its folder is a file.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// fileError gives an error of the file system its meaning.
func fileError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	return err
}

// ListAfter goes through the objects whose names begin with prefix and come after one.
func (f *Folder) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Object{}, err)
			return
		}
		root, err := f.root()
		if err != nil {
			yield(Object{}, fmt.Errorf("list %s: %w", prefix, err))
			return
		}
		defer root.Close()
		walk{ctx, root, prefix, after, yield}.folder(folderOf(prefix))
	}
}

// walk is a listing that goes on.
type walk struct {
	ctx           context.Context
	root          *os.Root
	prefix, after string
	yield         func(Object, error) bool
}

// folder goes through a folder, whose name ends with a slash; the root's is empty.
// It says whether to go on.
func (w walk) folder(name string) bool {
	entries, err := w.entries(name)
	if err != nil {
		w.yield(Object{}, fmt.Errorf("list %s: %w", name, err))
		return false
	}
	for _, entry := range entries {
		switch {
		case strings.HasSuffix(entry, "/"):
			if w.leads(entry) && !w.folder(entry) {
				return false
			}
		case entry > w.after && strings.HasPrefix(entry, w.prefix) && !w.file(entry):
			return false
		}
	}
	return true
}

// leads says whether there may be something wanted in a folder.
func (w walk) leads(folder string) bool {
	return (strings.HasPrefix(folder, w.prefix) || strings.HasPrefix(w.prefix, folder)) &&
		(folder > w.after || strings.HasPrefix(w.after, folder))
}

// entries are the whole names of what is in a folder, those of folders with a slash
// at the end: so their order is that of all names below.
func (w walk) entries(folder string) ([]string, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	file, err := w.root.Open(path.Clean(folder))
	if absent(err) {
		return nil, nil // deleted meanwhile
	}
	if err != nil {
		return nil, fileError(err)
	}
	defer file.Close()
	found, err := file.ReadDir(-1)
	if absent(err) {
		return nil, nil // the prefix has a file where it has a folder
	}
	if err != nil {
		return nil, fileError(err)
	}
	names := make([]string, 0, len(found))
	for _, entry := range found {
		name := folder + entry.Name()
		if checkName(name) != nil {
			continue
		}
		if entry.IsDir() {
			names = append(names, name+"/")
		} else if entry.Type().IsRegular() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (w walk) file(name string) bool {
	info, err := w.root.Lstat(name)
	if absent(err) {
		return true // deleted meanwhile
	}
	if err != nil {
		w.yield(Object{}, fmt.Errorf("list %s: %w", name, fileError(err)))
		return false
	}
	return w.yield(Object{Name: name, Size: info.Size(), Modified: info.ModTime()}, nil)
}
