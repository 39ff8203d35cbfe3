package postgres

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"toban.dev/internal/wal"
)

func TestAPromotionThatIsMadeAgainBeganWithTheFirst(t *testing.T) {
	d := DataDirectory{Volume: t.TempDir()}
	if err := os.MkdirAll(string(d.WAL()), 0o700); err != nil {
		t.Fatal(err)
	}
	history := []byte("1\t0/3000148\tx\n2\t0/5000000\tx\n3\t0/6000000\tx\n")
	if err := os.WriteFile(filepath.Join(string(d.WAL()), "00000004.history"), history, 0o600); err != nil {
		t.Fatal(err)
	}
	for earlier, want := range map[wal.Timeline]wal.LSN{1: 0x3000148, 2: 0x5000000, 3: 0x6000000, 7: 0x6000000} {
		if got, err := d.WAL().Branch(4, earlier); got != want || err != nil {
			t.Errorf("timeline %d was left at %d, %v; want %s", earlier, got, err, want)
		}
	}
	for from, want := range map[wal.LSN]wal.LSN{
		0x3000000: 0x3000148, 0x3000148: 0x3000148, 0x4000000: 0x5000000, 0x5000001: 0x6000000, 0x7000000: 0x6000000,
	} {
		if got, err := d.WAL().ForkFrom(4, from); got != want || err != nil {
			t.Errorf("the first fork from %s on is at %d, %v; want %s", from, got, err, want)
		}
	}
}

func TestForgetTimelinesKeepsTheOlderOnes(t *testing.T) {
	d := DataDirectory{Volume: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(string(d.WAL()), "archive_status"), 0o700); err != nil {
		t.Fatal(err)
	}
	kept := []string{
		"00000002.history", "00000003.history", "000000010000000000000001", "000000030000000000000009", "xlogtemp.12",
	}
	for _, name := range append(slices.Clone(kept), "00000004.history", "0000000A.history", "000000040000000000000009",
		"000000040000000000000009.partial") {
		if err := os.WriteFile(filepath.Join(string(d.WAL()), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.WAL().ForgetTimelines(3); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(string(d.WAL()))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		if !entry.IsDir() {
			left = append(left, entry.Name())
		}
	}
	slices.Sort(kept)
	if !slices.Equal(left, kept) {
		t.Errorf("left: %v, expected %v", left, kept)
	}
	if lsn, err := d.WAL().Fork(1); lsn != 0 || err != nil {
		t.Errorf("the first timeline begins at %d, %v", lsn, err)
	}
	if _, err := d.WAL().Fork(9); err == nil {
		t.Error("a timeline without history has a beginning")
	}
	if _, err := d.WAL().Fork(3); err == nil {
		t.Error("a timeline with an empty history has a beginning")
	}
}

func TestForgetSupersededKeepsTheNewestFileOfEachSegment(t *testing.T) {
	d := DataDirectory{Volume: t.TempDir()}
	if err := os.MkdirAll(string(d.WAL()), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(string(d.WAL()), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Timeline 3 begins in segment 5, 4 was abandoned elsewhere, 6 and 7 begin in segment 7.
	write("00000007.history", "1\t0/5000100\tx\n3\t0/7000100\tx\n6\t0/7000200\tx\n")
	kept := []string{"000000010000000000000004", "000000030000000000000005", "000000030000000000000006",
		"000000040000000000000006", "000000070000000000000007", "000000030000000000000008", "000000080000000000000007",
		"00000003.history", "000000030000000000000007.partial"}
	for _, name := range append(slices.Clone(kept), "000000010000000000000005", "000000030000000000000007",
		"000000060000000000000007", "000000040000000000000007") {
		write(name, "")
	}
	removed, err := d.WAL().ForgetSuperseded(7)
	if err != nil || removed != 4 {
		t.Fatalf("removed %d, %v", removed, err)
	}
	entries, err := os.ReadDir(string(d.WAL()))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	kept = append(kept, "00000007.history")
	slices.Sort(kept)
	if !slices.Equal(left, kept) {
		t.Errorf("left: %v\nexpected %v", left, kept)
	}
	if _, err := d.WAL().ForgetSuperseded(9); err == nil {
		t.Error("without the history of the timeline nobody knows what is superseded")
	}
}
