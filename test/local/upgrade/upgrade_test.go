package upgrade_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"toban.dev/internal/agent/volume"
	"toban.dev/internal/protocol"
)

// All that is in a database comes along, from each version to each later one, and by each method.
func TestUpgrade(t *testing.T) {
	reflinks := os.Getenv(reflinksVariable)
	for _, c := range []struct {
		from, to     int
		method, want string
		folder       string
	}{
		{15, 17, "", protocol.MethodLink, ""},
		{17, 18, protocol.MethodCopy, protocol.MethodCopy, ""},
		{15, 18, protocol.MethodLink, protocol.MethodLink, ""},
		{15, 18, "", protocol.MethodClone, reflinks},
		{17, 18, protocol.MethodSwap, protocol.MethodSwap, ""},
	} {
		t.Run(fmt.Sprintf("%d to %d by %s", c.from, c.to, c.want), func(t *testing.T) {
			if c.want == protocol.MethodClone && c.folder == "" {
				t.Skip("there is no file system with reflinks")
			}
			i := newInstance(t, c.from, c.folder)
			stop := i.start(i.Programs, i.Data())
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
			note, err := volume.ReadPrepared(i.Volume)
			must(t, err)
			if note == nil || note.InPlace != id || note.Begins.Timeline != 1 || note.Begins.LSN.String() != r.LSN {
				t.Errorf("the note is %+v", note)
			}
			again, _ := i.process(c.to, c.method, "", false)
			if again.result(t).SystemIdentifier != r.SystemIdentifier {
				t.Errorf("called again, it has made it anew: %+v", again)
			}
			stop = i.start(programs(t, c.to), filepath.Join(volume.RestoreFolder(i.Volume), "data"))
			i.has(want)
			stop(syscall.SIGINT)
		})
	}
}
