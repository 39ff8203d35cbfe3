// Package credentials makes the secrets of SampleDBs without ever reading a
// Secret of theirs: all are derived from the operator's root secrets and the
// SampleDB's UID. So creating them is idempotent, and the operator needs no right
// to read Secrets but its own. It must not import controllers.
package credentials

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
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

// Store derives secrets from the roots. It is safe for concurrent use.
type Store struct {
	// roots has one at least, the oldest first.
	roots []root
	now   func() time.Time

	mu sync.Mutex
	// leaves are the operator's certificates, by the names of the roots.
	leaves map[string]pki.Leaf
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
	store, err := FromSecret(secret, time.Now())
	if err != nil {
		return nil, err
	}
	all, err := databases(ctx)
	if err != nil {
		return nil, fmt.Errorf("look which roots the SampleDBs need: %w", err)
	}
	return store, store.mayUse(all, key)
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
		"docs/rotation.md, \"The root secret is lost, or stolen\", says what can be done without a copy",
		key, len(begun), begun[0])
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

// Password is that of the SampleDB's application: 32 hexadecimal digits, 128 bits. The epoch counts how often it was
// replaced. A SampleDB that was brought back has the former one's (see Credentials).
func (k *Store) Password(db metav1.Object, epoch int64) (string, error) {
	root, err := k.of(epoch)
	if err != nil {
		return "", err
	}
	purpose := "password/app"
	if epoch > 0 {
		purpose += fmt.Sprintf("/%d", epoch)
	}
	return hex.EncodeToString(pki.Derive(root.secret, string(k.read(db).uid), purpose, 16)), nil
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
// epoch of which it is made, and a code (HMAC-SHA256) that only the holder of the epoch's root can make. Another
// SampleDB of the same namespace and name, made with it when this one is gone, has this one's password. Nobody can use
// it under another name, or make one for the UID of somebody else's SampleDB. It is "" where that root is not there.
func (k *Store) Credentials(db metav1.Object, epoch int64) string {
	o := origin{k.read(db).uid, epoch}
	code := k.codeFor(db, o)
	if code == "" {
		return ""
	}
	return o.text() + "." + code
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
	if said, right := k.recorded(db); right {
		return said
	}
	return origin{uid: db.GetUID()}
}

// Recorded says that a SampleDB's annotation toban.dev/credentials is one that the operator has made.
func (k *Store) Recorded(db metav1.Object) bool {
	_, right := k.recorded(db)
	return right
}

// recorded is the origin in a SampleDB's annotation, and whether its code is right.
func (k *Store) recorded(db metav1.Object) (said origin, right bool) {
	text := db.GetAnnotations()[naming.AnnotationCredentials]
	end := strings.LastIndex(text, ".")
	if end < 0 {
		return origin{}, false
	}
	uid, number, counted := strings.Cut(text[:end], ".")
	said = origin{uid: types.UID(uid)}
	if counted {
		epoch, err := strconv.ParseInt(number, 10, 64)
		if err != nil || epoch < 1 {
			return origin{}, false
		}
		said.epoch = epoch
	}
	code := k.codeFor(db, said)
	return said, code != "" && said.text() == text[:end] && hmac.Equal([]byte(text[end+1:]), []byte(code))
}

// codeFor is the code of an origin, "" where the root of its epoch is not there.
func (k *Store) codeFor(db metav1.Object, o origin) string {
	root, err := k.of(o.epoch)
	if err != nil {
		return ""
	}
	mac := hmac.New(sha256.New, pki.Derive(root.secret, db.GetNamespace()+"/"+db.GetName(), "credentials", 32))
	mac.Write([]byte(o.text()))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Recipient opens what is sealed for the operator about an object.
func (k *Store) Recipient(uid types.UID) (passwords.Recipient, error) {
	return passwords.NewRecipient(pki.Derive(k.newest().secret, string(uid), "recipient", 32))
}

// Digest tells one content of an object's Secret from another, and nothing about it to those who do not have the root.
// It is of the oldest root: it changes when that is taken out, and not before.
func (k *Store) Digest(uid types.UID, content []byte) string {
	mac := hmac.New(sha256.New, pki.Derive(k.roots[0].secret, string(uid), "digest", 32))
	mac.Write(content)
	return hex.EncodeToString(mac.Sum(nil)[:5])
}
