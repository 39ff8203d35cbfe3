package upgrade_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/work/major"
	"toban.dev/test/releases"
)

// All that is in a database comes along, from each version to each later one, and by each method.
func TestUpgrade(t *testing.T) {
	reflinks := os.Getenv(reflinksVariable)
	type move struct {
		from, to     int
		method, want string
		folder       string
		apart        bool // the WAL has a volume of its own
	}
	moves := []move{
		{15, 17, "", protocol.MethodLink, "", true},
		{15, 17, protocol.MethodCopy, protocol.MethodCopy, "", false},
		{15, 18, protocol.MethodLink, protocol.MethodLink, "", false},
		{15, 18, "", protocol.MethodClone, reflinks, true},
		{17, 18, protocol.MethodLink, protocol.MethodLink, "", false},
		{15, 18, protocol.MethodSwap, protocol.MethodSwap, "", true},
	}
	if next := releases.Wanted(); next > 18 {
		moves = append(moves, move{15, next, protocol.MethodLink, protocol.MethodLink, "", true},
			move{18, next, protocol.MethodSwap, protocol.MethodSwap, "", false})
	}
	for _, c := range moves {
		t.Run(fmt.Sprintf("%d to %d by %s", c.from, c.to, c.want), func(t *testing.T) {
			if c.want == protocol.MethodClone && c.folder == "" {
				t.Skip("there is no file system with reflinks")
			}
			i := newInstance(t, c.from, c.folder)
			i.takeApart(c.apart)
			stop := i.start(i.Programs, i.Data.Path())
			i.fill()
			want := i.facts()
			stop(syscall.SIGINT)
			o, _ := i.process(c.to, c.method, "", false)
			if o.Error != "<nil>" {
				t.Fatal(o.Error)
			}
			r := o.result(t)
			t.Logf("%+v", r)
			if r.Method != c.want || r.Recovered || r.Statistics != (c.to >= 18) || r.SystemIdentifier == "" {
				t.Errorf("the result is %+v", r)
			}
			note, err := volume.ReadPrepared(i.Data.Volume)
			must(t, err)
			if note == nil || note.InPlace != id || note.Begins.Timeline != 1 || note.Begins.LSN.String() != r.LSN {
				t.Errorf("the note is %+v", note)
			}
			again, _ := i.process(c.to, c.method, "", false)
			if again.result(t).SystemIdentifier != r.SystemIdentifier {
				t.Errorf("called again, it has made it anew: %+v", again)
			}
			data := filepath.Join(volume.RestoreFolder(i.Data.Volume), "data")
			i.hasWAL(i.Data.Path(), c.apart) // the old data has its own as long as it is there
			i.hasWAL(data, c.apart)
			stop = i.start(programs(t, c.to), data)
			i.has(want)
			stop(syscall.SIGINT)
		})
	}
}

// takeApart moves the WAL onto a volume of its own, where that is wanted.
func (i *instance) takeApart(wanted bool) {
	i.Helper()
	if wanted {
		i.Data.WALVolume = i.TempDir()
	}
	must(i, i.Data.MoveWAL(i.Data.Path()))
}

// hasWAL checks that the WAL of a data directory is on a volume of its own, or is not.
func (i *instance) hasWAL(data string, apart bool) {
	i.Helper()
	folder, err := postgres.WALFolder(data)
	if err != nil || apart != (folder != "" && filepath.Dir(folder) == i.Data.WALVolume) {
		i.Errorf("the WAL of %s is in %q, %v", data, folder, err)
	}
}

// What pg_upgrade finds out only while it works ends the upgrade with its words, and the old data is whole.
func TestAnUpgradeThatFailsInTheMiddleGoesBack(t *testing.T) {
	i := newInstance(t, 15, "")
	stop := i.start(i.Programs, i.Data.Path())
	i.fill()
	// An option of a column that the new version does not know, and that is not PostgreSQL's own as pg_attver of 17.12.
	i.do("shop", `set allow_system_table_mods = on;
update pg_attribute set attoptions = '{pg_other=1}' where attrelid = 'orders'::regclass and attname = 'item'`)
	want := i.facts()
	stop(syscall.SIGINT)
	o, _ := i.process(17, protocol.MethodLink, "", false)
	t.Log(o.Error)
	const why = `unrecognized parameter "pg_other"`
	if !o.Refused || !strings.Contains(o.Error, why) || strings.Contains(o.Error, i.Data.Volume) {
		t.Errorf("it says %q", o.Error)
	}
	i.back(17, want)
}

// back gives the old data back, and looks whether it is as it was.
func (i *instance) back(to int, want map[string]string) {
	i.Helper()
	for range 2 {
		if o, _ := i.process(to, "", "", true); o.Error != "<nil>" {
			i.Fatal(o.Error)
		}
	}
	i.serves(want)
}

// serves looks whether nothing but the old data is on the volume, as it was.
func (i *instance) serves(want map[string]string) {
	i.Helper()
	entries, err := os.ReadDir(i.Data.Volume)
	must(i, err)
	for _, entry := range entries {
		if !slices.Contains([]string{"data", "tablespaces", "locks"}, entry.Name()) {
			i.Errorf("%s is left on the volume", entry.Name())
		}
	}
	made, err := filepath.Glob(filepath.Join(i.Data.Volume, "tablespaces/*/*"))
	must(i, err)
	if len(made) != 1 {
		i.Errorf("the tablespace has %v", made)
	}
	stop := i.start(i.Programs, i.Data.Path())
	i.has(want)
	stop(syscall.SIGINT)
}

// The options that 17.12 has of its own with each column are in the old data as before when an upgrade is given up: it
// needs them to read values of composite types, and to change their tables.
func TestTheWayBackTo17(t *testing.T) {
	i := newInstance(t, 17, "")
	stop := i.start(i.Programs, i.Data.Path())
	i.fill()
	want := i.facts()
	const options = `select string_agg(concat(attrelid, ' ', attnum, ' ', attoptions), '; ' order by attrelid, attnum)
		from pg_attribute where attoptions is not null`
	before := i.ask("shop", options)
	if has := strings.Contains(before, "pg_attver="); has != (minorOf(t, i.Programs) >= 12) {
		t.Fatalf("%s has these options of columns: %s", i.Programs.Version, before)
	}
	stop(syscall.SIGINT)
	if _, killed := i.process(18, protocol.MethodLink, "finished", false); !killed {
		t.Fatal("it was not killed")
	}
	i.back(18, want)
	stop = i.start(i.Programs, i.Data.Path())
	if after := i.ask("shop", options); after != before {
		t.Errorf("the options of columns are %s, and were %s", after, before)
	}
	i.do("shop", `alter type pair add attribute another int;
alter table pairs add column last text;
insert into pairs select row(n, 'new', n)::pair, n, 'x' from generate_series(101, 200) n`)
	if got := i.ask("shop", "select count(pair) || ' ' || max((pair).another) from pairs"); got != "200 200" {
		t.Errorf("there are %s", got)
	}
	stop(syscall.SIGINT)
}

// minorOf is the minor version of a server's programs.
func minorOf(t *testing.T, p postgres.Programs) (minor int) {
	t.Helper()
	if _, err := fmt.Sscanf(p.Version, fmt.Sprint(p.Major)+".%d", &minor); err != nil {
		t.Fatalf("the version %s: %v", p.Version, err)
	}
	return minor
}

// An agent that starts without having been told to take the new data over goes on with the old data, also where the new
// data is ready and shares its files.
func TestAnAgentGivesUpWhatItDoesNotTakeOver(t *testing.T) {
	i := newInstance(t, 15, "")
	stop := i.start(i.Programs, i.Data.Path())
	i.fill()
	want := i.facts()
	stop(syscall.SIGINT)
	if o, _ := i.process(17, protocol.MethodLink, "", false); o.Error != "<nil>" {
		t.Fatal(o.Error)
	}
	for range 2 {
		must(t, major.GiveUp(t.Context(), i.Data.Volume, func(whom string) { t.Errorf("it waits for %s", whom) }))
	}
	i.serves(want)
}

// An upgrade may be killed anywhere: the old data can be given back, and it can be run again.
func TestLongAnUpgradeThatIsKilled(t *testing.T) {
	const restores = "pg_upgrade: Restoring database schemas in the new cluster"
	linked := []string{
		"marked", "replayed", "check", restores, `pg_upgrade: Adding ".old" suffix to old "global/pg_control"`,
		"pg_upgrade: Linking user relation files", "finished", "noted",
	}
	for _, c := range []killing{
		{15, protocol.MethodLink, "", linked},
		{17, protocol.MethodLink, "", linked},
		{15, protocol.MethodCopy, "", []string{restores, "pg_upgrade: Copying user relation files", "finished"}},
		{17, protocol.MethodClone, os.Getenv(reflinksVariable),
			[]string{restores, "pg_upgrade: Cloning user relation files", "finished"}},
	} {
		t.Run(fmt.Sprintf("from %d by %s", c.from, c.method), c.everywhere)
	}
}

// killing is an upgrade to 18 that is killed at points.
type killing struct {
	from           int
	method, folder string
	points         []string
}

func (k killing) everywhere(t *testing.T) {
	if k.method == protocol.MethodClone && k.folder == "" {
		t.Skip("there is no file system with reflinks")
	}
	i := newInstance(t, k.from, k.folder)
	stop := i.start(i.Programs, i.Data.Path())
	i.fill()
	want := i.facts()
	delete(want, "sequence") // which skips some after a crash
	stop(syscall.SIGQUIT)    // so that the old server has to replay its WAL
	saved := t.TempDir()
	copyAll(t, i.Data.Volume, saved)
	passed := k.whole(i)
	for _, point := range k.points {
		t.Run(point, func(t *testing.T) {
			if !slices.Contains(passed, point) {
				t.Fatalf("it does not pass %s", point)
			}
			i := &instance{t, i.Server}
			for _, again := range []bool{false, true} {
				must(t, os.RemoveAll(i.Data.Volume))
				must(t, os.Mkdir(i.Data.Volume, 0o700))
				copyAll(t, saved, i.Data.Volume)
				if o, killed := i.process(18, k.method, point, false); !killed {
					t.Fatalf("it was not killed: %+v", o)
				}
				if !again {
					i.back(18, want)
					continue
				}
				k.whole(i)
				stop := i.start(programs(t, 18), filepath.Join(volume.RestoreFolder(i.Data.Volume), "data"))
				i.has(want)
				stop(syscall.SIGINT)
			}
		})
	}
}

// whole runs the upgrade to its end, and returns the points that it passes.
func (k killing) whole(i *instance) (points []string) {
	i.Helper()
	o, _ := i.process(18, k.method, "", false)
	if o.Error != "<nil>" {
		i.Fatalf("%+v", o)
	}
	if r := o.result(i.T); !r.Recovered || r.Method != k.method {
		i.Fatalf("the result is %+v", r)
	}
	return o.Points
}

func copyAll(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A volume that gets full ends an upgrade with that, and the old data is whole.
func TestAFullVolume(t *testing.T) {
	folder := os.Getenv(smallVariable)
	if folder == "" {
		t.Skip("there is no small file system")
	}
	i := newInstance(t, 15, folder)
	stop := i.start(i.Programs, i.Data.Path())
	i.fill()
	want := i.facts()
	stop(syscall.SIGINT)
	free, err := i.Data.FreeSpace()
	must(t, err)
	filler, err := os.Create(filepath.Join(folder, "filler"))
	must(t, err)
	must(t, syscall.Fallocate(int(filler.Fd()), 0, 0, int64(free)-(24<<20)))
	o, _ := i.process(18, protocol.MethodCopy, "", false)
	t.Log(o.Error)
	if !o.Refused || !strings.Contains(o.Error, "No space left on device") {
		t.Errorf("it says %q", o.Error)
	}
	must(t, filler.Close())
	must(t, os.Remove(filler.Name()))
	i.back(18, want)
}
