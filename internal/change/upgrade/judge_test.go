package upgrade

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{"17.12": {17, 12}, "15.0": {15, 0}, "10.23": {10, 23}} {
		if got, err := ParseVersion(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "17", "18beta1", "9.6", "17.x", "17.-1", "17.1.2"} {
		if got, err := ParseVersion(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
	if (Version{17, 9}).Compare(Version{17, 11}) >= 0 || (Version{18, 0}).Compare(Version{17, 11}) <= 0 {
		t.Error("versions are compared as texts")
	}
}

func TestMajorsAreInOrder(t *testing.T) {
	for i := range len(Majors) - 1 {
		a, b := Majors[i], Majors[i+1]
		if a.Number+1 != b.Number || !a.EndOfLife.Before(b.EndOfLife) && !b.EndOfLife.IsZero() {
			t.Errorf("%d comes before %d", a.Number, b.Number)
		}
	}
}

func TestMajorOf(t *testing.T) {
	for text, want := range map[string]int{
		"17.12": 17, "19rc1": 19, "19beta2": 19, "19.0": 19, "18": 18, "": 0, "rc1": 0, "9.6": 0,
	} {
		if got := MajorOf(text); got != want {
			t.Errorf("the major version of %q is %d", text, got)
		}
	}
}

// docs/upgrade.md has the same days.
func TestThePageHasTheMajors(t *testing.T) {
	page, err := os.ReadFile("../../../docs/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Majors {
		if m.EndOfLife.IsZero() {
			continue
		}
		if row := fmt.Sprintf("| %d | %s |", m.Number, date(m.EndOfLife)); !strings.Contains(string(page), row) {
			t.Errorf("the page has no row %q", row)
		}
	}
}

func TestJudge(t *testing.T) {
	now := day(2026, time.November, 23)
	const image = "docker.io/library/postgres@sha256:22"
	view := func(now time.Time, major int, instances []Instance, image Image) View {
		return View{Now: now, Major: major, Instances: instances, Image: image}
	}
	one := func(a string) []Instance { return []Instance{{Name: "x-0", Version: a}} }
	three := func(a, b, c string) []Instance {
		return []Instance{{Name: "x-0", Version: a}, {Name: "x-1", Version: b}, {Name: "x-2", Version: c}}
	}
	twoImages := []Instance{
		{Name: "x-0", Version: "17.12", Digest: "a"}, {Name: "x-1", Version: "17.12", Digest: "b"},
	}
	found := Image{Name: "postgres:17", Reference: image, Version: "17.12"}
	for name, c := range map[string]struct {
		v      View
		reason Reason
		says   string
	}{
		"all is as the image": {view(now, 17, three("17.12", "17.12", "17.12"), found), Current,
			"17.12 runs, and the image postgres:17 has nothing newer; the newest major is 18"},
		"one that is not known does not matter": {view(now, 17, three("17.12", "", "17.12"), found), Current, ""},
		"the newest major": {view(now, 18, one("18.1"),
			Image{Name: "postgres:18", Version: "18.1"}), Current, "has nothing newer"},
		"an old minor": {view(now, 17, three("17.11", "17.11", "17.11"), found), MinorOutdated,
			"Set spec.image to " + image + " (17.12)"},
		"9 is older than 11": {view(now, 17, one("17.9"),
			Image{Name: "postgres:17", Version: "17.11"}), MinorOutdated, "by its digest"},
		"the image is older than what runs": {view(now, 17, one("17.12"),
			Image{Name: "postgres:17", Version: "17.11"}), Current, ""},
		"a version that can't be read is not compared": {view(now, 17, one("17.12"),
			Image{Name: "postgres:17", Version: "18beta1"}), Current, ""},
		"two minors": {view(now, 17, three("17.11", "17.12", "17.11"), found), InstancesDiffer,
			"x-0 17.11, x-1 17.12, x-2 17.11. Set spec.image to " + image},
		"two images of one minor": {view(now, 17, twoImages, found),
			InstancesDiffer, "x-0 a, x-1 b"},
		"two images, while the spec names one by digest": {view(now, 17, three("17.11", "17.12", "17.11"),
			Image{Name: image, Fixed: true}), InstancesDiffer, "Wait until"},
		"nothing is known": {view(now, 17, three("", "", ""), found), Unknown, ""},
		"nobody has looked": {view(now, 17, three("17.11", "17.11", "17.11"), Image{Name: "postgres:17"}), NotLooked,
			"nobody has looked into the image postgres:17 yet"},
		"the look has failed": {view(now, 17, three("17.11", "17.11", "17.11"),
			Image{Name: "postgres:17", Problem: "no such host"}), ImageNotRead, "no such host"},
		"the look has failed, and what it found before is newer": {view(now, 17, three("17.11", "17.11", "17.11"),
			Image{Name: "postgres:17", Version: "17.12", Problem: "no such host"}), MinorOutdated, ""},
		"an image by digest": {view(now, 17, three("17.12", "17.12", "17.12"),
			Image{Name: image, Fixed: true, Version: "17.12"}), Current, "is not looked for"},
		"the end of life": {view(day(2027, time.November, 11), 15, one("15.14"), found), EndOfLife,
			"since 2027-11-11: raise spec.version, to 18"},
		"the day before it": {view(day(2027, time.November, 10), 15, one("15.14"), Image{}),
			EndOfLifeNear, "from 2027-11-11 on"},
		"half a year before it": {view(day(2027, time.May, 1), 15, one("15.14"),
			Image{Name: "postgres:15", Version: "15.14"}), Current, ""},
		"the end of life of the newest": {view(day(2031, time.January, 1), 18, nil, Image{}), EndOfLife,
			"install a newer release of Toban"},
		"a major that the table does not have": {view(day(2040, time.January, 1), 19,
			one("19.1"), Image{Name: "postgres:19", Version: "19.1"}), Current, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reason, sentence := Judge(c.v)
			if reason != c.reason || !strings.Contains(sentence, c.says) {
				t.Errorf("%s: %s", reason, sentence)
			}
		})
	}
}
