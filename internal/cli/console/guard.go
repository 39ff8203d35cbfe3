package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
)

// policy is what a page of ours may do: nothing but with this server, and no text ever becomes HTML or a script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// newToken is a secret that nobody guesses.
func newToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// guard lets only those in who know the token, from this machine, and from a page of ours.
//
// The token is the first part of the path. A cookie would be sent to every server on this machine's loopback,
// whatever its port; and neither a module nor a stream of events can be asked for with a header.
type guard struct {
	// host is that of the URL. Another name that leads here, as one of an attacker's, is refused.
	host, token string
	// once is a path that leads to the URL one single time: it is given to the browser by a command line, which
	// others on this machine can read.
	once string
	mu   sync.Mutex
	next http.Handler
}

func newGuard(host string, next http.Handler) *guard {
	return &guard{host: host, token: newToken(), once: newToken(), next: next}
}

// url is that of the console.
func (g *guard) url() string { return "http://" + g.host + "/" + g.token + "/" }

// onceURL leads there one single time.
func (g *guard) onceURL() string { return "http://" + g.host + "/once/" + g.once }

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	switch token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); {
	case r.Host != g.host:
		refuse(w, "this server is not asked by the name "+r.Host+": open the URL that the command has printed")
	case !g.fromUs(r):
		refuse(w, "another page may not ask this server: open the URL that the command has printed")
	case token == "once" && g.takeOnce(rest):
		http.Redirect(w, r, "/"+g.token+"/", http.StatusSeeOther)
	case !same(token, g.token):
		refuse(w, "the token is missing or not that of this console: open the URL that the command has printed")
	default:
		http.StripPrefix("/"+g.token, g.next).ServeHTTP(w, r)
	}
}

// fromUs says that a request was made by a page of ours or by no page at all. A browser names the page with what it
// writes, and says how a request has come about. To follow a link to the console from elsewhere is no harm: it takes
// the token.
func (g *guard) fromUs(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+g.host {
		return false
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !reads && r.Header.Get("Origin") == "" {
		return false
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return true
	default:
		return reads && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	}
}

// takeOnce says that this is the path for one single time, which it then was.
func (g *guard) takeOnce(path string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.once == "" || !same(path, g.once) {
		return false
	}
	g.once = ""
	return true
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func refuse(w http.ResponseWriter, why string) { http.Error(w, why, http.StatusForbidden) }

func headers(h http.Header) {
	for key, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer", // the token is in the URL
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	} {
		h.Set(key, value)
	}
}
