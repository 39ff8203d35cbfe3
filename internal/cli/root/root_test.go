package root

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What a client has called itself, or an object's message has, does nothing to the terminal of who reads of it.
func TestATerminalObeysNothingThatAVerbPrints(t *testing.T) {
	const name = "a\x1b]0;title\a\r\b\x7f\u009b2J\u202e\u2066b\x9b"
	const shown = `a\u001b]0;title\u0007\u000d\u0008\u007f\u009b2J\u202e\u2066b\x9b`
	verb := &cobra.Command{Use: "x", RunE: func(c *cobra.Command, _ []string) error {
		fmt.Fprintln(c.OutOrStdout(), "user", name)
		fmt.Fprintln(c.ErrOrStderr(), "waits for", name)
		return errors.New("there is no " + name)
	}}
	command := New("1", verb)
	var out, said bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&said)
	command.SetArgs([]string{"x"})
	if code := Run(t.Context(), command, func(error) int { return 7 }); code != 7 {
		t.Errorf("it has ended with %d", code)
	}
	if want := "user " + shown + "\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", &out, want)
	}
	if want := "waits for " + shown + "\ntoban: there is no " + shown + "\n"; said.String() != want {
		t.Errorf("it says %q, want %q", &said, want)
	}
}

// A stream from a Pod comes in pieces, which end anywhere.
func TestACharacterThatComesInPieces(t *testing.T) {
	const text = "当番\u202e\U0001F600\x1b\xe5\xbd"
	for size := 1; size < 6; size++ {
		var got bytes.Buffer
		out := &escaped{to: &got}
		for piece := range slices.Chunk([]byte(text), size) {
			if n, err := out.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		out.end()
		if want := "当番\\u202e\U0001F600\\u001b\\xe5\\xbd"; got.String() != want {
			t.Errorf("in pieces of %d bytes it is %q, want %q", size, &got, want)
		}
	}
}

// JSON stays what it was for who reads it as such.
func TestAProgramReadsWhatWasMeant(t *testing.T) {
	const name = "a\x1b\x7f\u009b\u202e当番"
	var out bytes.Buffer
	if err := json.NewEncoder(Escaped(&out)).Encode(name); err != nil {
		t.Fatal(err)
	}
	var got string
	err := json.Unmarshal(out.Bytes(), &got)
	if err != nil || got != name || strings.ContainsRune(out.String(), '\u202e') {
		t.Errorf("it reads %q of %q: %v", got, &out, err)
	}
}

func TestTextStaysAsItIs(t *testing.T) {
	for _, text := range []string{"", "a\tb\n", "当番", "caf\u00e9", "cafe\u0301", "\u00a0\U0001F600", "שלום", "\ufffd"} {
		if got := string(EscapedText([]byte(text))); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestAnExitCodeIsKept(t *testing.T) {
	var ended *ExitError
	if err := errors.Join(&ExitError{3}, nil); !errors.As(err, &ended) || ended.Code != 3 {
		t.Errorf("it is %v", err)
	}
}
