package scram

import (
	"unicode/utf8"

	"github.com/xdg-go/stringprep"
	"golang.org/x/text/unicode/norm"
)

// prohibited are the characters that make PostgreSQL give up on SASLprep: the
// prohibited output of RFC 4013 and what Unicode 3.2 had not assigned.
var prohibited = []stringprep.Set{
	stringprep.TableA1, stringprep.TableC1_2, stringprep.TableC2_1, stringprep.TableC2_2,
	stringprep.TableC3, stringprep.TableC4, stringprep.TableC5, stringprep.TableC6,
	stringprep.TableC7, stringprep.TableC8, stringprep.TableC9,
}

// Prepare normalises a password as PostgreSQL's pg_saslprep does
// (src/common/saslprep.c): ASCII stays as it is, and so does what SASLprep (RFC
// 4013) would refuse, because PostgreSQL then takes the bytes as they come. It
// differs from the RFC in one thing: what is prohibited is looked for before
// the normalisation, not after it.
func Prepare(password string) string {
	if ascii(password) || !utf8.ValidString(password) {
		return password
	}
	mapped := mapped(password)
	if len(mapped) == 0 || refused(mapped) {
		return password
	}
	return norm.NFKC.String(string(mapped))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// mapped makes every kind of space a plain one and drops what RFC 3454 maps to
// nothing.
func mapped(s string) []rune {
	var out []rune
	for _, r := range s {
		switch {
		case stringprep.TableC1_2.Contains(r):
			out = append(out, ' ')
		case dropped(r):
		default:
			out = append(out, r)
		}
	}
	return out
}

func dropped(r rune) bool {
	_, ok := stringprep.TableB1.Map(r)
	return ok
}

// refused says whether SASLprep does not take the characters: a prohibited one,
// or directions of writing that are mixed.
func refused(runes []rune) bool {
	right, left := false, false
	for _, r := range runes {
		for _, set := range prohibited {
			if set.Contains(r) {
				return true
			}
		}
		right = right || stringprep.TableD1.Contains(r)
		left = left || stringprep.TableD2.Contains(r)
	}
	ends := stringprep.TableD1.Contains(runes[0]) && stringprep.TableD1.Contains(runes[len(runes)-1])
	return right && (left || !ends)
}
