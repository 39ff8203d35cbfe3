package volumes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/desiredtest"
)

// asks is spec.storage with a size and, where it is given, a class.
func asks(size string, class ...string) AskedStorage {
	s := AskedStorage{StorageSpec: v1.StorageSpec{Size: size}, UID: "1"}
	if len(class) > 0 {
		s.StorageClassName = &class[0]
	}
	return s
}

func TestAVolumeIsMadeAnewForAnEditOnly(t *testing.T) {
	smaller, class, both := []string{AnewSize}, []string{AnewClass}, []string{AnewSize, AnewClass}
	for name, c := range map[string]struct {
		note         string // "" for none
		has, class   string
		asked        AskedStorage
		force        string // the size in force
		want         []string
		asksNotGrown bool
	}{
		"as it was made":                          {"1 20Gi", "20Gi", "", asks("20Gi"), "20Gi", nil, false},
		"a smaller size":                          {"1 20Gi", "20Gi", "", asks("10Gi"), "10Gi", smaller, true},
		"a larger size":                           {"1 20Gi", "20Gi", "", asks("30Gi"), "30Gi", nil, false},
		"the same size in other words":            {"1 20Gi", "20Gi", "", asks("20480Mi"), "20Gi", nil, false},
		"a smaller size that was refused":         {"1 20Gi", "10Gi", "", asks("10Gi"), "10Gi", nil, false},
		"it has grown by itself":                  {"1 10Gi", "20Gi", "", asks("10Gi"), "20Gi", nil, false},
		"it has grown, and grow is removed":       {"1 10Gi", "20Gi", "", asks("10Gi"), "10Gi", nil, false},
		"it has grown, and a smaller size":        {"1 20Gi", "40Gi", "", asks("15Gi"), "15Gi", smaller, true},
		"all have grown meanwhile to what it has": {"1 20Gi", "20Gi", "", asks("10Gi"), "20Gi", nil, true},
		"an earlier release has made it":          {"", "20Gi", "", asks("10Gi"), "10Gi", nil, false},
		"a former SampleDB of the name":           {"0 20Gi", "20Gi", "", asks("10Gi", "fast"), "10Gi", nil, false},
		"another class": {
			"1 20Gi slow", "20Gi", "slow", asks("20Gi", "fast"), "20Gi", class, false,
		},
		"a class later": {
			"1 20Gi", "20Gi", "slow", asks("20Gi", "fast"), "20Gi", class, false,
		},
		"the class that it has anyway": {"1 20Gi", "20Gi", "fast", asks("20Gi", "fast"), "20Gi", nil, false},
		"no class later":               {"1 20Gi slow", "20Gi", "slow", asks("20Gi"), "20Gi", nil, false},
		"made by hand in another class": {
			"1 20Gi fast", "20Gi", "slow", asks("20Gi", "fast"), "20Gi", nil, false,
		},
		"a claim without a class yet": {"1 20Gi", "20Gi", "", asks("20Gi", "fast"), "20Gi", class, false},
		"both": {
			"1 20Gi slow", "20Gi", "slow", asks("10Gi", "fast"), "10Gi", both, true,
		},
		"a note that is none": {"1 many", "20Gi", "", asks("10Gi"), "10Gi", nil, false},
	} {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.has)}
		if c.class != "" {
			claim.Spec.StorageClassName = &c.class
		}
		if c.note != "" {
			NoteStorage(claim, c.note)
		}
		if got := c.asked.Anew(resource.MustParse(c.force), claim); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := c.asked.Smaller(claim); got != c.asksNotGrown {
			t.Errorf("%s: that it is to be smaller is %v", name, got)
		}
	}
}

func TestAStatefulSetThatWouldMakeOtherClaimsIsMadeAnew(t *testing.T) {
	db := desiredtest.SampleDB("x")
	set, err := desired.StatefulSet(db, desired.Settings{}, desired.Config(db, desired.Known{}), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		asked AskedStorage
		size  string
		want  bool
	}{
		"as it is":            {asks("10Gi"), "10Gi", true},
		"larger claims":       {asks("20Gi"), "20Gi", true}, // they grow when they are there
		"smaller claims":      {asks("5Gi"), "5Gi", false},
		"claims of a class":   {asks("10Gi", "fast"), "10Gi", false},
		"smaller than before": {asks("5Gi"), "10Gi", true},
	} {
		if got := c.asked.MadeBy(set, resource.MustParse(c.size)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a claim notes is written when it changes, and only then.
func TestANoteOnAClaimIsWritten(t *testing.T) {
	applied := func(note string) string {
		claim, err := desired.Claim(desiredtest.SampleDB("x"), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		NoteStorage(claim, note)
		return claim.Annotations["toban.dev/applied"]
	}
	one, again, other := applied("1 10Gi"), applied("1 10Gi"), applied("1 5Gi")
	if one != again || one == other {
		t.Errorf("the hashes are %s, %s and %s", one, again, other)
	}
}
