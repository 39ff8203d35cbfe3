package show

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// Terminal is a person's terminal while a program in a Pod has it: what is typed goes there, and each new size.
type Terminal struct {
	file  *os.File
	was   *term.State
	sizes chan os.Signal
	done  chan struct{}
	told  bool
}

// IsTerminal says that a stream is a person's terminal.
func IsTerminal(stream any) bool {
	_, ok := terminalOf(stream)
	return ok
}

// Passed is where a program in a Pod writes: past the escapes of text where it has the terminal for itself, and into a
// file or another program.
func Passed(out io.Writer, terminal *Terminal) io.Writer {
	if terminal == nil && IsTerminal(out) {
		return out
	}
	return raw(out)
}

// raw is what a stream writes to that escapes text (root.Escaped).
func raw(out io.Writer) io.Writer {
	if escaped, is := out.(interface{ Raw() io.Writer }); is {
		return escaped.Raw()
	}
	return out
}

// Clear empties a person's terminal; another stream stays as it is.
func Clear(out io.Writer) {
	if terminal, is := terminalOf(out); is {
		fmt.Fprint(terminal, "\x1b[H\x1b[2J") // ECMA-48: home, and erase the page
	}
}

// terminalOf is the file of a stream that is a person's terminal; it says so.
func terminalOf(stream any) (*os.File, bool) {
	if out, writes := stream.(io.Writer); writes {
		stream = raw(out)
	}
	file, ok := stream.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// OpenTerminal gives a terminal to a program, nil where the standard input or output is none. Close gives it back.
func OpenTerminal(in io.Reader, out io.Writer) (*Terminal, error) {
	file, reads := terminalOf(in)
	if _, writes := terminalOf(out); !reads || !writes {
		return nil, nil //nolint:nilnil // no terminal is a usual answer
	}
	was, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, fmt.Errorf("give the terminal to the program: %w", err)
	}
	t := &Terminal{file: file, was: was, sizes: make(chan os.Signal, 1), done: make(chan struct{})}
	notifyResize(t.sizes)
	return t, nil
}

// Close gives the terminal back as it was.
func (t *Terminal) Close() error {
	signal.Stop(t.sizes)
	close(t.done)
	return term.Restore(int(t.file.Fd()), t.was)
}

// Next is the size of the terminal: at once, and then whenever it has changed; nil at the end.
func (t *Terminal) Next() *remotecommand.TerminalSize {
	if t.told {
		select {
		case <-t.done:
			return nil
		case <-t.sizes:
		}
	}
	t.told = true
	width, height, err := term.GetSize(int(t.file.Fd()))
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)} //nolint:gosec // windows are small
}

// ConfirmName asks for the name of a SampleDB on the terminal. Nothing there, as in a script, is no confirmation.
func ConfirmName(ctx context.Context, in io.Reader, out io.Writer, name string) error {
	fmt.Fprintf(out, "To go on, type the name of the SampleDB: ")
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		said <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return errors.New("it was not confirmed, and nothing was done")
	case answer := <-said:
		if answer != name {
			return errors.New("it was not confirmed, and nothing was done; --yes confirms it without being asked")
		}
		return nil
	}
}
