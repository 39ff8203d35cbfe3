package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// screen is where the demo is told. It has colours where it is a terminal and
// NO_COLOR (no-color.org) is not set.
type screen struct {
	out      io.Writer
	coloured bool
}

func newScreen(file *os.File) screen {
	info, err := file.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return screen{out: file, coloured: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// chapter begins a part of the story.
func (s screen) chapter(format string, args ...any) {
	fmt.Fprintln(s.out, "\n"+s.paint("1;36", "▶ "+fmt.Sprintf(format, args...)))
}

func (s screen) line(format string, args ...any) { fmt.Fprintf(s.out, "  "+format+"\n", args...) }

// output shows what a command printed, with the command.
func (s screen) output(command, text string) {
	s.line("%s", s.paint("2", "$ "+command))
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		s.line("%s", l)
	}
}

func (s screen) paint(code, text string) string {
	if !s.coloured {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
