package scram

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

// The exchange of RFC 7677, section 3: the server's signature proves the server
// key, and with it the whole way from the password.
func TestVerifierMakesTheSignatureOfRFC7677(t *testing.T) {
	const (
		salt    = "W22ZaJ0SNY7soEsUEjb6gQ=="
		nonce   = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
		message = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=" + nonce + ",s=" + salt + ",i=4096,c=biws,r=" + nonce
		want    = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
	)
	raw, err := base64.StdEncoding.DecodeString(salt)
	if err != nil {
		t.Fatal(err)
	}
	made, err := verifier("pencil", raw, 4096)
	if err != nil {
		t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(made[strings.LastIndexByte(made, ':')+1:])
	if err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("server signature = %s, want %s", got, want)
	}
}

func TestMatches(t *testing.T) {
	stored, err := Verifier("pencil")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		stored, password string
		want             bool
	}{
		"the password it was made of":  {stored, "pencil", true},
		"another password":             {stored, "Pencil", false},
		"no password at all":           {stored, "", false},
		"an MD5 hash is no verifier":   {"md5d41d8cd98f00b204e9800998ecf8427e", "pencil", false},
		"a role without a password":    {"", "pencil", false},
		"iterations that are no count": {"SCRAM-SHA-256$x:AAAA$a:b", "pencil", false},
		"iterations without end":       {"SCRAM-SHA-256$2147483647:AAAA$a:b", "pencil", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Matches(c.stored, c.password); got != c.want {
				t.Errorf("Matches(%q, %q) = %v, want %v", c.stored, c.password, got, c.want)
			}
		})
	}
}

func TestEveryVerifierHasASaltOfItsOwn(t *testing.T) {
	first, err := Verifier("pencil")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Verifier("pencil")
	if err != nil {
		t.Fatal(err)
	}
	if first == second {
		t.Error("two verifiers of one password are the same: the salt is not random")
	}
}

// What the server itself makes of the same passwords is compared in test/local/initjob.
func TestPrepare(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"ASCII stays":                              {"pencil \x07", "pencil \x07"},
		"a soft hyphen is dropped":                 {"I\u00adX", "IX"},
		"a Roman numeral becomes letters":          {"\u2168", "IX"},
		"a letter and its accent become one":       {"cafe\u0301", "café"},
		"a wide space becomes a plain one":         {"合\u3000言葉", "合 言葉"},
		"a zero-width space is a space":            {"é\u200bx", "é x"},
		"half-width katakana become full ones":     {"ﾄｳﾊﾞﾝ", "トウバン"},
		"a control character leaves it as it is":   {"cafe\u0301\x07", "cafe\u0301\x07"},
		"an unassigned character leaves it":        {"\U0001F600e\u0301", "\U0001F600e\u0301"},
		"mixed directions leave it":                {"\u0627\u2168\u0628", "\u0627\u2168\u0628"},
		"a right-to-left word that ends in a sign": {"\u06271", "\u06271"},
		"a right-to-left word":                     {"\u0627\u00ad\u0628", "\u0627\u0628"},
		"nothing left":                             {"\u00ad", "\u00ad"},
		"bytes that are no UTF-8 stay":             {"\xff\u2168", "\xff\u2168"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Prepare(c.in); got != c.want {
				t.Errorf("Prepare(%+q) = %+q, want %+q", c.in, got, c.want)
			}
		})
	}
}
