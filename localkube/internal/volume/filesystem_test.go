package volume

import (
	"slices"
	"testing"
)

func TestPreferredFileSystemCanGrowWhereverOneCan(t *testing.T) {
	cases := map[string]struct {
		privileged, kernelHasXFS bool
		want                     filesystem
		grows                    bool
	}{
		"root may do all": {true, true, ext4, true},
		"root may do all, and the kernel has no xfs": {true, false, ext4, true},
		"root lacks the capability":                  {false, true, xfs, true},
		"root lacks it, and the kernel has no xfs":   {false, false, ext4, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if fs, grows := preferred(c.privileged, c.kernelHasXFS); fs.name != c.want.name || grows != c.grows {
				t.Errorf("it is %s, and grows: %v", fs.name, grows)
			}
		})
	}
}

func TestNeedsAreThePackagesOfWhatIsPreferredHere(t *testing.T) {
	fs, _ := here()
	for _, want := range []filesystem{fs, ext4} {
		if !slices.Contains(Needs(), want.need()) {
			t.Errorf("volumes here are %s, and its programs are not among %v", want.name, Needs())
		}
	}
}
