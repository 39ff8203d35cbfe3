package scram

import (
	"strings"
	"testing"
)

// What a role has stored as its verifier may be of its own making: it never matches unless it is that of the password,
// and comparing never takes long.
func FuzzStored(f *testing.F) {
	made, err := Verifier("pencil")
	if err != nil {
		f.Fatal(err)
	}
	for _, stored := range []string{made, "SCRAM-SHA-256$1:AAAA$a:b", "SCRAM-SHA-256$2147483647:AAAA$a:b",
		"SCRAM-SHA-256$4096:$:", "md5d41d8cd98f00b204e9800998ecf8427e", ""} {
		f.Add(stored, "pencil")
	}
	f.Fuzz(func(t *testing.T, stored, password string) {
		salt, count, ok := parse(stored)
		if !ok {
			return
		}
		if count > mostIterations {
			t.Fatalf("it would take %d iterations", count)
		}
		again, err := verifier(password, salt, min(count, 10)) // the same in less time
		if err != nil {
			t.Fatal(err)
		}
		if matches := count <= 10 && again == stored; count <= 10 && Matches(stored, password) != matches {
			t.Errorf("%q matches %q: %v", stored, password, !matches)
		}
	})
}

// Whatever a password is: its verifier is one of it, and can stand in a statement.
func FuzzPassword(f *testing.F) {
	for _, password := range []string{"pencil", "\u00adI\u00adX", "\u2168", "a\u00a0b", "\xff", "\u0627\u0031", ""} {
		f.Add(password)
	}
	f.Fuzz(func(t *testing.T, password string) {
		literal, err := Literal(password)
		if err != nil || strings.ContainsAny(literal[1:len(literal)-1], `'\`) {
			t.Fatalf("the literal is %s, %v", literal, err)
		}
		if !Matches(literal[1:len(literal)-1], password) {
			t.Errorf("%s is none of %q", literal, password)
		}
	})
}
