package credentials

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

func store(t *testing.T, root string) *Store {
	t.Helper()
	k, err := New([]byte(root), time.Unix(17e8, 0))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func db(uid types.UID) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Namespace: "shop", Name: "x", UID: uid, CreationTimestamp: metav1.NewTime(time.Unix(2e9, 0)),
	}
}

func authority(t *testing.T, k *Store, uid types.UID) string {
	t.Helper()
	a, err := k.Authority(db(uid))
	if err != nil {
		t.Fatal(err)
	}
	return string(a.CertPEM())
}

// An operator that starts again must derive the same, or it would lock itself
// and every application out.
func TestTheSameRootAlwaysDerivesTheSame(t *testing.T) {
	root := strings.Repeat("r", rootLength)
	one, two := store(t, root), store(t, root)
	if one.Operator() != two.Operator() || one.Password(db("u")) != two.Password(db("u")) ||
		authority(t, one, "u") != authority(t, two, "u") {
		t.Error("a second operator derives something else")
	}
}

func TestNothingIsSharedBetweenSampleDBsOrRoots(t *testing.T) {
	one, other := store(t, strings.Repeat("r", rootLength)), store(t, strings.Repeat("s", rootLength))
	if one.Password(db("u")) == one.Password(db("v")) || one.Password(db("u")) == other.Password(db("u")) {
		t.Error("a password is shared")
	}
	if authority(t, one, "u") == authority(t, one, "v") || authority(t, one, "u") == authority(t, other, "u") {
		t.Error("an authority is shared")
	}
	if len(one.Password(db("u"))) != 32 {
		t.Errorf("the password has %d characters", len(one.Password(db("u"))))
	}
}

func TestTheOperatorsCertificateIsRenewedAndTrusted(t *testing.T) {
	k := store(t, strings.Repeat("r", rootLength))
	now := time.Now()
	k.now = func() time.Time { return now }
	first, err := k.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pki.Pool(k.Operator())
	if err != nil {
		t.Fatal(err)
	}
	options := x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := first.Leaf.Verify(options); err != nil || first.Leaf.Subject.CommonName != naming.IdentityOperator {
		t.Errorf("%q is not trusted: %v", first.Leaf.Subject.CommonName, err)
	}
	if again, _ := k.Certificate(); again.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) != 0 {
		t.Error("it is issued anew each time")
	}
	now = now.Add(pki.LeafLifetime * 3 / 4)
	if later, _ := k.Certificate(); later.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) == 0 {
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
	again := with(k.Credentials(was), same)
	if k.Password(again) != k.Password(was) {
		t.Error("it has another password")
	}
	if third := with(k.Credentials(again), same); k.Password(third) != k.Password(was) {
		t.Error("brought back twice it has another password")
	}
	other := store(t, strings.Repeat("s", rootLength))
	for name, c := range map[string]*metav1.ObjectMeta{
		"another name":      with(k.Credentials(was), func(o *metav1.ObjectMeta) { o.Name = "y" }),
		"another namespace": with(k.Credentials(was), func(o *metav1.ObjectMeta) { o.Namespace = "theirs" }),
		"a UID alone":       with("u", same),
		"a UID and a dot":   with("u.", same),
		"a code of another": with("u."+strings.Split(k.Credentials(db("w")), ".")[1], same),
		"another root":      with(other.Credentials(was), same),
	} {
		if own := with("", func(o *metav1.ObjectMeta) { o.Name, o.Namespace = c.Name, c.Namespace }); k.Password(
			c) != k.Password(own) {
			t.Errorf("%s: it does not have a password of its own", name)
		}
	}
}
