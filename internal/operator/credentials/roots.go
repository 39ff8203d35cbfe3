package credentials

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// rootLength is that of a root secret in bytes.
const rootLength = 32

// root is one of the operator's root secrets. Its name is its key in the operator's Secret.
type root struct {
	name string
	// from is the first epoch of passwords and authorities that is derived from it, up to the next root's. So the
	// epoch alone, which never gets less, says which root something is derived from.
	from   int64
	secret []byte
	// operator vouches for the operator.
	operator *pki.Authority
}

// rootSkew is how far the clock of whoever adds a root may be ahead.
const rootSkew = time.Hour

// FromSecret makes a Store of the operator's Secret: of its key "root", and of the later ones "root-SECONDS", which
// are named after the time at which they were made.
func FromSecret(secret *corev1.Secret, now time.Time) (*Store, error) {
	k := &Store{now: time.Now, leaves: map[string]pki.Leaf{}}
	for name, value := range secret.Data {
		if name != naming.KeyRoot && !strings.HasPrefix(name, naming.KeyRoot+"-") {
			continue
		}
		from, since, err := rootTime(name, secret.CreationTimestamp.Time, now)
		switch {
		case err != nil:
			return nil, err
		case len(value) < rootLength:
			return nil, fmt.Errorf("the key %q of the operator's Secret %s has less than %d bytes: restore it, or "+
				"remove the key where nothing is derived from it yet", name, secret.Name, rootLength)
		}
		if err := k.add(name, from, value, since); err != nil {
			return nil, err
		}
	}
	if len(k.roots) == 0 {
		return nil, fmt.Errorf("the operator's Secret %s/%s has no key %q of %d bytes: restore it, or delete it when "+
			"there is no SampleDB yet", secret.Namespace, secret.Name, naming.KeyRoot, rootLength)
	}
	return k, nil
}

// rootTime is from which epoch on a root counts, and from when on the operator's authority of it is valid. Seconds
// are a good beginning of epochs: no rotation takes less than one, so a later root always begins after them.
func rootTime(name string, created, now time.Time) (from int64, since time.Time, err error) {
	if name == naming.KeyRoot {
		return 0, created, nil
	}
	from, err = strconv.ParseInt(strings.TrimPrefix(name, naming.KeyRoot+"-"), 10, 64)
	since = time.Unix(from, 0)
	if err != nil || from < 1e9 || name != laterRoot(from) || since.After(now.Add(rootSkew)) {
		return 0, time.Time{}, fmt.Errorf("the operator's Secret has the key %q: a key must be %q, or %q with the "+
			"time at which it was made, in seconds since 1970, which is not in the future. docs/rotation.md, "+
			"\"The operator's root secret\", has the command", name, naming.KeyRoot, naming.KeyRoot+"-SECONDS")
	}
	return from, since, nil
}

func laterRoot(from int64) string { return fmt.Sprintf("%s-%d", naming.KeyRoot, from) }

// add takes a root.
func (k *Store) add(name string, from int64, secret []byte, since time.Time) error {
	operator, err := pki.NewAuthority(pki.Derive(secret, "toban", "operator", 32), naming.IdentityOperator, since)
	if err != nil {
		return fmt.Errorf("make the operator's authority: %w", err)
	}
	k.roots = append(k.roots, root{name, from, secret, operator})
	slices.SortFunc(k.roots, func(a, b root) int { return int(a.from - b.from) })
	return nil
}

// newest is the root of which all is derived that is new.
func (k *Store) newest() root { return k.roots[len(k.roots)-1] }

// of is the root of an epoch.
func (k *Store) of(epoch int64) (root, error) {
	for _, r := range slices.Backward(k.roots) {
		if r.from <= epoch {
			return r, nil
		}
	}
	return root{}, fmt.Errorf("the root secret of epoch %d is not in the operator's Secret: put it back from your "+
		"copy, and restart the operator", epoch)
}

// Next is the epoch after one: the next number, or the first of the newest root.
func (k *Store) Next(epoch int64) int64 { return max(epoch+1, k.newest().from) }

// First is the epoch with which a new SampleDB begins.
func (k *Store) First() int64 { return k.newest().from }

// Roots are the names of all roots, the oldest first.
func (k *Store) Roots() []string {
	out := make([]string, 0, len(k.roots))
	for _, r := range k.roots {
		out = append(out, r.name)
	}
	return out
}

// RootOf is the name of the root of an epoch, "" where it is not there.
func (k *Store) RootOf(epoch int64) string {
	r, err := k.of(epoch)
	if err != nil {
		return ""
	}
	return r.name
}

// NeededBy are the names of the roots that a SampleDB is known to need. One that has been seen by an operator of a
// release that knew one root only, or that has never had another, needs the first.
func NeededBy(db *v1.SampleDB) []string {
	if len(db.Status.Roots) == 0 && db.Status.ObservedGeneration > 0 {
		return []string{naming.KeyRoot}
	}
	return db.Status.Roots
}

// mayUse is an error where a SampleDB needs a root that is not there: without it the operator would lock itself or
// applications out.
func (k *Store) mayUse(all []v1.SampleDB, key types.NamespacedName) error {
	have := k.Roots()
	for _, db := range all {
		for _, name := range NeededBy(&db) {
			if !slices.Contains(have, name) {
				return fmt.Errorf("the operator's Secret %s has no key %q (it has %s), and the SampleDB %s/%s still "+
					"needs it: put it back from your copy, and start the operator again. The databases go on. "+
					"docs/rotation.md, \"The operator's root secret\", says when a root may be taken out",
					key, name, strings.Join(have, ", "), db.Namespace, db.Name)
			}
		}
	}
	return nil
}

// Operator is the certificates (PEM) of the authorities that vouch for the operator, from that of the oldest root that
// a SampleDB needs to that of the newest. The operator shows a certificate of the first of them. It goes by what the
// agents were told last (told) and by the status, and takes the later one: it never goes back to a former root, also
// where one is put back. A SampleDB of which neither is known is new.
func (k *Store) Operator(db *v1.SampleDB, told string) string {
	first := k.told(told)
	if needed := NeededBy(db); len(needed) > 0 {
		first = max(first, slices.Index(k.Roots(), needed[0]))
	}
	if first < 0 {
		first = len(k.roots) - 1
	}
	var out strings.Builder
	for _, r := range k.roots[first:] {
		out.Write(r.operator.CertPEM())
	}
	return out.String()
}

// told is the index of the oldest root whose authority is among these (PEM), -1 where there is none.
func (k *Store) told(authorities string) int {
	return slices.IndexFunc(k.roots, func(r root) bool { return r.operator.Vouches([]byte(authorities)) })
}

// Told are the names of the roots whose authorities are among these (PEM), the oldest first.
func (k *Store) Told(authorities string) (out []string) {
	for _, r := range k.roots {
		if r.operator.Vouches([]byte(authorities)) {
			out = append(out, r.name)
		}
	}
	return out
}

// Certificate is the operator's own for those who trust these authorities (PEM): by the oldest of them, since not all
// may know a newer one yet. It is issued in memory and renewed in time.
func (k *Store) Certificate(operator string) (tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	by := k.newest()
	if i := k.told(operator); i >= 0 {
		by = k.roots[i]
	}
	now := k.now()
	leaf, there := k.leaves[by.name]
	if !there || now.After(leaf.RenewAt()) {
		var err error
		if leaf, err = by.operator.Issue(naming.IdentityOperator, nil, now); err != nil {
			return tls.Certificate{}, fmt.Errorf("issue the operator's certificate: %w", err)
		}
		k.leaves[by.name] = leaf
	}
	return leaf.TLS()
}
