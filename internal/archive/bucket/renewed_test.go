package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// door is a store that lets one key in. What it was opened with is in its value.
type door struct {
	store
	takes *string // the key that is let in
	key   string
}

func (d door) put(context.Context, string, []byte, bool) error {
	if d.key != *d.takes {
		return fmt.Errorf("%w: the key is %q", ErrDenied, d.key)
	}
	return nil
}

func (d door) remove(context.Context, []string) error {
	return fmt.Errorf("%w: by the policy", ErrDenied)
}

// behindDoor opens one, and counts how often.
func behindDoor(t *testing.T, patient bool) (b Bucket, takes *string, change func(key string), opened *int) {
	t.Helper()
	config := Config{Credentials: t.TempDir(), Patient: patient}
	change = func(key string) {
		if err := os.WriteFile(filepath.Join(config.Credentials, fileAccountKey), []byte(key), 0o600); err != nil {
			t.Error(err)
		}
	}
	takes, opened = new(string), new(int)
	*takes = "old"
	change("old")
	s, err := openRenewed(config, func() (store, error) {
		*opened++
		key, err := config.secret(fileAccountKey)
		if key == "malformed" {
			return nil, fmt.Errorf("%w: it is no key", ErrDenied)
		}
		return door{takes: takes, key: key}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return remote{s}, takes, change, opened
}

func TestCredentialsAreReadAgain(t *testing.T) {
	b, takes, change, opened := behindDoor(t, false)
	put := func() error { return b.Put(t.Context(), "a", nil) }
	for range 3 {
		if err := put(); err != nil {
			t.Fatal(err)
		}
	}
	if *opened != 1 {
		t.Errorf("it was set up %d times with the same credentials", *opened)
	}
	*takes = "new"
	if err := put(); !errors.Is(err, ErrDenied) {
		t.Errorf("with the old key: %v", err)
	}
	change("malformed")
	if err := put(); !errors.Is(err, ErrDenied) {
		t.Errorf("with a key that is none: %v", err)
	}
	change("new")
	if err := put(); err != nil {
		t.Errorf("with the new key: %v", err)
	}
}

// Who is patient waits for credentials that come later than they are needed, though not for ever, nor for what it
// never was allowed.
func TestPatience(t *testing.T) {
	for name, c := range map[string]struct {
		patient  bool
		first    bool          // it was allowed before
		comes    time.Duration // when the new key comes, 0 for never
		ok       bool
		at, most time.Duration
	}{
		"a Secret that comes late":             {true, true, time.Minute, true, time.Minute, time.Minute + renewPause},
		"a Secret that never comes":            {true, true, 0, false, renewPatience - 2*renewPause, renewPatience},
		"credentials that were always wrong":   {true, false, 0, false, 0, 0},
		"one who is not patient, and archives": {false, true, time.Minute, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, takes, change, _ := behindDoor(t, c.patient)
				if c.first {
					if err := b.Put(t.Context(), "a", nil); err != nil {
						t.Fatal(err)
					}
				}
				*takes = "new"
				if c.comes > 0 {
					time.AfterFunc(c.comes, func() { change("new") })
				}
				begin := time.Now()
				err := b.Put(t.Context(), "a", nil)
				if took := time.Since(begin); (err == nil) != c.ok || took < c.at || took > c.most {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

// What a policy forbids, no other credentials may do.
func TestPatienceIsForWhatWasAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _, _ := behindDoor(t, true)
		if err := b.Put(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := b.Delete(t.Context(), "a"); !errors.Is(err, ErrDenied) || time.Since(begin) > 0 {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

// worm is a store that lets objects be written, and neither replaced nor removed while they are young. It denies to
// replace one before it looks at the condition.
type worm struct {
	store
	objects map[string]string
	old     map[string]bool
}

func (w worm) put(_ context.Context, name string, content []byte, _ bool) error {
	if _, ok := w.objects[name]; ok {
		return fmt.Errorf("%w: no object is replaced", ErrDenied)
	}
	w.objects[name] = string(content)
	return nil
}

func (w worm) get(_ context.Context, name string) (io.ReadCloser, error) {
	text, ok := w.objects[name]
	if !ok {
		return nil, ErrNotExist
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (w worm) remove(_ context.Context, names []string) error {
	for _, name := range names {
		if !w.old[name] {
			return fmt.Errorf("%w: %s is too young", ErrDenied, name)
		}
	}
	return nil
}

// Where nothing may be replaced, what is there is there, and where nothing may be removed, nobody waits for that.
func TestAStoreThatKeepsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worm{objects: map[string]string{}, old: map[string]bool{"old": true}}
		s, err := openRenewed(Config{Patient: true}, func() (store, error) { return w, nil })
		if err != nil {
			t.Fatal(err)
		}
		b, begin := remote{s}, time.Now()
		for _, name := range []string{"old", "young"} {
			if err := b.Create(t.Context(), name, []byte("first")); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Create(t.Context(), "young", []byte("second")); !errors.Is(err, ErrExists) {
			t.Errorf("to create what is there: %v", err)
		}
		if err := b.Delete(t.Context(), "old"); err != nil {
			t.Error(err)
		}
		if err := b.Delete(t.Context(), "young"); !errors.Is(err, ErrDenied) {
			t.Errorf("to remove what is too young: %v", err)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("it has waited for %s", took)
		}
	})
}

// Who is to remove nothing does not ask the store to: here is none.
func TestAKeeperAsksForNoDeletion(t *testing.T) {
	secret := t.TempDir()
	for _, name := range []string{fileAccessKey, fileSecretKey} {
		if err := os.WriteFile(filepath.Join(secret, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Open(t.Context(), Config{
		S3: &S3{Endpoint: "http://127.0.0.1:1", Bucket: "archives"}, Prefix: "of", Credentials: secret, KeepAll: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), "old"); !errors.Is(err, ErrDenied) {
		t.Errorf("it was asked for: %v", err)
	}
	if err := b.Delete(t.Context()); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}
