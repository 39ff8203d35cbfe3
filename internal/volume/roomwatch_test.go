package volume

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testMiB = int64(1) << 20

// watchedRoom is a volume of 1 GiB of which the reserve is part.
type watchedRoom struct {
	*RoomWatch
	used  int64 // besides the reserve
	fails error
	told  []Shortage
	kept  int64 // WAL
	clock time.Time
	log   bytes.Buffer
}

func watchRoom(t *testing.T) *watchedRoom {
	t.Helper()
	folder := t.TempDir()
	if err := os.MkdirAll(StateFolder(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	w := &watchedRoom{clock: time.Unix(1e9, 0)}
	allocate := func(path string, bytes int64) error {
		if w.fails != nil {
			return w.fails
		}
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, bytes))
	}
	tell := func(s Shortage) { w.told = append(w.told, s) }
	w.RoomWatch = NewRoomWatch(folder, allocate, tell, slog.New(slog.NewTextHandler(&w.log, nil)))
	w.now = func() time.Time { return w.clock }
	w.measure = func() (size, used int64, err error) { return 1 << 30, w.used + w.held(), nil }
	w.wal = func() (int64, error) { return w.kept, nil }
	return w
}

// held is how much the reserve has.
func (w *watchedRoom) held() int64 {
	info, err := os.Stat(w.reserve)
	if err != nil {
		return 0
	}
	return info.Size()
}

// after looks some seconds later, when so many MiB are free besides the reserve.
func (w *watchedRoom) after(seconds, free int64) time.Duration {
	w.clock = w.clock.Add(time.Duration(seconds) * time.Second)
	w.used = 1<<30 - free*testMiB
	return w.look()
}

func TestAVolumeThatGetsShortIsTold(t *testing.T) {
	w := watchRoom(t)
	for _, c := range []struct {
		what                string
		seconds, free, kept int64 // free is without the reserve, kept what WAL has, both in MiB
		next                time.Duration
		told                int
		spare, ends         bool
	}{
		{"there is room", 0, 900 + 64, 0, roomInterval, 0, false, false},
		{"less than a quarter is free", 60, 220, 0, roomSoon, 0, false, false},
		{"less than a fifth is free", 60, 200, 0, roomSoon, 1, false, false},
		{"too little is free", 60, 111, 0, roomSoon, 2, true, false},
		{"more is free", 60, 190, 0, roomSoon, 2, true, false},
		{"enough is free", 60, 209, 0, roomSoon, 3, false, false},
		{"WAL has taken some of it", 1, 209 - 64, 64, roomSoon, 3, false, false},
		{"with the WAL enough is free", 60, 70, 64, roomSoon, 3, false, false},
		{"it fills by 10 MiB a second", 1, 60, 64, roomSoon, 3, false, false},
		{"in a second it would be short", 1, 50, 64, roomSoon, 4, true, false},
		{"hardly anything is free", 60, 31, 64, roomSoon, 5, true, true},
		{"a bit more is free", 60, 33, 64, roomSoon, 6, true, false},
	} {
		w.kept = c.kept * testMiB
		next := w.after(c.seconds, c.free+w.held()/testMiB)
		if next != c.next || len(w.told) != c.told {
			t.Errorf("%s: it looks after %s, and has told %v", c.what, next, w.told)
		}
		if c.told > 0 && (w.told[c.told-1].Spare != c.spare || w.told[c.told-1].EndReads != c.ends ||
			!w.told[c.told-1].Short) {
			t.Errorf("%s: it has told %+v", c.what, w.told[c.told-1])
		}
	}
}

func TestTheReserveIsGivenBack(t *testing.T) {
	w := watchRoom(t)
	w.after(0, 900)
	w.after(1, 64+15)
	if w.held() != 0 || !strings.Contains(w.log.String(), "the reserve was given back") {
		t.Errorf("with 15 MiB free it holds %d MiB:\n%s", w.held()/testMiB, w.log.String())
	}
	w.after(60, 271)
	if w.held() != 0 {
		t.Errorf("with 271 MiB free it holds %d MiB", w.held()/testMiB)
	}
	w.after(60, 273)
	if w.held() != 64*testMiB {
		t.Errorf("with 273 MiB free it holds %d MiB", w.held()/testMiB)
	}
}

// What fails is told once, tried again, and keeps nobody from being told of the room.
func TestAReserveThatCannotBeKept(t *testing.T) {
	w := watchRoom(t)
	w.fails = errors.New("no such room")
	for range 3 {
		w.after(60, 900)
	}
	if n := strings.Count(w.log.String(), "keep 64 MiB in reserve: no such room"); n != 1 {
		t.Errorf("it was told %d times:\n%s", n, w.log.String())
	}
	w.fails = nil
	if w.after(60, 900); w.held() != 64*testMiB {
		t.Errorf("it holds %d MiB", w.held()/testMiB)
	}
	measure := w.measure
	w.measure = func() (int64, int64, error) { return 0, 0, errors.New("no answer") }
	if next := w.after(60, 10); next != roomInterval || len(w.told) > 0 {
		t.Errorf("of a volume that does not answer it has told %v", w.told)
	}
	w.measure = measure
	if w.after(60, 10); len(w.told) != 1 {
		t.Errorf("when it answers again it has told %v", w.told)
	}
}

func TestAllocate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reserve")
	if err := Allocate(path, 3<<20); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 3<<20 {
		t.Errorf("it made %+v, %v", info, err)
	}
	if err := Allocate(path, 1<<60); err == nil {
		t.Error("a file larger than the disk was allocated")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("what could not be allocated is still there")
	}
}
