package volume

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file has MiBs beyond its end, as XFS gives them to files that grow, one has holes, and one is just long. Only the
// first counts, wherever it is.
func TestWhatFilesHaveAhead(t *testing.T) {
	const mib = 1 << 20
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(name string, length, allocated int64) {
		t.Helper()
		f, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(length); err != nil {
			t.Fatal(err)
		}
		if allocated > 0 {
			if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, allocated); err != nil {
				t.Fatal(err)
			}
		}
	}
	file("base/grows", mib+1, 3*mib)
	file("base/holes", 8*mib, 0)
	file("long", 2*mib, 2*mib)
	ahead, err := beyondEnds(folder)
	if err != nil || ahead != 2*mib-4096 {
		t.Errorf("files have %d ahead (%v), want %d", ahead, err, 2*mib-4096)
	}
}

// metered is a meter of a file system of 448 MiB, whose files a test gives room. Sizes are in MiB.
type metered struct {
	*meter
	file  fileSystem
	ahead int64
	looks int
	takes time.Duration // how long a look at all files takes
	at    time.Time
}

func newMetered(used, ahead int64) *metered {
	m := &metered{file: fileSystem{size: 448 << 20, xfs: true}, at: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)}
	m.give(used, ahead)
	m.meter = &meter{
		fileSystem: func() (fileSystem, error) { return m.file, nil },
		beyondEnds: func() (int64, error) { m.looks++; m.at = m.at.Add(m.takes); return m.ahead, nil },
		now:        func() time.Time { return m.at },
	}
	return m
}

// give has so much used, all that files have ahead included.
func (m *metered) give(used, ahead int64) { m.file.used, m.ahead = used<<20, ahead<<20 }

func (m *metered) expect(t *testing.T, what string, used int64, looks int) {
	t.Helper()
	_, got, err := m.used()
	if err != nil || got != used<<20 || m.looks != looks {
		t.Errorf("%s: %d MiB are used (%v), after %d looks; want %d, after %d",
			what, got>>20, err, m.looks, used, looks)
	}
}

func TestWhatXFSGivesInAdvanceIsFree(t *testing.T) {
	m := newMetered(190, 64)
	m.expect(t, "there is room", 190, 0)
	m.give(413, 128)
	m.expect(t, "a file was given as much again", 285, 1)
	m.at = m.at.Add(meterPause / 2)
	m.give(415, 100)
	m.expect(t, "a little was written", 287, 1)
	m.give(440, 150)
	m.at = m.at.Add(time.Millisecond)
	m.expect(t, "another file was given much", 290, 2)
	m.give(440, 90)
	m.at = m.at.Add(2 * meterPause)
	m.expect(t, "what was given is written", 350, 3)
	m.give(400, 50)
	m.at = m.at.Add(time.Millisecond)
	m.expect(t, "much was given back", 350, 4)
	m.file.xfs = false
	m.expect(t, "another file system", 400, 4)
}

// Where there are many files, looking at them takes a tenth of the time at most.
func TestFilesAreNotLookedAtAllTheTime(t *testing.T) {
	m := newMetered(413, 100)
	m.takes = time.Second
	for used := int64(300); used < 440; used++ {
		m.give(used, 100)
		if used%2 == 0 {
			m.give(used-20, 100)
		}
		if _, _, err := m.used(); err != nil {
			t.Fatal(err)
		}
		m.at = m.at.Add(time.Second)
	}
	if m.looks < 10 || m.looks > 15 {
		t.Errorf("in 140 s it has looked %d times for a second each", m.looks)
	}
}

// A file that is given much while files are looked at may have been seen or not: they are looked at again.
func TestFilesAreLookedAtAgainWhereMuchWasGivenMeanwhile(t *testing.T) {
	m := newMetered(413, 0)
	m.beyondEnds = func() (int64, error) {
		m.looks++
		if m.looks == 1 {
			m.give(441, 28) // after it was looked at
			return 0, nil
		}
		return m.ahead, nil
	}
	m.expect(t, "a file was given 28 MiB", 413, 2)
}
