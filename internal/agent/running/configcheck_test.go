package running

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/postgres"
)

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	refused := &postgres.RejectedError{Words: "no"}
	for name, c := range map[string]struct {
		answer error
		known  bool
		err    error
		asked  int
	}{
		"it is taken":                 {nil, true, nil, 1},
		"it is refused":               {refused, true, refused, 1},
		"PostgreSQL has said nothing": {errors.New("signal: killed"), false, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked, then := 0, 0
				check := func() error {
					asked++
					time.Sleep(time.Minute)
					return c.answer
				}
				var outcomes configCheck
				for range 3 {
					if known, err := outcomes.outcome("1", check, func() { then++ }); known || err != nil {
						t.Errorf("while PostgreSQL is asked: %v, %v", known, err)
					}
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if then != 1 {
					t.Errorf("the server was looked at %d times after the check", then)
				}
				known, err := outcomes.outcome("1", check, func() { then++ })
				synctest.Wait()
				if known != c.known || !errors.Is(err, c.err) || asked != c.asked {
					t.Errorf("%v, %v after %d questions; want %v, %v after %d",
						known, err, asked, c.known, c.err, c.asked)
				}
				if known, _ := outcomes.outcome("2", check, func() {}); known {
					t.Error("another configuration needs no question")
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}
