package book

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/naming"
)

// sampleDBLimit is how large the manifest of a SampleDB may be, in bytes: more than what Kubernetes keeps of an object.
const sampleDBLimit = 4 << 20

// Found is a backup in a bucket of which nothing else is known.
type Found struct {
	// Path is the folder of its archive, Owner whose that is. ByFolder says that archive.json does not say it: then the
	// name of the folder does, and of the UID only how it begins. NotSaid is why, such as that it is lost.
	Path     string
	Owner    format.Owner
	ByFolder bool
	NotSaid  string
	// Backup is what its backup.json says, without the pieces: only the ID where that can't be read. It has no ID where
	// archive.json can't be read and the folder has no name of ours, so that nobody knows whether it is an archive.
	Backup format.Backup
	// SampleDB is the manifest of what was backed up, nil where it is not known, and Problem why not.
	SampleDB []byte
	Problem  string
}

// Find calls found with each backup of the archives in a folder of a bucket (a namespace), those of an archive from old
// to new. It reads little: how much lies in the archives does not matter, but in Azure's store, where all names are
// gone through. What can't be read, as an object that the store has moved to where it must be fetched from first, is
// told as the Problem of what it is about, and keeps nothing else from being found. What can't be listed ends it.
func Find(
	ctx context.Context, in bucket.Bucket, folder string, decoder *format.Decoder, found func(Found) error,
) error {
	names, err := subfolders(ctx, in, folder+"/")
	if err != nil {
		return fmt.Errorf("look for archives in %s: %w", folder, err)
	}
	for _, name := range names {
		f := finder{in: bucket.Sub(in, folder+"/"+name), path: folder + "/" + name, decoder: decoder, found: found}
		if err := f.archive(ctx); err != nil {
			return fmt.Errorf("look into the archive %s: %w", f.path, err)
		}
	}
	return nil
}

// subfolders are the names of the folders in a folder. For each the listing begins anew behind it, so that what is in
// it is not gone through.
func subfolders(ctx context.Context, in bucket.Bucket, folder string) (names []string, err error) {
	const behindSlash = "0" // the character after a slash: all that is in the folder comes before
	for after := ""; ; {
		name, is, err := firstAfter(ctx, in, folder, after)
		switch {
		case err != nil:
			return nil, err
		case name == "":
			return names, nil
		case !is: // an object that is in no folder
			after = folder + name
			continue
		}
		names, after = append(names, name), folder+name+behindSlash
	}
}

// firstAfter is the name of what comes first in a folder after a name, "" for nothing, and whether it is a folder.
func firstAfter(ctx context.Context, in bucket.Bucket, folder, after string) (string, bool, error) {
	for o, err := range in.ListAfter(ctx, folder, after) {
		if err != nil {
			return "", false, err
		}
		name, _, isFolder := strings.Cut(strings.TrimPrefix(o.Name, folder), "/")
		return name, isFolder, nil
	}
	return "", false, nil
}

// finder looks into one archive.
type finder struct {
	in      bucket.Bucket // rooted at the archive
	path    string
	decoder *format.Decoder
	found   func(Found) error
}

func (f finder) archive(ctx context.Context) error {
	text, err := format.ReadWhole(ctx, f.in, format.FileArchive)
	if ctx.Err() != nil {
		return err
	}
	whose, ok := ownerOf(text, err, f.path)
	switch {
	case !ok && (err == nil || errors.Is(err, bucket.ErrNotExist)):
		return nil // nobody's
	case !ok:
		return f.found(Found{Path: f.path, Problem: err.Error()})
	}
	ids, err := subfolders(ctx, f.in, format.FolderBase)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := f.backup(ctx, id, whose); err != nil {
			return err
		}
	}
	return nil
}

// backup tells of the backup of an id, where it has ended.
func (f finder) backup(ctx context.Context, id string, one Found) error {
	text, err := format.ReadWhole(ctx, f.in, format.FolderBase+id+"/"+format.FileBackup)
	switch {
	case errors.Is(err, bucket.ErrNotExist):
		return nil
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		one.Backup.ID, one.Problem = id, err.Error()
	default:
		f.read(ctx, id, text, &one)
	}
	return f.found(one)
}

// ownerOf is whose an archive is: by its archive.json, which was read with an error or without, or else by the name of
// its folder, as Toban names them. It is not ok where that is no such name. Of a layout that is not known here it has
// the Problem.
func ownerOf(text []byte, read error, path string) (out Found, ok bool) {
	out.Path = path
	owner, err := format.ParseOwner(text)
	if read == nil && err == nil && naming.IsOwner(owner.Namespace, owner.Name) {
		out.Owner = owner
		return out, true
	}
	out.Owner.Namespace, out.Owner.Name, out.Owner.UID, ok = naming.OfArchivePath(path)
	if read == nil && errors.Is(err, format.ErrLayout) {
		out.Problem = err.Error()
		return out, ok
	}
	out.ByFolder, out.NotSaid = true, notSaid(text, owner, read, err)
	return out, ok
}

// notSaid is why archive.json does not say whose the archive is: read is what was wrong with reading it, parsed what
// was wrong with its text, nil for nothing.
func notSaid(text []byte, owner format.Owner, read, parsed error) string {
	switch {
	case errors.Is(read, bucket.ErrNotExist), read == nil && len(bytes.TrimSpace(text)) == 0:
		return format.FileArchive + " is lost"
	case read != nil:
		return fmt.Sprintf("%s can't be read (%v)", format.FileArchive, read)
	case parsed != nil:
		return parsed.Error()
	}
	return fmt.Sprintf("%s names the SampleDB %q in the namespace %q, and none can have such a name",
		format.FileArchive, owner.Name, owner.Namespace)
}

// read fills in what a backup.json says, and the manifest, where nothing is known that speaks against it.
func (f finder) read(ctx context.Context, id string, text []byte, into *Found) {
	if err := json.Unmarshal(text, &into.Backup); err != nil {
		into.Backup.ID = id
		into.Problem = cmp.Or(into.Problem, fmt.Sprintf("%s can't be understood: %v", format.FileBackup, err))
		return
	}
	b := &into.Backup
	b.Pieces, b.Lists = nil, nil
	if into.Problem != "" {
		return
	}
	if b.SampleDB.Name == "" {
		into.Problem = "it is of an older Toban, which did not store the manifest"
		return
	}
	stored, err := f.stored(ctx, b.Folder()+b.SampleDB.Name, b.SampleDB)
	if err == nil {
		into.SampleDB, err = format.Decode(f.decoder, b.Folder()+b.SampleDB.Name, stored, sampleDBLimit)
	}
	if err == nil && !json.Valid(into.SampleDB) { // whoever passes it on could pass nothing on
		err = fmt.Errorf("%s is no manifest: it is no JSON", b.SampleDB.Name)
	}
	if err != nil {
		into.SampleDB, into.Problem = nil, err.Error()
	}
}

// stored is an object of which size and SHA-256 are known. It is asked for once: a restore waits for a store that is
// away, and who looks for what there is wants to know what can't be read.
func (f finder) stored(ctx context.Context, name string, o format.Object) ([]byte, error) {
	stored, err := format.ReadMost(ctx, f.in, name, o.Size+1)
	switch {
	case errors.Is(err, bucket.ErrNotExist):
		return nil, &format.ObjectError{Name: name, What: format.Missing}
	case err != nil:
		return nil, err
	}
	return stored, o.Check(name, stored)
}
