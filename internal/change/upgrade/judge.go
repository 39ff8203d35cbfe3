package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Instance is what an instance runs. What is not known is "".
type Instance struct {
	Name string
	// Version is that of its server, for instance "17.11"; Digest that of its image.
	Version, Digest string
	// Image is its image by that digest, where it is of the repository that the spec names.
	Image string
	// Former says that it was made from an image that the spec does not name any more.
	Former bool
}

// View is all that the judgement is made of.
type View struct {
	Now   time.Time
	Major int
	// Instances are all of them, by ordinal.
	Instances []Instance
	// Image is the image that the spec names.
	Image Image
	// Next says what becomes of what is newer, "" where that is the user's to do.
	Next string
}

// Image is what was found in an image.
type Image struct {
	// Name is how the instances' Pods name it; Fixed says that this is by digest, so that it never changes.
	Name  string
	Fixed bool
	// Reference is the image by its digest, "" where the kubelet has said none; Digest is that alone.
	Reference, Digest string
	// Version is that of PostgreSQL in it, "" before it was looked into.
	Version string
	// Problem is why the last look into it has failed, "" where it has not.
	Problem string
}

// Reason is why what runs is up to date or not (docs/upgrade.md).
type Reason string

// The reasons, in the order in which they are looked for.
const (
	EndOfLife       Reason = "EndOfLife"       // the major gets no fixes any more
	InstancesDiffer Reason = "InstancesDiffer" // the instances do not run the same
	MinorOutdated   Reason = "MinorOutdated"   // the image has a newer minor than what runs
	EndOfLifeNear   Reason = "EndOfLifeNear"   // the major will soon get no fixes any more
	Unknown         Reason = "Unknown"         // what runs is not known
	NotLooked       Reason = "NotLooked"       // nobody has looked into the image yet
	ImageNotRead    Reason = "ImageNotRead"    // the image could not be looked into
	Current         Reason = "UpToDate"        // what runs is what the image has
)

// Known says that a reason is about something that was found out: the others leave open whether something is old.
func (r Reason) Known() bool { return r != Unknown && r != NotLooked && r != ImageNotRead }

// Judge says whether what runs is up to date: the first reason that applies, and a sentence that says what to do.
func Judge(v View) (Reason, string) {
	end, listed := endOfLife(v.Major)
	if listed && !v.Now.Before(end) {
		return EndOfLife, fmt.Sprintf("PostgreSQL %d gets no fixes any more since %s: %s",
			v.Major, date(end), move(v.Major))
	}
	running, sentence := runs(v.Instances)
	if sentence != "" {
		return InstancesDiffer, sentence + ". " + v.remedy()
	}
	if running == "" {
		return Unknown, "it is not known which version the instances run"
	}
	if older(running, v.Image.Version) {
		return MinorOutdated, fmt.Sprintf("%s runs, and the image %s has %s by now. %s",
			running, v.Image.Name, v.Image.Version, v.remedy())
	}
	if listed && v.Now.Add(EndOfLifeWarning).After(end) {
		return EndOfLifeNear, fmt.Sprintf("PostgreSQL %d gets no fixes any more from %s on: %s",
			v.Major, date(end), move(v.Major))
	}
	return judgeImage(v, running)
}

// judgeImage is about what was found in the image, where nothing that runs is known to be old.
func judgeImage(v View, running string) (Reason, string) {
	newest := ""
	if v.Major < Newest() {
		newest = fmt.Sprintf("; the newest major is %d", Newest())
	}
	switch {
	case v.Image.Problem != "":
		return ImageNotRead, fmt.Sprintf("%s runs; what the image %s has now is not known: %s",
			running, v.Image.Name, v.Image.Problem)
	case v.Image.Version == "":
		return NotLooked, fmt.Sprintf("%s runs; nobody has looked into the image %s yet", running, v.Image.Name)
	case v.Image.Fixed:
		return Current, fmt.Sprintf("%s runs, as in the image that spec.image names by its digest; whether there is a "+
			"newer one is not looked for%s", running, newest)
	}
	return Current, fmt.Sprintf("%s runs, and the image %s has nothing newer%s", running, v.Image.Name, newest)
}

// runs is the version that all instances run whose version is known, "" where none is; or a sentence that says how they
// differ, in version or in the image.
func runs(instances []Instance) (version, sentence string) {
	var versions, digests []string
	for _, i := range instances {
		if i.Version != "" && !slices.Contains(versions, i.Version) {
			versions = append(versions, i.Version)
		}
		if i.Digest != "" && !slices.Contains(digests, i.Digest) {
			digests = append(digests, i.Digest)
		}
	}
	switch {
	case len(versions) > 1:
		return "", "the instances run different versions: " +
			list(instances, func(i Instance) string { return i.Version })
	case len(digests) > 1:
		return "", "the instances run different images: " +
			list(instances, func(i Instance) string { return i.Digest })
	case len(versions) == 0:
		return "", ""
	}
	return versions[0], ""
}

func list(instances []Instance, of func(Instance) string) string {
	var out []string
	for _, i := range instances {
		if what := of(i); what != "" {
			out = append(out, i.Name+" "+what)
		}
	}
	return strings.Join(out, ", ")
}

// older says that a version is older than another. Where one can't be read, it is not known, and so not said.
func older(running, image string) bool {
	a, errA := ParseVersion(running)
	b, errB := ParseVersion(image)
	return errA == nil && errB == nil && a.Major == b.Major && a.Compare(b) < 0
}

// remedy is what brings all instances to one image.
func (v View) remedy() string {
	i := v.Image
	switch {
	case v.Next != "":
		return v.Next
	case i.Fixed:
		return "Wait until all instances have the image of spec.image"
	case i.Reference == "":
		return "Set spec.image to an image of that version by its digest: the instances are replaced one by one"
	}
	return fmt.Sprintf("Set spec.image to %s (%s): the instances are replaced one by one", i.Reference, i.Version)
}

// move is how to leave a major version.
func move(major int) string {
	if major >= Newest() {
		return "install a newer release of Toban, which knows newer ones"
	}
	return fmt.Sprintf("raise spec.version, to %d for instance", Newest())
}

func date(t time.Time) string { return t.Format(time.DateOnly) }
