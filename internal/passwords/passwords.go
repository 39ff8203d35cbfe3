// Package passwords brings the passwords of users' Secrets to the operator, which may read no Secret: a Pod mounts
// them, and leaves what is in them, sealed for the operator alone, as its termination message. It knows no Kubernetes.
package passwords

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// Key is the key of a Secret that has a password.
const Key = "postgresql_password"

// maxMessage is what the kubelet keeps of a termination message (bytes; Kubernetes documentation, "Determine the
// Reason for Pod Failure").
const maxMessage = 4096

// Problem is why a Secret has no password, "" where it has one.
type Problem string

// The problems.
const (
	SecretMissing Problem = "SecretMissing" // there is no Secret of the name, or nothing in it
	KeyMissing    Problem = "KeyMissing"    // it has no key Key
	Empty         Problem = "Empty"         // the password is empty
	Malformed     Problem = "Malformed"     // it has a NUL or a line break in it, or is no UTF-8
	TooLong       Problem = "TooLong"       // it is longer than MaxLength
)

// Found is what was found in a Secret.
type Found struct {
	Password string  `json:"password,omitempty"`
	Problem  Problem `json:"problem,omitempty"`
}

// info binds what is sealed to its purpose, so that it can't stand in for something else.
var info = []byte("toban passwords v1")

// Recipient is who can open what is sealed: a key pair made of a seed, which is always the same for the same seed.
type Recipient struct{ key hpke.PrivateKey }

// NewRecipient makes the key pair of a seed of at least 32 bytes.
func NewRecipient(seed []byte) (Recipient, error) {
	key, err := kem().DeriveKeyPair(seed)
	if err != nil {
		return Recipient{}, fmt.Errorf("make the key for sealed passwords: %w", err)
	}
	return Recipient{key}, nil
}

// Public is the key to seal with, as text.
func (r Recipient) Public() string {
	return base64.RawURLEncoding.EncodeToString(r.key.PublicKey().Bytes())
}

// Seal makes the message with what was found, by the Secret's name, for the holder of a public key.
func Seal(public string, found map[string]Found) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(public)
	if err != nil {
		return "", fmt.Errorf("read the operator's public key: %w", err)
	}
	key, err := kem().NewPublicKey(raw)
	if err != nil {
		return "", fmt.Errorf("read the operator's public key: %w", err)
	}
	text, err := json.Marshal(found) //nolint:gosec // it is sealed before it leaves
	if err != nil {
		return "", fmt.Errorf("encode the passwords: %w", err)
	}
	sealed, err := hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), info, text)
	if err != nil {
		return "", fmt.Errorf("seal the passwords: %w", err)
	}
	message := base64.StdEncoding.EncodeToString(sealed)
	if len(message) > maxMessage {
		return "", fmt.Errorf("the passwords are together too long: sealed they have %d bytes, and a Pod can leave %d",
			len(message), maxMessage)
	}
	return message, nil
}

// ErrNotSealed says that a message is none that Seal made for this recipient.
var ErrNotSealed = errors.New("not a message with passwords for this operator")

// Open reads a message. Its error wraps ErrNotSealed.
func (r Recipient) Open(message string) (map[string]Found, error) {
	sealed, err := base64.StdEncoding.DecodeString(message)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSealed, err)
	}
	text, err := hpke.Open(r.key, hpke.HKDFSHA256(), hpke.AES256GCM(), info, sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSealed, err)
	}
	var found map[string]Found
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSealed, err)
	}
	return found, nil
}

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }
