package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// world is a cache of images and Debian's archives, of which tests say what they have.
type world struct {
	*testing.T
	Builder
	has           map[string]string
	broken        error
	asked, builds int
}

func newWorld(t *testing.T) *world {
	return &world{
		T: t, Builder: Builder{CacheDir: t.TempDir()}, has: map[string]string{"postgresql-17": "17.11-0+deb13u1"},
	}
}

// image has an image made as a command does, and returns its tar.
func (w *world) image() (string, error) {
	d := debian{Short: "postgres:17", Packages: []string{"postgresql-17"}}
	ask := func(context.Context, debian) (map[string]string, error) {
		w.asked++
		return maps.Clone(w.has), w.broken
	}
	return w.newest(w.Context(), d, ask, func(_, out string) error {
		w.builds++
		return os.WriteFile(out, nil, 0o600)
	})
}

// dayLater makes all that was asked a day older.
func (w *world) dayLater() {
	w.Helper()
	notes, err := filepath.Glob(filepath.Join(w.CacheDir, "offer-*.json"))
	if err != nil || len(notes) != 1 {
		w.Fatalf("the notes are %v, %v", notes, err)
	}
	o := readOffer(notes[0])
	o.Asked = o.Asked.Add(-askAgain)
	if err := writeOffer(notes[0], o); err != nil {
		w.Fatal(err)
	}
}

func TestAnImageIsMadeAnewWhenDebianHasANewerMinor(t *testing.T) {
	type want struct {
		asked, builds int
		fails         bool
	}
	newer := func(w *world) { w.has["postgresql-17"] = "17.12-0+deb13u1" }
	unreachable := func(w *world) { w.has, w.broken = nil, errors.New("no route to host") }
	cases := map[string]struct {
		happens []func(*world)
		want    want // after the first image, which was asked and built once
	}{
		"nothing":                        {nil, want{1, 1, false}},
		"a newer minor, on the same day": {[]func(*world){newer}, want{1, 1, false}},
		"a day":                          {[]func(*world){(*world).dayLater}, want{2, 1, false}},
		"a newer minor, and a day":       {[]func(*world){newer, (*world).dayLater}, want{2, 2, false}},
		"the archives can't be reached, on the same day": {[]func(*world){unreachable}, want{1, 1, false}},
		"the archives can't be reached a day later": {
			[]func(*world){unreachable, (*world).dayLater}, want{2, 1, false},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first, err := w.image()
			if err != nil {
				t.Fatal(err)
			}
			for _, happens := range c.happens {
				happens(w)
			}
			// Twice: the second time nothing is to be asked or made.
			for range 2 {
				path, err := w.image()
				if got := (want{w.asked, w.builds, err != nil}); got != c.want {
					t.Errorf("asked, built, failed: %v, want %v (%v)", got, c.want, err)
				}
				if anew := path != first; anew != (c.want.builds > 1) || !exists(path) {
					t.Errorf("another image: %v, and it is there: %v", anew, exists(path))
				}
			}
		})
	}
}

func TestTheFirstImageNeedsTheArchives(t *testing.T) {
	w := newWorld(t)
	w.broken = errors.New("no route to host")
	if _, err := w.image(); err == nil || !strings.Contains(err.Error(), "no route to host") || w.builds > 0 {
		t.Errorf("built %d, error %v", w.builds, err)
	}
}

func TestFormerMinorsAreRemovedButForTheLast(t *testing.T) {
	w := newWorld(t)
	var tars []string
	for i, minor := range []string{"17.10", "17.11", "17.12"} {
		w.has["postgresql-17"] = minor
		path, err := w.image()
		if err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(time.Duration(i-3) * time.Hour)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		tars = append(tars, path)
		w.dayLater()
	}
	if exists(tars[0]) || !exists(tars[1]) || !exists(tars[2]) {
		t.Errorf("there are %v, %v, %v", exists(tars[0]), exists(tars[1]), exists(tars[2]))
	}
}

func TestVersionsAreThoseThatAptPlans(t *testing.T) {
	const output = `Inst libc6 (2.41-12+deb13u4 Debian:13.7/stable [amd64]) []
Inst locales [2.41-12] (2.41-12+deb13u4 Debian:13.7/stable [all])
Inst postgresql-client-17 (17.12-0+deb13u1 Debian-Security:13/stable-security [amd64])
Inst postgresql-17 (17.12-0+deb13u1 Debian-Security:13/stable-security [amd64])
Conf postgresql-17 (17.99 Debian:13.7/stable [amd64])
I: success in 7.5893 seconds
`
	got, err := planned(output, []string{"postgresql-17", "locales"})
	if want := map[string]string{"postgresql-17": "17.12-0+deb13u1", "locales": "2.41-12+deb13u4"}; err != nil ||
		!maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := planned(output, []string{"postgresql-18"}); err == nil {
		t.Errorf("a package that is not planned has %v", got)
	}
}

func TestArchivesAreThoseOfTheMachinesApt(t *testing.T) {
	cases := map[string]struct{ targets, mirror, security string }{
		"Debian's own": {
			"Debian http://deb.debian.org/debian/\nDebian " +
				"http://deb.debian.org/debian/\nDebian-Security http://deb.debian.org/debian-security/\n",
			"http://deb.debian.org/debian/", "http://deb.debian.org/debian-security/",
		},
		"a mirror, with security": {
			"Debian-Security http://mirror.example.com/security/\nDebian http://mirror.example.com/debian/\n",
			"http://mirror.example.com/debian/", "http://mirror.example.com/security/",
		},
		"a mirror, without security": {
			"Debian http://mirror.example.com/debian/\n", "http://mirror.example.com/debian/", "",
		},
		"Debian's, without security": {
			"Debian https://deb.debian.org/debian\n", "https://deb.debian.org/debian", defaultSecurity,
		},
		"another distribution": {"Ubuntu http://archive.ubuntu.com/ubuntu/\n", defaultMirror, defaultSecurity},
		"no apt":               {"", defaultMirror, defaultSecurity},
		"others' packages beside it": {
			"Node Source https://deb.nodesource.com/node_20.x/\nDebian http://deb.debian.org/debian/\n",
			"http://deb.debian.org/debian/", defaultSecurity,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if mirror, security := archives(c.targets); mirror != c.mirror || security != c.security {
				t.Errorf("they are %q and %q", mirror, security)
			}
		})
	}
}

// TestDebianOffers asks the archives, so it is asked for as TestDebianImages is.
func TestDebianOffers(t *testing.T) {
	if os.Getenv("LOCALKUBE_IMAGES") == "" {
		t.Skip("LOCALKUBE_IMAGES names no image")
	}
	for major, suite := range suites {
		d := debian{Suite: suite, Packages: []string{fmt.Sprintf("postgresql-%d", major), "locales"}}
		versions, err := Builder{Progress: t.Output()}.ask(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v", suite, versions)
	}
}
