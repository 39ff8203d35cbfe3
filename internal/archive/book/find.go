package book

import (
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
	owner, err := format.ReadOwner(ctx, f.in)
	lost := format.OwnerLost(err)
	if lost {
		var ok bool
		if owner, ok = byFolder(f.path); !ok {
			return nil // nobody's
		}
	} else if err != nil {
		return err
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
		one := Found{Path: f.path, Owner: owner, ByFolder: lost}
		f.read(ctx, id, text, &one)
		if err := f.found(one); err != nil {
			return err
		}
	}
	return nil
}

// byFolder is whose an archive is by the name of its folder, as Toban names them.
func byFolder(path string) (owner format.Owner, ok bool) {
	owner.Namespace, owner.Name, owner.UID, ok = naming.OfArchivePath(path)
	return owner, ok
}

// read fills in what a backup.json says, and the manifest.
func (f finder) read(ctx context.Context, id string, text []byte, into *Found) {
	if err := json.Unmarshal(text, &into.Backup); err != nil {
		into.Backup.ID, into.Problem = id, fmt.Sprintf("%s can't be understood: %v", format.FileBackup, err)
		return
	}
	b := &into.Backup
	b.Pieces, b.Lists = nil, nil
	if b.SampleDB.Name == "" {
		into.Problem = "it is of an older Toban, which did not store the manifest"
		return
	}
	stored, err := ReadStored(ctx, f.in, b.Folder(), b.SampleDB)
	if err == nil {
		into.SampleDB, err = format.Decode(f.decoder, b.Folder()+b.SampleDB.Name, stored, sampleDBLimit)
	}
	if err != nil {
		into.Problem = err.Error()
	}
}
