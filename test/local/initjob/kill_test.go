package initjob_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/work/initjob"
)

// child is what a killed process has to know.
type child struct {
	Plan      initjob.Plan
	Port      uint16
	Cert, Key string
	// Stop is the number of points after which it waits to be killed.
	Stop int
}

const childVariable = "TOBAN_TEST_INIT_CHILD"

// TestMain is the init Job's process when this binary is called as one.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childVariable); ok {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runChild(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	authority, err := pki.ParseAuthority([]byte(c.Cert), []byte(c.Key))
	if err != nil {
		return err
	}
	leaf, err := authority.Issue(naming.IdentityInit, nil, time.Now())
	if err != nil {
		return err
	}
	roots, err := pki.Pool(c.Cert)
	if err != nil {
		return err
	}
	passed := 0
	job := initjob.Job{
		Plan: c.Plan, Port: c.Port, Password: "合言葉", Patience: time.Minute,
		TLS: pki.ClientTLS(leaf.TLS, roots, naming.IdentityInstance),
		Log: slog.New(slog.DiscardHandler),
		At: func(point string) {
			fmt.Println(point)
			if passed++; passed == c.Stop {
				select {} // until it is killed
			}
		},
	}
	return job.Run(context.Background())
}

// Killed at each of its points and run again, the work comes out the same.
func TestKilledAnywhereAndRunAgain(t *testing.T) {
	s := start(t)
	p := plan(t, table, more)
	points := s.child(t, p, 0)
	want := []string{
		"role", "database", "record", "extension pgcrypto",
		"in ConfigMap schema, key 1.sql", "ConfigMap schema, key 1.sql",
		"in ConfigMap schema, key 2.sql", "ConfigMap schema, key 2.sql",
	}
	if !slices.Equal(points, want) {
		t.Fatalf("the points are %q, want %q", points, want)
	}
	for stop := 1; stop <= len(points); stop++ {
		t.Run("after "+points[stop-1], func(t *testing.T) {
			s.Do(t, "postgres", "DROP DATABASE IF EXISTS shop WITH (FORCE)")
			s.Do(t, "postgres", "DROP ROLE IF EXISTS keeper")
			if got := s.child(t, p, stop); len(got) != stop {
				t.Fatalf("it passed %q, want %d points", got, stop)
			}
			s.child(t, p, 0)
			if n := s.Ask(t, "shop", "SELECT count(*) FROM customers"); n != "2" {
				t.Errorf("customers has %s rows, want 2", n)
			}
		})
	}
}

// child runs the work in a process, kills it at a point (0: not at all), and
// returns the points it passed.
func (s *server) child(t *testing.T, p initjob.Plan, stop int) []string {
	t.Helper()
	key, err := s.Authority.KeyPEM()
	must(t, err)
	text, err := json.Marshal(child{
		Plan: p, Port: s.Port, Cert: string(s.Authority.CertPEM()), Key: string(key), Stop: stop,
	})
	must(t, err)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+string(text))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	var points []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		points = append(points, lines.Text())
		if len(points) == stop {
			must(t, c.Process.Kill())
		}
	}
	if err := c.Wait(); err != nil && stop == 0 {
		t.Fatal(err)
	}
	return points
}

// The server goes away in the middle of a source: the same process starts again
// with the server, and the source has run once.
func TestTheServerCrashesInTheMiddle(t *testing.T) {
	s := start(t)
	j := s.job(t, plan(t, table, more))
	crashed := false
	j.At = func(point string) {
		if point == "in ConfigMap schema, key 2.sql" && !crashed {
			crashed = true
			s.Down(t)
			s.Up(t)
		}
	}
	must(t, j.Run(t.Context()))
	if n := s.Ask(t, "shop", "SELECT count(*) FROM customers"); n != "2" || !crashed {
		t.Errorf("customers has %s rows, want 2", n)
	}
}

// Two at once, as when a node is lost and its Pod is still running there.
func TestTwoAtOnce(t *testing.T) {
	s := start(t)
	p := plan(t, table, more)
	done := make(chan error)
	for range 2 {
		j := s.job(t, p)
		go func() { done <- j.Run(context.Background()) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := s.Ask(t, "shop", "SELECT count(*) FROM customers"); n != "2" {
		t.Errorf("customers has %s rows, want 2", n)
	}
}
