package take

import (
	"testing"
)

type recordingSink struct{ text string }

func (s *recordingSink) archive(name, location string) error {
	s.text += name + "@" + location
	return nil
}
func (s *recordingSink) manifest() error           { s.text += "manifest"; return nil }
func (s *recordingSink) data(content []byte) error { s.text += string(content); return nil }

func TestMessagesOfABaseBackup(t *testing.T) {
	for name, c := range map[string]struct{ message, want string }{
		"the data directory":   {"nbase.tar\x00\x00", "base.tar@"},
		"a tablespace":         {"n16400.tar\x00/fast\x00", "16400.tar@/fast"},
		"data":                 {"dxyz", "xyz"},
		"the manifest":         {"m", "manifest"},
		"progress":             {"p12345678", ""},
		"progress cut off":     {"p1234", "error"},
		"a name with a folder": {"n../base.tar\x00\x00", "error"},
		"a name cut off":       {"nbase.tar\x00", "error"},
		"of no known type":     {"x", "error"},
		"nothing":              {"", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			to := &recordingSink{}
			if err := chunk([]byte(c.message), to); err != nil {
				to.text = "error"
			}
			if to.text != c.want {
				t.Errorf("it is taken for %q, expected %q", to.text, c.want)
			}
		})
	}
}
