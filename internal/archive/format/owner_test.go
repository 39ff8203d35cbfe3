package format

import (
	"context"
	"errors"
	"testing"

	"toban.dev/internal/archive/bucket/buckettest"
)

// careless is a bucket that replaces what it should leave.
type careless struct{ *buckettest.Memory }

func (c careless) Create(ctx context.Context, name string, content []byte) error {
	return c.Put(ctx, name, content)
}

func TestAnArchiveIsClaimedWhereWritersAreKeptApart(t *testing.T) {
	owner := Owner{UID: "one", SystemIdentifier: "1"}
	m := buckettest.NewMemory()
	if err := Claim(t.Context(), careless{m}, owner); !errors.Is(err, ErrReplaces) || len(m.Objects) > 0 {
		t.Errorf("%v, and there is %v", err, m.Objects)
	}
	if err := Claim(t.Context(), m, owner); err != nil || len(m.Objects) != 1 {
		t.Errorf("%v, and there is %v", err, m.Objects)
	}
	// One that was claimed is not tried again: a lost leader may be writing.
	before := len(m.Objects)
	m.Fault = func(after bool) error {
		if after && len(m.Objects) != before {
			t.Error("something is written into an archive that is claimed")
		}
		return nil
	}
	if err := Claim(t.Context(), m, owner); err != nil {
		t.Error(err)
	}
	if err := Claim(t.Context(), m, Owner{UID: "two", SystemIdentifier: "1"}); !errors.Is(err, ErrTaken) {
		t.Errorf("another's: %v", err)
	}
	// Whatever fails on the way, it is claimed afterwards.
	for n := range 12 {
		m, calls := buckettest.NewMemory(), 0
		m.Fault = func(bool) error {
			if calls++; calls == n {
				return buckettest.ErrInjected
			}
			return nil
		}
		err := Claim(t.Context(), m, owner)
		if err != nil && !errors.Is(err, buckettest.ErrInjected) {
			t.Errorf("call %d: %v", n, err)
		}
		m.Fault = func(bool) error { return nil }
		if err := Claim(t.Context(), m, owner); err != nil {
			t.Errorf("after call %d: %v", n, err)
		}
	}
}

// ours is the owner of the archives here.
var ours = Owner{UID: "u", Namespace: "n", Name: "db", SystemIdentifier: "7"}

func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		there string
		taken bool
		ok    bool
	}{
		"nobody's": {"", false, true},
		"ours":     {`{"format":1,"uid":"u","namespace":"n","name":"db","systemIdentifier":"7"}`, false, true},
		"another SampleDB's": {
			`{"format":1,"uid":"v","namespace":"n","name":"db","systemIdentifier":"7"}`, true, false,
		},
		"another system's": {
			`{"format":1,"uid":"u","namespace":"n","name":"db","systemIdentifier":"8"}`, true, false,
		},
		"of a format to come":     {`{"format":2,"uid":"u","systemIdentifier":"7"}`, false, false},
		"not to be understood":    {`{`, false, false},
		"of somebody without UID": {`{"format":1}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := buckettest.NewMemory()
			if c.there != "" {
				_ = b.Put(t.Context(), FileArchive, []byte(c.there))
			}
			err := Claim(t.Context(), b, ours)
			if (err == nil) != c.ok || errors.Is(err, ErrTaken) != c.taken {
				t.Errorf("%v", err)
			}
			var taken *TakenError
			if c.taken && (!errors.As(err, &taken) || taken.Owner.Name != "db") {
				t.Errorf("%v does not name the owner", err)
			}
			if c.there != "" && string(b.Objects[FileArchive].Content) != c.there {
				t.Error("it was written")
			}
		})
	}
}

// An archive.json that is lost is written anew where the backups prove whose the archive is, and over nobody else's.
func TestAnArchiveWhoseOwnerIsLost(t *testing.T) {
	const file = FolderBase + "b1/" + FileBackup
	own, other := `{"systemIdentifier":"7"}`, `{"systemIdentifier":"8"}`
	segment := TermFolder(1) + "000000010000000000000001.zst"
	for name, c := range map[string]struct {
		there          map[string]string
		known          bool
		taken, unknown bool
	}{
		"nothing is there":        {map[string]string{"probe-x": "x"}, false, false, false},
		"our backups":             {map[string]string{file: own, segment: "x"}, false, false, false},
		"an empty one":            {map[string]string{FileArchive: "\n", file: own}, false, false, false},
		"an empty one of another": {map[string]string{FileArchive: "", file: other}, true, true, false},
		"another's backups":       {map[string]string{file: other, segment: "x"}, false, true, false},
		"another's too": {
			map[string]string{file: own, FolderBase + "b2/" + FileBackup: other}, false, true, false,
		},
		"another's, though known":     {map[string]string{file: other}, true, true, false},
		"WAL alone":                   {map[string]string{segment: "x"}, false, false, true},
		"WAL alone, known":            {map[string]string{segment: "x"}, true, false, false},
		"a backup that did not end":   {map[string]string{FolderBase + "b1/base.tar.0000": "x"}, false, false, false},
		"a backup that can't be read": {map[string]string{file: "{"}, false, false, true},
		"one of them can be": {
			map[string]string{file: "{", FolderBase + "b2/" + FileBackup: own}, false, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := buckettest.NewMemory()
			for name, content := range c.there {
				_ = b.Put(t.Context(), name, []byte(content))
			}
			claim := Claim
			if c.known {
				claim = Reclaim
			}
			var unclaimed *UnclaimedError
			err := claim(t.Context(), b, ours)
			if errors.Is(err, ErrTaken) != c.taken || errors.As(err, &unclaimed) != c.unknown ||
				(err == nil) == (c.taken || c.unknown) {
				t.Errorf("%v", err)
			}
			owner, missing := ReadOwner(t.Context(), b)
			if (err == nil) != (missing == nil && owner.Same(ours) == nil) {
				t.Errorf("afterwards it is of %s: %v", owner, missing)
			}
			for name, content := range c.there {
				if name != FileArchive && string(b.Objects[name].Content) != content {
					t.Errorf("%s has changed", name)
				}
			}
		})
	}
}

func TestLostAnswerToClaim(t *testing.T) {
	b := buckettest.NewMemory()
	b.Fault = func(after bool) error {
		if after {
			return buckettest.ErrInjected
		}
		return nil
	}
	if err := Claim(t.Context(), b, ours); !errors.Is(err, buckettest.ErrInjected) {
		t.Fatal(err)
	}
	b.Fault = func(bool) error { return nil }
	if err := Claim(t.Context(), b, ours); err != nil {
		t.Error(err)
	}
}
