package upgrade

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is one of PostgreSQL's: since 10 a major and a minor number (PostgreSQL's versioning policy).
type Version struct{ Major, Minor int }

// ParseVersion reads a version as PostgreSQL's programs print it, for instance "17.12". What is no release of the form
// MAJOR.MINOR, such as "18beta1", is an error.
func ParseVersion(text string) (Version, error) {
	major, minor, found := strings.Cut(text, ".")
	a, errMajor := strconv.Atoi(major)
	b, errMinor := strconv.Atoi(minor)
	if !found || errMajor != nil || errMinor != nil || a < 10 || b < 0 {
		return Version{}, fmt.Errorf("%q is not a released version of PostgreSQL, such as 17.12", text)
	}
	return Version{a, b}, nil
}

// MajorOf is the major version that a version belongs to, as PostgreSQL's programs print it: also of what is no release
// yet, such as "19rc1". It is 0 where that can't be read.
func MajorOf(text string) int {
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	major, err := strconv.Atoi(digits)
	if err != nil || major < 10 {
		return 0
	}
	return major
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Compare is negative where v is the older one, positive where it is the newer one.
func (v Version) Compare(other Version) int {
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor))
}
