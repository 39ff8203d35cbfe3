package passwords

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func recipient(t *testing.T, seed byte) Recipient {
	t.Helper()
	r, err := NewRecipient(bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOnlyTheRecipientOpens(t *testing.T) {
	found := map[string]Found{"foodb-password": {Password: "mypassword"}, "reader": {Problem: SecretMissing}}
	message, err := Seal(recipient(t, 1).Public(), found)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(message, "mypassword") {
		t.Error("the password is in the message as it is")
	}
	got, err := recipient(t, 1).Open(message) // the same seed is the same key, after a restart too
	if err != nil || !maps.Equal(got, found) {
		t.Errorf("opened %v, %v, want %v", got, err, found)
	}
	if _, err := recipient(t, 2).Open(message); !errors.Is(err, ErrNotSealed) {
		t.Errorf("another one opened it: %v", err)
	}
	flipped := "A" + message[1:]
	if flipped == message {
		flipped = "B" + message[1:]
	}
	for _, wrong := range []string{"", "panic: no such file", flipped} {
		if _, err := recipient(t, 1).Open(wrong); !errors.Is(err, ErrNotSealed) {
			t.Errorf("%.20q was opened: %v", wrong, err)
		}
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	found := map[string]Found{}
	for _, name := range strings.Fields("a b c d e f g h i j k l m n o p") {
		found[name] = Found{Password: strings.Repeat("x", MaxLength)}
	}
	if _, err := Seal(recipient(t, 1).Public(), found); err == nil ||
		!strings.Contains(err.Error(), "together too long") {
		t.Errorf("got %v", err)
	}
}

func TestRead(t *testing.T) {
	folder := t.TempDir()
	write := func(secret string, files map[string]string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(folder, secret), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, secret, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("good", map[string]string{Key: "mypassword"})
	write("line", map[string]string{Key: "mypassword\n"})
	write("spaces", map[string]string{Key: " pass wörd 当番 "})
	write("absent", nil)
	write("mounted-absent", map[string]string{"..data": ""})
	write("other", map[string]string{"password": "x"})
	write("empty", map[string]string{Key: ""})
	write("nul", map[string]string{Key: "a\x00b"})
	write("lines", map[string]string{Key: "a\nb"})
	write("bytes", map[string]string{Key: "\xff\xfe"})
	write("long", map[string]string{Key: strings.Repeat("x", MaxLength+1)})
	want := map[string]Found{
		"good": {Password: "mypassword"}, "line": {Password: "mypassword"}, "spaces": {Password: " pass wörd 当番 "},
		"absent": {Problem: SecretMissing}, "mounted-absent": {Problem: SecretMissing}, "other": {Problem: KeyMissing},
		"empty": {Problem: Empty}, "nul": {Problem: Malformed}, "lines": {Problem: Malformed},
		"bytes": {Problem: Malformed}, "long": {Problem: TooLong},
	}
	got, err := Read(folder)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("read %v, %v, want %v", got, err, want)
	}
	before, err := Digest(got)
	if err != nil {
		t.Fatal(err)
	}
	got["good"] = Found{Password: "another"}
	if after, err := Digest(got); err != nil || after == before {
		t.Errorf("a changed password has the same digest %s, %v", after, err)
	}
}
