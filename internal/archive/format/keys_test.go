package format

import (
	"bytes"
	"slices"
	"testing"
)

// A file of age has several keys. All of them read, and which of them are there can be told without them.
func TestSeveralKeys(t *testing.T) {
	var secrets, recipients [3]string
	for i := range secrets {
		secrets[i], recipients[i] = testKey(t)
	}
	keys := "# created: long ago\n" + secrets[0] + "\n\n" + secrets[1] + "\n"
	got, err := Recipients(keys)
	if err != nil || !slices.Equal(got, recipients[:2]) {
		t.Errorf("the recipients are %v, %v", got, err)
	}
	decoder, err := NewDecoder(keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, readable := range []bool{true, true, false} {
		e, err := NewEncoder(recipients[i])
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := e.Encode([]byte("content"))
		if err != nil {
			t.Fatal(err)
		}
		content, err := Decode(decoder, e.Name("x"), sealed, 100)
		if (err == nil) != readable || readable && !bytes.Equal(content, []byte("content")) {
			t.Errorf("key %d: %q, %v", i, content, err)
		}
	}
	if _, err := Recipients("no key"); err == nil {
		t.Error("no key is taken for one")
	}
}
