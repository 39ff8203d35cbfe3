//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// A SampleDB with three instances comes up; what is written through its Service
// can be read from its standbys.
func TestCreate(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 3))
	db := s.ready("shop")
	if db.Status.Ready != "3/3" || db.Status.Primary == "" || !strings.HasPrefix(db.Status.Version, "17.") {
		t.Errorf("the status is %s, primary %q, version %q", db.Status.Ready, db.Status.Primary, db.Status.Version)
	}
	s.sql("shop", "CREATE TABLE hoge (id serial, name text); INSERT INTO hoge (name) VALUES ('foo'), ('bar')")
	readers := s.access("shop", naming.ReadOnlyService("shop"))
	s.until(func(ctx context.Context) error {
		names, err := readers.Ask(ctx,
			"SELECT string_agg(name, ' ' ORDER BY id) || ' ' || pg_is_in_recovery() FROM hoge")
		if err == nil && names != "foo bar true" {
			err = fmt.Errorf("a standby has %q", names)
		}
		return err
	})
	if err := readers.Patient().Do(s.ctx, "INSERT INTO hoge (name) VALUES ('baz')"); err == nil {
		t.Error("the read-only Service takes writes")
	}
	s.shows("shop")
	s.everyInstanceStreams("shop", 2)
	s.connectionStrings("shop")
	s.labelsArePutRight("shop")
}

// shows looks at what kubectl get SampleDB prints.
func (s *story) shows(name string) {
	s.Helper()
	lines := strings.Split(s.run("get", "SampleDB"), "\n")
	for _, want := range []string{"NAME", "READY", "PRIMARY", "VERSION", "STATUS", "AGE"} {
		if !strings.Contains(lines[0], want) {
			s.Errorf("kubectl get SampleDB lacks the column %s: %s", want, lines[0])
		}
	}
	for _, want := range []string{name, "3/3", name + "-", "17.", "Ready"} {
		if !strings.Contains(lines[1], want) {
			s.Errorf("kubectl get SampleDB lacks %q: %s", want, lines[1])
		}
	}
}

// everyInstanceStreams asks the primary itself.
func (s *story) everyInstanceStreams(name string, standbys int) {
	s.Helper()
	s.until(func(context.Context) error {
		// By its label: the status is the operator's word, and there may be none.
		primary := s.run("get", "pods", "-l", naming.LabelSampleDB+"="+name+","+naming.LabelRole+"=primary",
			"-o", "jsonpath={.items[*].metadata.name}")
		got, err := s.inside(primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
		if err == nil && got != fmt.Sprint(standbys) {
			err = fmt.Errorf("%s standbys stream, want %d", got, standbys)
		}
		return err
	})
}

// labelsArePutRight takes the label of the primary away by hand, and puts it on another Pod: the Service soon leads to
// the primary alone.
func (s *story) labelsArePutRight(name string) {
	s.Helper()
	var db v1.SampleDB
	must(s.T, s.Get(s.ctx, "sampledb/"+name, &db))
	primary, other := db.Status.Primary, name+"-0"
	if primary == other {
		other = name + "-1"
	}
	for what, change := range map[string][]string{
		"the label is taken":      {"label", "pod", primary, naming.LabelRole + "-"},
		"another is labelled too": {"label", "pod", other, naming.LabelRole + "=primary", "--overwrite"},
	} {
		s.run(change...)
		began := time.Now()
		s.until(func(context.Context) error {
			if now := s.run("get", "pods", "-l", naming.LabelSampleDB+"="+name+","+naming.LabelRole+"=primary",
				"-o", "jsonpath={.items[*].metadata.name}"); now != primary {
				return fmt.Errorf("labelled as the primary: %q", now)
			}
			return nil
		})
		took := time.Since(began)
		s.Logf("%s: put right after %s", what, took.Round(10*time.Millisecond))
		if took > 20*time.Second { // a leader looks by itself once a minute: this was not it
			s.Errorf("%s: put right after %s", what, took)
		}
	}
}

// connectionStrings uses the ready-made ones, from a Pod as an application would.
func (s *story) connectionStrings(name string) {
	s.Helper()
	var secret corev1.Secret
	must(s.T, s.Get(s.ctx, "secret/"+naming.AppSecret(name), &secret))
	out, err := s.Kubectl(s.ctx, "exec", name+"-0", "--", "psql",
		string(secret.Data[naming.KeyURI])+"&sslrootcert="+naming.PathRun+"/"+naming.KeyCA,
		"-XAtc", "SELECT current_user, NOT pg_is_in_recovery()")
	if err != nil || strings.TrimSpace(out) != "app|t" {
		s.Errorf("psql with the Secret's uri says %q, %v", out, err)
	}
}

// One name at its longest, from outside of the cluster, through a port of the nodes.
func TestTheLongestNameThroughANodePort(t *testing.T) {
	s := begin(t)
	name := strings.Repeat("a", naming.MaxName)
	s.apply(bare(name, 1, "service: {type: NodePort}"))
	s.ready(name)
	if got := s.ask(name, "SELECT 1"); got != "1" {
		t.Errorf("it answers %s", got)
	}
	var service corev1.Service
	must(t, s.Get(s.ctx, "service/"+name, &service))
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].NodePort == 0 {
		t.Fatalf("the Service's ports are %v", service.Spec.Ports)
	}
	a := s.access(name, name)
	a.Host, a.Port = "worker0", uint16(service.Spec.Ports[0].NodePort)
	s.until(func(ctx context.Context) error {
		_, err := a.Ask(ctx, "SELECT 1")
		return err
	})
}
