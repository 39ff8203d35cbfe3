package cluster

import (
	"bytes"
	"fmt"
	"testing"
)

func TestTheLastLineIsTheMessage(t *testing.T) {
	var out bytes.Buffer
	told := &told{Writer: &out}
	fmt.Fprintf(told, "first\nsecond")
	fmt.Fprintf(told, " line\n")
	if told.last() != "second line" || out.String() != "first\nsecond line\n" {
		t.Errorf("it is %q of %q", told.last(), out.String())
	}
}
