package take

import (
	"strings"
	"testing"

	"toban.dev/internal/archive/format"
)

// What a server sends as a base backup: tar files have names that lead nowhere else.
func FuzzStream(f *testing.F) {
	for _, message := range []string{"nbase.tar\x00\x00", "n16400.tar\x00/fast\x00", "dxyz", "m", "p12345678", "x"} {
		f.Add([]byte(message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		to := &recordingSink{}
		if err := chunk(message, to); err != nil && to.text != "" {
			t.Errorf("%q is %q, and an error: %v", message, to.text, err)
		}
		name, _, begun := strings.Cut(to.text, "@")
		if begun && message[0] == 'n' && !format.TarName.MatchString(name) {
			t.Errorf("an archive %q begins", name)
		}
	})
}
