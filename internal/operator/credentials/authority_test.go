package credentials

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// bundle is the certificates of a SampleDB's authorities.
func bundle(t *testing.T, k *Store, object metav1.Object, epochs ...int64) string {
	t.Helper()
	var out strings.Builder
	for _, epoch := range epochs {
		a, err := k.Authority(object, epoch)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(a.CertPEM())
	}
	return out.String()
}

// Every epoch has a key and a name of its own, and lasts longer than the one before.
func TestEveryEpochHasItsAuthority(t *testing.T) {
	k := store(t, strings.Repeat("r", rootLength))
	all := pki.Certificates([]byte(bundle(t, k, db("u"), 0, 1, 2, 3, 300, 5000)))
	keys := map[string]bool{}
	for i, c := range all {
		if id := pki.KeyIDs(bundle(t, k, db("u"), 0, 1, 2, 3, 300, 5000))[i]; keys[id] || keys[c.Subject.String()] {
			t.Errorf("%s, %s: an earlier one has that too", id, c.Subject)
		} else {
			keys[id], keys[c.Subject.String()] = true, true
		}
		if i > 0 && i < 5 && !c.NotAfter.After(all[i-1].NotAfter.AddDate(19, 0, 0)) {
			t.Errorf("%s ends %s", c.Subject, c.NotAfter)
		}
	}
	if len(all) != 6 {
		t.Errorf("%d certificates can be read", len(all))
	}
}

// The operator keeps in NAME-config what it has derived itself and what counts, and nothing else.
func TestABundleHasTheAuthoritiesThatCountAndNoOthers(t *testing.T) {
	k, thief := store(t, strings.Repeat("r", rootLength)), store(t, strings.Repeat("s", rootLength))
	both := Authorities{Oldest: 0, Epoch: 1}
	want := bundle(t, k, db("u"), 0, 1)
	for name, c := range map[string]struct {
		known string
		count Authorities
		want  string
		none  bool
	}{
		"nothing is there":       {"", both, want, true},
		"it is there":            {want, both, want, false},
		"in another order":       {bundle(t, k, db("u"), 1, 0), both, want, false},
		"the new one comes":      {bundle(t, k, db("u"), 0), both, want, false},
		"the former one goes":    {want, Authorities{1, 1, 1, 0}, bundle(t, k, db("u"), 1), false},
		"a thief's besides":      {want + bundle(t, thief, db("u"), 0), both, want, false},
		"a thief's alone":        {bundle(t, thief, db("u"), 0, 1), both, want, true},
		"that of another object": {bundle(t, k, db("v"), 0, 1), both, want, true},
	} {
		got, none, err := k.Bundle(db("u"), c.count, c.known)
		if err != nil || got != c.want || none != c.none {
			t.Errorf("%s: keys %v, none %v, %v", name, pki.KeyIDs(got), none, err)
		}
	}
	// A certificate that was there before stays to the byte: agents have it.
	seed := pki.Derive(k.newest().secret, "u", "authority", 32)
	resigned, err := pki.NewAuthority(seed, "toban shop/x", time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := k.Bundle(db("u"), Authorities{}, string(resigned.CertPEM())); got != string(resigned.CertPEM()) {
		t.Error("another certificate of the same key takes its place")
	}
}

// Whatever record is lost, put back or forged: what counts never gets less, and nobody else can raise it.
func TestWhichAuthoritiesCountNeverGetsLess(t *testing.T) {
	k, thief := store(t, strings.Repeat("r", rootLength)), store(t, strings.Repeat("s", rootLength))
	hour := time.Hour
	at := func(oldest, issuer, epoch int64) Authorities { return Authorities{oldest, issuer, epoch, hour} }
	none := Authorities{}
	for name, c := range map[string]struct {
		annotation, status Authorities
		bundle             []int64
		want               Authorities
	}{
		"none":                               {none, none, nil, none},
		"none, and the first authority":      {none, none, []int64{0}, none},
		"all":                                {at(0, 1, 1), at(0, 1, 1), []int64{0, 1}, at(0, 1, 1)},
		"the status is lost":                 {at(1, 1, 1), none, []int64{1}, at(1, 1, 1)},
		"the annotation is lost":             {none, at(1, 1, 1), []int64{1}, at(1, 1, 1)},
		"both are lost, with two":            {none, none, []int64{0, 1}, Authorities{0, 0, 1, 0}},
		"both are lost, with the new one":    {none, none, []int64{3}, Authorities{3, 3, 3, 0}},
		"an earlier annotation is put back":  {at(0, 0, 1), at(1, 1, 1), []int64{1}, at(1, 1, 1)},
		"an earlier ConfigMap is put back":   {at(1, 1, 1), at(1, 1, 1), []int64{0}, at(1, 1, 1)},
		"the former one is taken out of it":  {at(0, 0, 1), at(0, 0, 1), []int64{1}, at(0, 0, 1)},
		"the status is behind by a rotation": {at(1, 1, 2), at(1, 1, 1), []int64{1, 2}, at(1, 1, 2)},
	} {
		o := v1.SampleDB{ObjectMeta: *db("u")}
		if c.annotation != none {
			o.Annotations = map[string]string{naming.AnnotationAuthority: k.AuthorityRecord(&o, c.annotation)}
		}
		if s := c.status; s != none {
			o.Status.Authority = &v1.AuthorityStatus{
				Oldest: s.Oldest, Issuer: s.Issuer, Epoch: s.Epoch, OverlapSeconds: int64(s.Overlap / time.Second),
			}
		}
		got, err := k.AuthoritiesOf(&o, bundle(t, k, &o, c.bundle...))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	o := &v1.SampleDB{ObjectMeta: *db("u")}
	for name, forged := range map[string]string{
		"a thief's":             thief.AuthorityRecord(o, at(0, 0, 1)),
		"that of another UID":   k.AuthorityRecord(&v1.SampleDB{ObjectMeta: *db("v")}, at(0, 0, 1)),
		"a changed one":         strings.Replace(k.AuthorityRecord(o, at(0, 0, 1)), "0.0.1", "0.0.2", 1),
		"one without a code":    "0.0.1.3600",
		"one with an empty one": "0.0.1.3600.",
	} {
		o.Annotations = map[string]string{naming.AnnotationAuthority: forged}
		if got, err := k.AuthoritiesOf(o, bundle(t, thief, o, 0, 1)); err != nil || got != none {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// What is brought back under the name of a SampleDB that is gone has an authority of its own, whatever it brings.
func TestWhatIsBroughtBackHasAnAuthorityOfItsOwn(t *testing.T) {
	k := store(t, strings.Repeat("r", rootLength))
	was := &v1.SampleDB{ObjectMeta: *db("u")}
	again := &v1.SampleDB{ObjectMeta: *db(types.UID("v"))}
	again.Annotations = map[string]string{
		naming.AnnotationAuthority:   k.AuthorityRecord(was, Authorities{1, 1, 1, 0}),
		naming.AnnotationCredentials: k.Credentials(was, 1),
	}
	if got, err := k.AuthoritiesOf(again, bundle(t, k, was, 1)); err != nil || got != (Authorities{}) {
		t.Errorf("it has %+v, %v", got, err)
	}
	for _, former := range pki.KeyIDs(bundle(t, k, was, 0, 1)) {
		if slices.Contains(pki.KeyIDs(bundle(t, k, again, 0, 1)), former) {
			t.Error("it has a key of the former one")
		}
	}
}
