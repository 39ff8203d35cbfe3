package show

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

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
