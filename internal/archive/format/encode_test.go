package format

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"filippo.io/age"
)

func testContents() map[string][]byte {
	noise := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	return map[string][]byte{
		"empty": {}, "one byte": {7}, "zeros": make([]byte, 3<<20), "what can't be compressed": noise,
		"text": bytes.Repeat([]byte("a row of a table, "), 100000),
	}
}

func testKey(t *testing.T) (secret, recipient string) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return key.String(), key.Recipient().String()
}

func mustSeal(t *testing.T, recipient string, content []byte) (*Encoder, []byte) {
	t.Helper()
	s, err := NewEncoder(recipient)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := s.Encode(content)
	if err != nil {
		t.Fatal(err)
	}
	return s, sealed
}

func open(keys, name string, sealed []byte) ([]byte, error) {
	o, err := NewDecoder(keys)
	if err != nil {
		return nil, err
	}
	r, err := o.Decode(name, bytes.NewReader(sealed))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestSealAndOpen(t *testing.T) {
	secret, recipient := testKey(t)
	for name, content := range testContents() {
		for kind, to := range map[string]string{"compressed": "", "encrypted": recipient} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s, sealed := mustSeal(t, to, content)
				got, err := open(secret, s.Name("x"), sealed)
				if err != nil || !bytes.Equal(got, content) {
					t.Fatalf("%d bytes of %d came back: %v", len(got), len(content), err)
				}
			})
		}
	}
}

func TestSealedByOthersPrograms(t *testing.T) {
	secret, recipient := testKey(t)
	for _, program := range []string{"zstd", "age"} {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			key := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
				t.Fatal(err)
			}
			for name, content := range testContents() {
				_, sealed := mustSeal(t, map[string]string{"age": recipient}[program], content)
				command := exec.CommandContext(t.Context(), "zstd", "-dc")
				if program == "age" {
					command = exec.CommandContext(t.Context(), "bash", "-c", `age -d -i "$0" | zstd -dc`, key)
				}
				command.Stdin = bytes.NewReader(sealed)
				got, err := command.Output()
				if err != nil || !bytes.Equal(got, content) {
					t.Errorf("%s: %d bytes of %d: %v", name, len(got), len(content), err)
				}
			}
		})
	}
}

func TestSealedOneAfterAnother(t *testing.T) {
	var sealed, plain []byte
	for _, content := range testContents() {
		_, piece := mustSeal(t, "", content)
		sealed, plain = append(sealed, piece...), append(plain, content...)
	}
	if got, err := open("", "x.zst", sealed); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("%d bytes of %d: %v", len(got), len(plain), err)
	}
}

func TestSealedAndAltered(t *testing.T) {
	secret, recipient := testKey(t)
	other, _ := testKey(t)
	content := testContents()["text"]
	for kind, to := range map[string]string{"compressed": "", "encrypted": recipient} {
		s, sealed := mustSeal(t, to, content)
		for name, change := range map[string]func([]byte) []byte{
			"a bit":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
			"the end": func(b []byte) []byte { return b[:len(b)-1] },
			"all":     func(b []byte) []byte { return b[:len(b)/3] },
		} {
			if _, err := open(secret, s.Name("x"), change(bytes.Clone(sealed))); err == nil {
				t.Errorf("%s, %s is gone: no error", kind, name)
			}
		}
	}
	s, sealed := mustSeal(t, recipient, content)
	for name, keys := range map[string]string{"no key": "", "another key": other, "no key of age": "secret"} {
		if _, err := open(keys, s.Name("x"), sealed); err == nil {
			t.Errorf("%s opens it", name)
		}
	}
	if _, err := NewEncoder("secret"); err == nil {
		t.Error("a recipient that is none")
	}
	if _, err := open("", "x", sealed); err == nil {
		t.Error("a name without endings")
	}
}

// A key is tried before a copy is made.
func TestTryKey(t *testing.T) {
	key, recipient := testKey(t)
	other, _ := testKey(t)
	for name, c := range map[string]struct {
		recipient, key string
		ok             bool
	}{
		"its own key":          {recipient, key, true},
		"one of several":       {recipient, other + "\n" + key, true},
		"another key":          {recipient, other, false},
		"no key":               {recipient, "", false},
		"nothing is encrypted": {"", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			encoder, err := NewEncoder(c.recipient)
			if err != nil {
				t.Fatal(err)
			}
			decoder, err := NewDecoder(c.key)
			if err != nil {
				t.Fatal(err)
			}
			if err := encoder.Try(decoder); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrKey) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What is read from a bucket never needs more memory than the object may have content.
func FuzzDecode(f *testing.F) {
	encoder, err := NewEncoder("")
	if err != nil {
		f.Fatal(err)
	}
	for _, length := range []int{100, 4096, 1 << 20} {
		sealed, err := encoder.Encode(bytes.Repeat([]byte("x"), length))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(sealed)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		const limit = 4096
		content, err := Decode(&Decoder{}, "x.zst", stored, limit)
		if err == nil && len(content) > limit {
			t.Errorf("it has %d bytes", len(content))
		}
	})
}
