package show

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"
)

func TestTextJSONAndYAMLAreOfOneValue(t *testing.T) {
	value := struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{"1.2.3", "go1", "linux/amd64"}
	text := func(out io.Writer) error { _, err := fmt.Fprintln(out, "toban", value.Version); return err }
	for format, want := range map[string]string{
		"":     "toban 1.2.3\n",
		"json": "{\n  \"version\": \"1.2.3\",\n  \"go\": \"go1\",\n  \"platform\": \"linux/amd64\"\n}\n",
		"yaml": "go: go1\nplatform: linux/amd64\nversion: 1.2.3\n",
	} {
		var out bytes.Buffer
		if err := (&Output{format}).Show(&out, value, text); err != nil || out.String() != want {
			t.Errorf("as %q it is %q, %v", format, out.String(), err)
		}
	}
	if err := (&Output{"xml"}).Show(io.Discard, value, text); err == nil {
		t.Error("it takes xml")
	}
}

// escaping is a writer in front of another one, as that of all verbs is.
type escaping struct{ io.Writer }

func (e escaping) Raw() io.Writer { return e.Writer }

// A terminal is known behind what escapes text, and what is our own still reaches it.
func TestATerminalBehindEscapes(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if !IsTerminal(escaping{terminal}) {
		t.Error("it is not known")
	}
	var file bytes.Buffer
	for what, right := range map[string]bool{
		"a program that has the terminal": Passed(escaping{terminal}, &Terminal{}) == terminal,
		"one that has it not":             Passed(escaping{terminal}, nil) == escaping{terminal},
		"one whose output is a file's":    Passed(escaping{&file}, nil) == &file,
	} {
		if !right {
			t.Errorf("the output of %s is passed on to something else", what)
		}
	}
	Clear(escaping{&file})
	if IsTerminal(escaping{&file}) || file.Len() > 0 {
		t.Errorf("a file is taken for a terminal, and has %q", &file)
	}
}
