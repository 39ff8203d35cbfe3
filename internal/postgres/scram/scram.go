// Package scram makes the form in which PostgreSQL stores a password: a
// SCRAM-SHA-256 verifier (RFC 5802, RFC 7677). It is made on our side, so that
// the password itself is in no statement and thereby in no log of a server.
// It depends on nothing of Toban's.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// PostgreSQL's own defaults (src/include/common/scram-common.h).
const (
	iterations = 4096
	saltLength = 16
	scheme     = "SCRAM-SHA-256"
)

// mostIterations is what a stored verifier may ask for: some 50 ms. A role may store one of its own making for itself,
// of up to 2^31 of them, and whoever compares it with a password would compute for a quarter of an hour.
const mostIterations = 100_000

// Verifier is what pg_authid.rolpassword holds for a password, with a new salt.
func Verifier(password string) (string, error) {
	salt := make([]byte, saltLength)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("make a salt: %w", err)
	}
	return verifier(password, salt, iterations)
}

// Literal is a verifier of a password as a statement has it, in quotes.
func Literal(password string) (string, error) {
	verifier, err := Verifier(password)
	if err != nil {
		return "", err
	}
	// It has letters, digits and +/=$:- only, so it needs no quoting.
	if strings.ContainsAny(verifier, `'\`) {
		return "", errors.New("the verifier of the password is malformed")
	}
	return "'" + verifier + "'", nil
}

// IsVerifier says that a text has the form of a verifier, and nothing in it that a statement would have to quote.
func IsVerifier(text string) bool {
	_, _, ok := parse(text)
	return ok && !strings.ContainsAny(text, `'\`)
}

// Matches says whether a stored verifier is one of this password. Anything that
// is no SCRAM-SHA-256 verifier, such as an MD5 hash, does not match, nor does one
// that it would take long to compare.
func Matches(stored, password string) bool {
	salt, count, ok := parse(stored)
	if !ok {
		return false
	}
	made, err := verifier(password, salt, count)
	return err == nil && subtle.ConstantTimeCompare([]byte(made), []byte(stored)) == 1
}

func verifier(password string, salt []byte, count int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, Prepare(password), salt, count, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("salt a password: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	server := mac(salted, "Server Key")
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s$%d:%s$%s:%s", scheme, count, encode(salt), encode(stored[:]), encode(server)), nil
}

func mac(key []byte, message string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	return h.Sum(nil)
}

// parse reads the salt and the iterations of SCHEME$ITERATIONS:SALT$STORED:SERVER.
func parse(stored string) (salt []byte, count int, ok bool) {
	parts := strings.Split(stored, "$")
	if len(parts) != 3 || parts[0] != scheme {
		return nil, 0, false
	}
	number, text, _ := strings.Cut(parts[1], ":")
	count, err := strconv.Atoi(number)
	if err != nil || count < 1 || count > mostIterations {
		return nil, 0, false
	}
	salt, err = base64.StdEncoding.DecodeString(text)
	return salt, count, err == nil
}
