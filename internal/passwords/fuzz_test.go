package passwords

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Whatever a Pod leaves as its message: only what was sealed for this operator is taken.
func FuzzMessage(f *testing.F) {
	recipient, err := NewRecipient(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		f.Fatal(err)
	}
	found := map[string]Found{"a": {Password: "pencil"}, "b": {Problem: Empty}}
	message, err := Seal(recipient.Public(), found)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Add("")
	f.Add(message[:40])
	f.Fuzz(func(t *testing.T, text string) {
		opened, err := recipient.Open(text)
		switch {
		case err != nil && !errors.Is(err, ErrNotSealed):
			t.Errorf("the error is %v", err)
		case err == nil && !reflect.DeepEqual(opened, found):
			t.Errorf("%q is opened as %v", text, opened)
		}
	})
}

// A Secret of a user: a password that is taken fits into a connection string and a line of a file.
func FuzzSecret(f *testing.F) {
	for _, text := range []string{"pencil\n", "a\nb", "\r\n", "\x00", "\xff", strings.Repeat("x", MaxLength+1)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, Key), text, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := readOne(folder)
		if err != nil {
			t.Fatal(err)
		}
		p := found.Password
		if (p == "") != (found.Problem != "") || strings.ContainsAny(p, "\x00\n\r") || len(p) > MaxLength {
			t.Errorf("%q is %+v", text, found)
		}
	})
}
