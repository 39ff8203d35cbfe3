package credentials

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// The roots of the tests: the first one, and two that are added later.
const (
	second = "root-1800000000"
	third  = "root-1900000000"
)

// roots is a store of some roots, by their names.
func roots(t *testing.T, names ...string) *Store {
	t.Helper()
	k, err := fromSecret(names...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func fromSecret(names ...string) (*Store, error) {
	all := map[string]string{"root": "r", second: "s", third: "t"}
	secret := &corev1.Secret{Data: map[string][]byte{"note": []byte("no root")}}
	secret.CreationTimestamp = metav1.NewTime(time.Unix(17e8, 0))
	for _, name := range names {
		secret.Data[name] = []byte(strings.Repeat(all[name]+"x", rootLength)[:rootLength])
	}
	return FromSecret(secret, time.Unix(1_900_000_000, 0))
}

// What an epoch gives does not depend on which other roots there are, and each root gives something else.
func TestAnEpochSaysOfWhichRootSomethingIs(t *testing.T) {
	alone, both, all := roots(t, "root"), roots(t, "root", second), roots(t, "root", second, third)
	last := roots(t, third)
	for _, epoch := range []int64{0, 1, 7} {
		if password(t, alone, db("u"), epoch) != password(t, all, db("u"), epoch) ||
			bundle(t, alone, db("u"), epoch) != bundle(t, all, db("u"), epoch) {
			t.Errorf("epoch %d: a later root changes what there was", epoch)
		}
	}
	for _, epoch := range []int64{1_800_000_000, 1_800_000_001} {
		if password(t, both, db("u"), epoch) != password(t, all, db("u"), epoch) {
			t.Errorf("epoch %d: a third root changes what is of the second", epoch)
		}
	}
	if password(t, last, db("u"), 1_900_000_000) != password(t, all, db("u"), 1_900_000_000) {
		t.Error("without the first root the third one gives something else")
	}
	if _, err := last.Password(db("u"), 0); err == nil {
		t.Error("a password is made without its root")
	}
	if _, err := last.Authority(db("u"), 1_800_000_000); err == nil {
		t.Error("an authority is made without its root")
	}
	if got := []int64{alone.Next(0), all.Next(0), all.Next(1_900_000_000)}; !slices.Equal(got,
		[]int64{1, 1_900_000_000, 1_900_000_001}) {
		t.Errorf("the next epochs are %v", got)
	}
	ends := pki.Certificates([]byte(bundle(t, all, db("u"), 0, 1_900_000_000, 1_900_000_001)))
	if !ends[2].NotAfter.After(ends[1].NotAfter.AddDate(19, 0, 0)) || ends[1].NotAfter.Year() > 2100 {
		t.Errorf("authorities of a later root last until %s and %s", ends[1].NotAfter, ends[2].NotAfter)
	}
}

// Who has a former root can't bring anything back to it: neither by a record of his own nor by an earlier one.
func TestNothingGoesBackToAFormerRoot(t *testing.T) {
	k, thief := roots(t, "root", second), roots(t, "root")
	now := Authorities{Oldest: 1_800_000_000, Issuer: 1_800_000_000, Epoch: 1_800_000_000}
	o := &v1.SampleDB{ObjectMeta: *db("u")}
	o.Status.Password = &v1.PasswordStatus{Epoch: 1_800_000_000}
	o.Status.Authority = &v1.AuthorityStatus{Oldest: now.Oldest, Issuer: now.Issuer, Epoch: now.Epoch}
	for _, epoch := range []int64{5, 1_800_000_005} {
		o.Annotations = map[string]string{
			naming.AnnotationCredentials: thief.Credentials(o, epoch),
			naming.AnnotationAuthority: thief.AuthorityRecord(o,
				Authorities{Oldest: epoch, Issuer: epoch, Epoch: epoch}),
		}
		if got := k.Epoch(o); got != 1_800_000_000 {
			t.Errorf("a thief of the former root brings the password to epoch %d", got)
		}
		if got, err := k.AuthoritiesOf(o, bundle(t, thief, o, epoch)); err != nil || got != now {
			t.Errorf("a thief of the former root brings the authorities to %+v, %v", got, err)
		}
	}
	// What is brought back from a backup has its former password only while its root is there.
	again := db(types.UID("v"))
	again.Annotations = map[string]string{naming.AnnotationCredentials: k.Credentials(db("u"), 1)}
	if !k.Recorded(again) || roots(t, second).Recorded(again) {
		t.Error("a record counts without its root, or does not with it")
	}
}

// A SampleDB is shown the operator by the oldest root that it needs, is told all newer ones, and never goes back.
func TestByWhichRootsTheOperatorIsKnown(t *testing.T) {
	told := func(names ...string) string {
		k := roots(t, names...)
		return k.Operator(&v1.SampleDB{}, string(k.roots[0].operator.CertPEM()))
	}
	of := func(names ...string) []string { return names }
	both, all := of("root", second), of("root", second, third)
	for name, c := range map[string]struct {
		held         []string
		told         string
		seen         bool
		needed, want []string
	}{
		"a new one":                     {both, "", false, nil, of(second)},
		"a later root is added":         {both, told("root"), true, nil, both},
		"all have been told":            {both, told(both...), true, nil, both},
		"nothing needs the first":       {both, told(both...), true, of(second), of(second)},
		"the first is taken out":        {of(second), told(both...), true, of(second), of(second)},
		"it is put back":                {both, told(second), true, of(second), of(second)},
		"an earlier config is put back": {both, told("root"), true, of(second), of(second)},
		"the status is lost":            {both, told(second), false, nil, of(second)},
		"an earlier status is put back": {both, told(second), true, nil, of(second)},
		"the config is lost":            {both, "", true, nil, both},
		"the later one is taken out":    {of("root"), told(both...), true, nil, of("root")},
		"a third":                       {all, told(second), true, of(second), of(second, third)},
	} {
		k, o := roots(t, c.held...), &v1.SampleDB{}
		if c.seen {
			o.Status.ObservedGeneration = 1
		}
		o.Status.Roots = c.needed
		operator := k.Operator(o, c.told)
		if got := k.Told(operator); !slices.Equal(got, c.want) {
			t.Errorf("%s: it is known by %v, want %v", name, got, c.want)
		}
		shown, err := k.Certificate(operator)
		if err != nil {
			t.Fatal(err)
		}
		oldest := pki.Certificates([]byte(operator))[0]
		if err := shown.Leaf.CheckSignatureFrom(oldest); err != nil {
			t.Errorf("%s: the operator does not show a certificate of the oldest root: %v", name, err)
		}
	}
}

// A root that is needed can't be taken out, and one that nobody can read is not taken.
func TestWhichRootsTheSecretMayHave(t *testing.T) {
	key := types.NamespacedName{Namespace: "toban-system", Name: "toban-operator"}
	made := func(seen int64, needed ...string) v1.SampleDB {
		o := v1.SampleDB{ObjectMeta: *db("u")}
		o.Status.ObservedGeneration, o.Status.Roots = seen, needed
		return o
	}
	for name, c := range map[string]struct {
		held    []string
		db      v1.SampleDB
		refused string
	}{
		"of an earlier release":                {[]string{"root"}, made(1), ""},
		"the first one is gone":                {[]string{second}, made(1), `"root"`},
		"it is new":                            {[]string{second}, made(0), ""},
		"the later one is gone":                {[]string{"root", third}, made(1, second), second},
		"one of two is gone":                   {[]string{second}, made(1, "root", second), `"root"`},
		"it needs the later one only":          {[]string{second}, made(1, second), ""},
		"the first one is there and not used":  {[]string{"root", second}, made(1, second), ""},
		"a copy of before the later one is it": {[]string{"root"}, made(1, second), second},
	} {
		err := roots(t, c.held...).mayUse([]v1.SampleDB{c.db}, key)
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := []byte(strings.Repeat("x", rootLength))
	for name, wrong := range map[string]map[string][]byte{
		"none":               {},
		"too short":          {"root": long[1:]},
		"a later too short":  {"root": long, second: long[1:]},
		"no time":            {"root": long, "root-two": long},
		"a small number":     {"root": long, "root-2": long},
		"in the future":      {"root": long, "root-1900003700": long},
		"another spelling":   {"root": long, "root-01800000000": long},
		"with a suffix":      {"root": long, second + "-old": long},
		"milliseconds of it": {"root": long, "root-1800000000000": long},
	} {
		if _, err := FromSecret(&corev1.Secret{Data: maps.Clone(wrong)}, time.Unix(1_900_000_000, 0)); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}
