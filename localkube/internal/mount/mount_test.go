package mount

import (
	"os"
	"slices"
	"testing"
)

const sample = `21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
90 21 0:44 / /run/localkube/worker0/x rw - tmpfs tmpfs rw
91 90 0:45 / /run/localkube/worker0/x/a\040b rw - tmpfs tmpfs rw
92 21 0:46 / /run/localkube-other rw - tmpfs tmpfs rw
93 21 0:47 / /var/lib/localkube rw - tmpfs tmpfs rw
`

func TestBelowListsTheLatestFirstAndNoNeighbour(t *testing.T) {
	got := below(sample, []string{"/run/localkube", "/var/lib/localkube"})
	want := []string{"/var/lib/localkube", "/run/localkube/worker0/x/a b", "/run/localkube/worker0/x"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRemoveTreeRemovesAndIsContentWithNothing(t *testing.T) {
	dir := t.TempDir() + "/tree"
	if err := os.MkdirAll(dir+"/below", 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := RemoveTree(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
