// Package credentials makes the secrets of SampleDBs without ever reading a
// Secret of theirs: all are derived from the operator's one root secret and the
// SampleDB's UID. So creating them is idempotent, and the operator needs no right
// to read Secrets but its own. It must not import controllers.
package credentials

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/passwords"
	"toban.dev/internal/pki"
)

// rootLength is that of the root secret in bytes.
const rootLength = 32

// Store derives secrets from the root. It is safe for concurrent use.
type Store struct {
	root     []byte
	operator *pki.Authority
	now      func() time.Time

	mu   sync.Mutex
	leaf pki.Leaf
}

// Databases lists the SampleDBs that are this operator's, in whatever namespaces it works.
type Databases func(context.Context) ([]v1.SampleDB, error)

// Load reads the operator's Secret in its namespace, or makes it at the first
// start. Where there are SampleDBs that an operator has begun with, it was lost: another root would lock the operator
// and applications out of all of them. The client must read without a cache: a cache would need the right to list.
func Load(ctx context.Context, c client.Client, namespace string, databases Databases) (*Store, error) {
	key := types.NamespacedName{Namespace: namespace, Name: naming.OperatorSecret}
	secret := &corev1.Secret{}
	err := c.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		if err := mayCreate(ctx, databases, key); err != nil {
			return nil, err
		}
		if err := create(ctx, c, key); err != nil {
			return nil, err
		}
		err = c.Get(ctx, key, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("read the operator's Secret %s: %w", key, err)
	}
	root := secret.Data[naming.KeyRoot]
	if len(root) < rootLength {
		return nil, fmt.Errorf("the operator's Secret %s has no key %q of %d bytes: restore it, or delete it when "+
			"there is no SampleDB yet", key, naming.KeyRoot, rootLength)
	}
	return New(root, secret.CreationTimestamp.Time)
}

// mayCreate is an error where the root secret was lost.
func mayCreate(ctx context.Context, databases Databases, key types.NamespacedName) error {
	all, err := databases(ctx)
	if err != nil {
		return fmt.Errorf("look whether there are SampleDBs: %w", err)
	}
	begun := begunWith(all)
	if len(begun) == 0 {
		return nil
	}
	return fmt.Errorf("the operator's Secret %s is gone, of which the passwords and keys of %d SampleDBs are made "+
		"(%s is one): put your copy of it back, and start the operator again. A new one would fit none of them. "+
		"docs/security.md, \"Rotation\", says what can be done without a copy", key, len(begun), begun[0])
}

// begunWith are the SampleDBs for which an operator has made something. One that was only created
// waits for the first operator.
func begunWith(all []v1.SampleDB) (names []string) {
	for _, db := range all {
		if db.Status.ObservedGeneration > 0 || slices.Contains(db.Finalizers, naming.Finalizer) {
			names = append(names, db.Namespace+"/"+db.Name)
		}
	}
	return names
}

// create makes the root secret. Another replica may be faster; then its root counts.
func create(ctx context.Context, c client.Client, key types.NamespacedName) error {
	root := make([]byte, rootLength)
	if _, err := rand.Read(root); err != nil {
		return fmt.Errorf("make a root secret: %w", err)
	}
	err := c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{naming.LabelManagedBy: naming.ManagedBy},
		},
		Data: map[string][]byte{naming.KeyRoot: root},
	}, client.FieldOwner(naming.FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the operator's Secret %s: %w", key, err)
	}
	return nil
}

// New makes a Store of a root secret. The time from which the operator's
// authority is valid must always be the same for a root, since it is part of the certificate.
func New(root []byte, since time.Time) (*Store, error) {
	operator, err := pki.NewAuthority(pki.Derive(root, "toban", "operator", 32), naming.IdentityOperator, since)
	if err != nil {
		return nil, fmt.Errorf("make the operator's authority: %w", err)
	}
	return &Store{root: root, operator: operator, now: time.Now}, nil
}

// Password is that of the SampleDB's application: 32 hexadecimal digits, 128 bits. The epoch counts how often it was
// replaced. A SampleDB that was brought back has the former one's (see Credentials).
func (k *Store) Password(db metav1.Object, epoch int64) string {
	purpose := "password/app"
	if epoch > 0 {
		purpose += fmt.Sprintf("/%d", epoch)
	}
	return hex.EncodeToString(pki.Derive(k.root, string(k.read(db).uid), purpose, 16))
}

// Epoch is that of a SampleDB's password: the highest that is on record, in its annotation toban.dev/credentials or in
// its status. So a record that is lost, or an earlier one that is put back, brings no former password back.
func (k *Store) Epoch(db *v1.SampleDB) int64 {
	epoch := k.read(db).epoch
	if known := db.Status.Password; known != nil {
		epoch = max(epoch, known.Epoch)
	}
	return epoch
}

// Credentials is the annotation toban.dev/credentials. It puts on record which password a SampleDB has: the UID and the
// epoch of which it is made, and a code (HMAC-SHA256) that only the holder of the root can make. Another SampleDB of
// the same namespace and name, made with it when this one is gone, has this one's password. Nobody can use it under
// another name, or make one for the UID of somebody else's SampleDB.
func (k *Store) Credentials(db metav1.Object, epoch int64) string {
	o := origin{k.read(db).uid, epoch}
	return o.text() + "." + k.codeFor(db, o.text())
}

// origin is of what a SampleDB's password is made.
type origin struct {
	uid   types.UID
	epoch int64
}

// text is the UID, and the epoch where there is one.
func (o origin) text() string {
	if o.epoch == 0 {
		return string(o.uid)
	}
	return fmt.Sprintf("%s.%d", o.uid, o.epoch)
}

// read is the origin in a SampleDB's annotation where the code is right, else its own.
func (k *Store) read(db metav1.Object) origin {
	own := origin{uid: db.GetUID()}
	text := db.GetAnnotations()[naming.AnnotationCredentials]
	end := strings.LastIndex(text, ".")
	if end < 0 {
		return own
	}
	uid, number, counted := strings.Cut(text[:end], ".")
	said := origin{uid: types.UID(uid)}
	if counted {
		epoch, err := strconv.ParseInt(number, 10, 64)
		if err != nil || epoch < 1 {
			return own
		}
		said.epoch = epoch
	}
	if !hmac.Equal([]byte(text[end+1:]), []byte(k.codeFor(db, text[:end]))) {
		return own
	}
	return said
}

func (k *Store) codeFor(db metav1.Object, origin string) string {
	mac := hmac.New(sha256.New, pki.Derive(k.root, db.GetNamespace()+"/"+db.GetName(), "credentials", 32))
	mac.Write([]byte(origin))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Recipient opens what is sealed for the operator about an object.
func (k *Store) Recipient(uid types.UID) (passwords.Recipient, error) {
	return passwords.NewRecipient(pki.Derive(k.root, string(uid), "recipient", 32))
}

// Digest tells one content of an object's Secret from another, and nothing about it to those who do not have the root.
func (k *Store) Digest(uid types.UID, content []byte) string {
	mac := hmac.New(sha256.New, pki.Derive(k.root, string(uid), "digest", 32))
	mac.Write(content)
	return hex.EncodeToString(mac.Sum(nil)[:5])
}

// Operator is the certificate (PEM) of the authority that vouches for the operator.
func (k *Store) Operator() string { return string(k.operator.CertPEM()) }

// Certificate is the operator's own, issued in memory and renewed in time.
func (k *Store) Certificate() (tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if k.leaf.CertPEM == nil || now.After(k.leaf.RenewAt()) {
		leaf, err := k.operator.Issue(naming.IdentityOperator, nil, now)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("issue the operator's certificate: %w", err)
		}
		k.leaf = leaf
	}
	return k.leaf.TLS()
}
