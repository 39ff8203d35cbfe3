package show

import (
	"bytes"
	"fmt"
	"io"
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
