package take

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// What a server says of its own damage is told from what else it says: only then another one is copied.
func TestWhatAServerSaysOfDamage(t *testing.T) {
	for notice, want := range map[string]bool{
		`checksum verification failed in file "./base/5/16389", block 0: calculated 8A6C but expected 9F21`: true,
		"file \"./base/5/16389\" has a total of 7 checksum verification failures":                           false,
		"some files are newer than others": false,
	} {
		if got := damage(notice); got != want {
			t.Errorf("%q counts as damage: %v", notice, got)
		}
	}
	for code, want := range map[string]error{
		"XX001": ErrDamaged, "58030": ErrDamaged, "55000": nil, "53100": nil, "57P01": nil,
	} {
		if err := named(&pgconn.PgError{Code: code, Message: "x"}); errors.Is(err, ErrDamaged) != (want != nil) {
			t.Errorf("%s is %v", code, err)
		}
	}
	promoted := named(&pgconn.PgError{Code: "55000", Message: "the standby was promoted during online backup"})
	if !errors.Is(promoted, ErrPromoted) || errors.Is(promoted, ErrDamaged) {
		t.Errorf("a promotion is %v", promoted)
	}
}
