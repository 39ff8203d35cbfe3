package book

import (
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
	// Path is the folder of its archive, Owner whose that is. ByFolder says that archive.json is lost: then the name of
	// the folder says whose it is, and of the UID only how it begins.
	Path     string
	Owner    format.Owner
	ByFolder bool
	// Backup is what its backup.json says, without the pieces.
	Backup format.Backup
	// SampleDB is the manifest of what was backed up, nil where it is not known, and Problem why not.
	SampleDB []byte
	Problem  string
}

// Find calls found with each backup of the archives in a folder of a bucket (a namespace), those of an archive from old
// to new. It reads little: how much lies in the archives does not matter, but in Azure's store, where all names are
// gone through. What can't be read is told as the Problem of what it is about.
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
	if err != nil && !errors.Is(err, bucket.ErrNotExist) {
		return err
	}
	whose, ok := ownerOf(text, f.path)
	if !ok {
		return nil // nobody's
	}
	ids, err := subfolders(ctx, f.in, format.FolderBase)
	if err != nil {
		return err
	}
	for _, id := range ids {
		text, err := format.ReadWhole(ctx, f.in, format.FolderBase+id+"/"+format.FileBackup)
		if errors.Is(err, bucket.ErrNotExist) {
			continue // one that did not end
		}
		if err != nil {
			return err
		}
		one := whose
		f.read(ctx, id, text, &one)
		if err := f.found(one); err != nil {
			return err
		}
	}
	return nil
}

// ownerOf is whose an archive is: by its archive.json, nil for a missing one, or else by the name of its folder, as
// Toban names them. It is not ok where that is no such name. Of a layout that is not known here it has the Problem.
func ownerOf(text []byte, path string) (out Found, ok bool) {
	out.Path = path
	owner, err := format.ParseOwner(text)
	if err == nil && naming.IsOwner(owner.Namespace, owner.Name) {
		out.Owner = owner
		return out, true
	}
	out.Owner.Namespace, out.Owner.Name, out.Owner.UID, ok = naming.OfArchivePath(path)
	if errors.Is(err, format.ErrLayout) {
		out.Problem = err.Error()
	} else {
		out.ByFolder = true
	}
	return out, ok
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
	stored, err := ReadStored(ctx, f.in, b.Folder(), b.SampleDB)
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
