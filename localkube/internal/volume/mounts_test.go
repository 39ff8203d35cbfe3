package volume

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMounts(t *testing.T) {
	got, err := parseMounts(strings.NewReader(
		`36 35 7:3 / /var/x/mnt rw,noatime shared:1 master:2 - ext4 /dev/loop3 rw
37 35 0:5 / /with\040space\134back rw - tmpfs none rw
not a line
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []mount{{"/dev/loop3", "/var/x/mnt"}, {"none", `/with space\back`}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
