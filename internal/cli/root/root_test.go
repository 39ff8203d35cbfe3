package root

import (
	"errors"
	"testing"
)

func TestAnExitCodeIsKept(t *testing.T) {
	var ended *ExitError
	if err := errors.Join(&ExitError{3}, nil); !errors.As(err, &ended) || ended.Code != 3 {
		t.Errorf("it is %v", err)
	}
}
