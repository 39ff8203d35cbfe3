package credentials

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// Authorities says which authorities of a SampleDB count: those of the oldest epoch and the newest are trusted, and
// NAME-ca has the one of the epoch Issuer, which is one of the two. None of the three ever gets less.
type Authorities struct {
	Oldest, Issuer, Epoch int64
	// Overlap is for how long two are trusted, at each of the two steps that take their time.
	Overlap time.Duration
}

// epochs are those that are trusted, the oldest first. One rotation ends before the next begins, so there are not more
// than two; another root begins with a number that is not the next.
func (a Authorities) epochs() []int64 {
	return slices.Compact([]int64{a.Oldest, a.Issuer, a.Epoch})
}

// later is what is the furthest on of two records.
func (a Authorities) later(b Authorities) Authorities {
	out := Authorities{
		Oldest: max(a.Oldest, b.Oldest), Issuer: max(a.Issuer, b.Issuer), Epoch: max(a.Epoch, b.Epoch),
		Overlap: a.Overlap,
	}
	if b.Epoch > a.Epoch {
		out.Overlap = b.Overlap
	}
	out.Issuer = max(out.Issuer, out.Oldest)
	out.Epoch = max(out.Epoch, out.Issuer)
	return out
}

// Authority is the SampleDB's own of an epoch, which counts how often it was replaced. The same object and epoch always
// give the same. Each lasts for its time after the one before.
func (k *Store) Authority(db metav1.Object, epoch int64) (*pki.Authority, error) {
	root, err := k.of(epoch)
	if err != nil {
		return nil, err
	}
	purpose, name := "authority", authorityName(db)
	if epoch > 0 {
		purpose += fmt.Sprintf("/%d", epoch)
		name += fmt.Sprintf(" %d", epoch)
	}
	seed := pki.Derive(root.secret, string(db.GetUID()), purpose, 32)
	since, begin := db.GetCreationTimestamp().Time, time.Unix(root.from, 0)
	if begin.Before(since) {
		begin = since
	}
	until := begin.Add(pki.AuthorityLifetime).AddDate(int(min(epoch-root.from, maxEpoch))*lifetimeYears, 0, 0)
	return pki.NewAuthorityUntil(seed, name, since, until)
}

func authorityName(db metav1.Object) string {
	return fmt.Sprintf("toban %s/%s", db.GetNamespace(), db.GetName())
}

// Bundle is the certificates (PEM) of the authorities that count, the oldest first. Those in known are kept as
// they are, and what else is there is left out; none says that nothing in it was the SampleDB's.
func (k *Store) Bundle(db metav1.Object, count Authorities, known string) (bundle string, none bool, err error) {
	var out bytes.Buffer
	none = true
	for _, epoch := range count.epochs() {
		authority, err := k.Authority(db, epoch)
		if err != nil {
			return "", true, fmt.Errorf("make the authority: %w", err)
		}
		if kept := authority.Find([]byte(known)); kept != nil {
			none = false
			out.Write(kept)
		} else {
			out.Write(authority.CertPEM())
		}
	}
	return out.String(), none, nil
}

// AuthoritiesOf says which authorities count, by the furthest of three records: the annotation toban.dev/authority, the
// status, and the bundle (PEM) that the agents were given last. So a record that is lost, or an earlier one that is put
// back, brings no former authority back.
func (k *Store) AuthoritiesOf(db *v1.SampleDB, bundle string) (Authorities, error) {
	count := k.readAuthorities(db)
	if known := db.Status.Authority; known != nil {
		count = count.later(Authorities{
			Oldest: known.Oldest, Issuer: known.Issuer, Epoch: known.Epoch,
			Overlap: time.Duration(known.OverlapSeconds) * time.Second,
		})
	}
	given, err := k.authoritiesIn(db, bundle)
	if count.Epoch > 0 {
		// The ConfigMap is the weakest record: who may write it must not end the trust in anything.
		given = Authorities{Epoch: given.Epoch}
	}
	return count.later(given), err
}

// authoritiesIn is what a bundle says. Only certificates of keys that are derived count.
func (k *Store) authoritiesIn(db metav1.Object, bundle string) (Authorities, error) {
	var out Authorities
	first := true
	for _, c := range pki.Certificates([]byte(bundle)) {
		text, found := strings.CutPrefix(c.Subject.CommonName, authorityName(db)+" ")
		if !found {
			first = false // it may be the first one
			continue
		}
		epoch, err := strconv.ParseInt(text, 10, 64)
		if err != nil || epoch < 1 {
			continue
		}
		if k.RootOf(epoch) == "" {
			continue // nobody can make it
		}
		authority, err := k.Authority(db, epoch)
		if err != nil {
			return Authorities{}, fmt.Errorf("make the authority: %w", err)
		}
		if !authority.Vouches([]byte(bundle)) {
			continue
		}
		if first {
			out.Oldest = epoch
		}
		first = false
		out = out.later(Authorities{Oldest: out.Oldest, Epoch: epoch})
	}
	return out, nil
}

const (
	// lifetimeYears is how much longer an authority lasts than the one before it of the same root.
	lifetimeYears = int(pki.AuthorityLifetime / (365 * 24 * time.Hour))
	// maxEpoch is the last one that gets more time: a certificate can't name a year with five digits.
	maxEpoch = 300
)

// AuthorityRecord is the annotation toban.dev/authority: which authorities of this very SampleDB count, with a code
// (HMAC-SHA256) that only the holder of the newest one's root can make.
func (k *Store) AuthorityRecord(db metav1.Object, count Authorities) string {
	text := count.text()
	return text + "." + k.authorityCode(db, count.Epoch, text)
}

func (a Authorities) text() string {
	return fmt.Sprintf("%d.%d.%d.%d", a.Oldest, a.Issuer, a.Epoch, int64(a.Overlap/time.Second))
}

// readAuthorities is what the annotation says where its code is right.
func (k *Store) readAuthorities(db metav1.Object) Authorities {
	text := db.GetAnnotations()[naming.AnnotationAuthority]
	end := strings.LastIndex(text, ".")
	if end < 0 {
		return Authorities{}
	}
	var out Authorities
	var seconds int64
	if _, err := fmt.Sscanf(text[:end], "%d.%d.%d.%d", &out.Oldest, &out.Issuer, &out.Epoch, &seconds); err != nil {
		return Authorities{}
	}
	out.Overlap = time.Duration(seconds) * time.Second
	code := k.authorityCode(db, out.Epoch, text[:end])
	if code == "" || !hmac.Equal([]byte(text[end+1:]), []byte(code)) {
		return Authorities{}
	}
	return out
}

// authorityCode is the code of a record, "" where the root of its epoch is not there.
func (k *Store) authorityCode(db metav1.Object, epoch int64, text string) string {
	root, err := k.of(epoch)
	if err != nil {
		return ""
	}
	mac := hmac.New(sha256.New, pki.Derive(root.secret, string(db.GetUID()), "authority record", 32))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
