package credentials

import (
	"crypto/x509"
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

func store(t *testing.T, root string) *Store {
	t.Helper()
	k := &Store{now: time.Now, leaves: map[string]pki.Leaf{}}
	if err := k.add(naming.KeyRoot, 0, []byte(root), time.Unix(17e8, 0)); err != nil {
		t.Fatal(err)
	}
	return k
}

func db(uid types.UID) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Namespace: "shop", Name: "x", UID: uid, CreationTimestamp: metav1.NewTime(time.Unix(2e9, 0)),
	}
}

// password is a SampleDB's.
func password(t *testing.T, k *Store, db metav1.Object, epoch int64) string {
	t.Helper()
	text, err := k.Password(db, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func authority(t *testing.T, k *Store, uid types.UID) string {
	t.Helper()
	a, err := k.Authority(db(uid), 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(a.CertPEM())
}

// An operator that starts again must derive the same, or it would lock itself
// and every application out.
func TestTheSameRootAlwaysDerivesTheSame(t *testing.T) {
	root := strings.Repeat("r", rootLength)
	one, two, none := store(t, root), store(t, root), &v1.SampleDB{}
	if one.Operator(none, "") != two.Operator(none, "") ||
		password(t, one, db("u"), 0) != password(t, two, db("u"), 0) ||
		authority(t, one, "u") != authority(t, two, "u") {
		t.Error("a second operator derives something else")
	}
}

func TestNothingIsSharedBetweenSampleDBsOrRoots(t *testing.T) {
	one, other := store(t, strings.Repeat("r", rootLength)), store(t, strings.Repeat("s", rootLength))
	if text := password(t, one, db("u"), 0); text == password(t, one, db("v"), 0) ||
		text == password(t, other, db("u"), 0) {
		t.Error("a password is shared")
	}
	if authority(t, one, "u") == authority(t, one, "v") || authority(t, one, "u") == authority(t, other, "u") {
		t.Error("an authority is shared")
	}
	if len(password(t, one, db("u"), 0)) != 32 {
		t.Errorf("the password has %d characters", len(password(t, one, db("u"), 0)))
	}
}

func TestTheOperatorsCertificateIsRenewedAndTrusted(t *testing.T) {
	k := store(t, strings.Repeat("r", rootLength))
	now := time.Now()
	k.now = func() time.Time { return now }
	first, err := k.Certificate("")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pki.Pool(k.Operator(&v1.SampleDB{}, ""))
	if err != nil {
		t.Fatal(err)
	}
	options := x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := first.Leaf.Verify(options); err != nil || first.Leaf.Subject.CommonName != naming.IdentityOperator {
		t.Errorf("%q is not trusted: %v", first.Leaf.Subject.CommonName, err)
	}
	if again, _ := k.Certificate(""); again.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) != 0 {
		t.Error("it is issued anew each time")
	}
	now = now.Add(pki.LeafLifetime * 3 / 4)
	if later, _ := k.Certificate(""); later.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) == 0 {
		t.Error("it was not renewed")
	}
}

// A SampleDB that is brought back has the former one's password, also the second time. Nobody gets one by the UID of
// another's SampleDB, which is no secret.
func TestCredentialsBringAPasswordBackToTheSameNameOnly(t *testing.T) {
	k := store(t, strings.Repeat("r", rootLength))
	was := db("u")
	with := func(credentials string, modify func(*metav1.ObjectMeta)) *metav1.ObjectMeta {
		o := db("v")
		o.Annotations = map[string]string{naming.AnnotationCredentials: credentials}
		modify(o)
		return o
	}
	same := func(*metav1.ObjectMeta) {}
	again := with(k.Credentials(was, 0), same)
	if password(t, k, again, 0) != password(t, k, was, 0) {
		t.Error("it has another password")
	}
	if third := with(k.Credentials(again, 0), same); password(t, k, third, 0) != password(t, k, was, 0) {
		t.Error("brought back twice it has another password")
	}
	other := store(t, strings.Repeat("s", rootLength))
	for name, c := range map[string]*metav1.ObjectMeta{
		"another name":      with(k.Credentials(was, 0), func(o *metav1.ObjectMeta) { o.Name = "y" }),
		"another namespace": with(k.Credentials(was, 0), func(o *metav1.ObjectMeta) { o.Namespace = "theirs" }),
		"a UID alone":       with("u", same),
		"a UID and a dot":   with("u.", same),
		"a code of another": with("u."+strings.Split(k.Credentials(db("w"), 0), ".")[1], same),
		"another root":      with(other.Credentials(was, 0), same),
	} {
		own := with("", func(o *metav1.ObjectMeta) { o.Name, o.Namespace = c.Name, c.Namespace })
		if password(t, k, c, 0) != password(t, k, own, 0) {
			t.Errorf("%s: it does not have a password of its own", name)
		}
	}
}

// Databases of earlier releases keep their passwords, and what they have in their backups' manifests.
func TestTheFirstEpochIsWhatItAlwaysWas(t *testing.T) {
	k := store(t, strings.Repeat("r", rootLength))
	if got, want := password(t, k, db("u"), 0), "410eb44c933204dd9a63f11ed33584ce"; got != want {
		t.Errorf("the password of epoch 0 is %s, and was %s", got, want)
	}
	if got, want := k.Credentials(db("u"), 0), "u.8ec7bb184ca3ce1dfdd70ada336c1ba5"; got != want {
		t.Errorf("the credentials of epoch 0 are %s, and were %s", got, want)
	}
	if got, want := pki.KeyIDs(authority(t, k, "u")), []string{"4e372400324fe140"}; !slices.Equal(got, want) {
		t.Errorf("the authority of epoch 0 has the key %s, and had %s", got, want)
	}
}

// Every epoch is another password, and is on record in an annotation that nobody else can make.
func TestEveryEpochHasItsPasswordAndItsRecord(t *testing.T) {
	k := store(t, strings.Repeat("r", rootLength))
	seen := map[string]bool{}
	for epoch := range int64(4) {
		text := password(t, k, db("u"), epoch)
		if seen[text] {
			t.Errorf("epoch %d has the password of an earlier one", epoch)
		}
		seen[text] = true
		for _, uid := range []types.UID{"u", "v"} { // itself, and the one that it is brought back as
			o := db(uid)
			o.Annotations = map[string]string{naming.AnnotationCredentials: k.Credentials(db("u"), epoch)}
			got := k.Epoch(&v1.SampleDB{ObjectMeta: *o})
			if got != epoch || password(t, k, o, got) != text {
				t.Errorf("with the record of epoch %d, %s is in epoch %d", epoch, uid, got)
			}
		}
	}
	code := k.Credentials(db("u"), 1)[len("u.1."):]
	for name, text := range map[string]string{
		"a higher epoch":         "u.2." + code,
		"another spelling of it": "u.01." + code,
		"none":                   "u." + code,
		"not a number":           "u.x." + code,
		"a negative one":         "u.-1." + code,
	} {
		o := db("u")
		o.Annotations = map[string]string{naming.AnnotationCredentials: text}
		if got := k.Epoch(&v1.SampleDB{ObjectMeta: *o}); got != 0 {
			t.Errorf("%s: it is in epoch %d by a record that nobody made", name, got)
		}
	}
}

// Neither an earlier record that somebody puts back nor a status that is lost brings a former password back.
func TestAnEpochNeverGetsLess(t *testing.T) {
	k := store(t, strings.Repeat("r", rootLength))
	for name, c := range map[string]struct{ annotation, status, want int64 }{
		"none":                           {0, 0, 0},
		"both":                           {2, 2, 2},
		"the status is behind":           {2, 1, 2},
		"an earlier record was put back": {1, 2, 2},
	} {
		o := v1.SampleDB{ObjectMeta: *db("u"), Status: v1.SampleDBStatus{Password: &v1.PasswordStatus{Epoch: c.status}}}
		o.Annotations = map[string]string{naming.AnnotationCredentials: k.Credentials(&o, c.annotation)}
		if got := k.Epoch(&o); got != c.want {
			t.Errorf("%s: epoch %d, want %d", name, got, c.want)
		}
	}
}

// A root secret that is lost is told from one that was never there by what an operator has done.
func TestASampleDBThatNoOperatorHasSeenNeedsNoFormerRoot(t *testing.T) {
	made := func(modify func(*v1.SampleDB)) v1.SampleDB {
		o := v1.SampleDB{ObjectMeta: *db("u")}
		modify(&o)
		return o
	}
	for name, c := range map[string]struct {
		db   v1.SampleDB
		want bool
	}{
		"only created":  {made(func(*v1.SampleDB) {}), false},
		"held":          {made(func(o *v1.SampleDB) { o.Finalizers = []string{naming.Finalizer} }), true},
		"with a status": {made(func(o *v1.SampleDB) { o.Status.ObservedGeneration = 1 }), true},
	} {
		if got := len(begunWith([]v1.SampleDB{c.db})) > 0; got != c.want {
			t.Errorf("%s: an operator has begun with it: %v, want %v", name, got, c.want)
		}
	}
}
