//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"toban.dev/test/outside"
)

// example is the folder with all kinds together.
const example = "../../config/examples/all"

// One kubectl apply -k gives an application with its database and its backups. It is updated with its schema, while
// somebody uses it; an update that can't be is told and changes nothing; and there is a way back.
func TestAnApplicationWithItsDatabase(t *testing.T) {
	s := begin(t)
	s.run("apply", "-k", example)
	s.run("wait", "myapp/guestbook", "--for=condition=Ready", "--timeout=4m")
	all := guests(s.address("guestbook"))
	s.serves(all, 1)
	if status, page, err := get(s.ctx, string(all)+"/"); err != nil || status != 200 ||
		!strings.Contains(page, "Nobody has written yet.") {
		t.Errorf("the page is %d, %v: %s", status, err, page)
	}
	watched := s.watchLeader("guestbook")
	people := s.visit(all)

	// An update with its schema: a backup, the migration once, then the Pods.
	s.update("guestbook:2")
	s.serves(all, 2)
	s.migrated(2)
	backup := s.field(".status.migration.backup")
	if phase := s.run("get", "databasebackup", backup, "-o", "jsonpath={.status.phase}"); phase != "Completed" {
		t.Errorf("the backup %q before the migration is %q", backup, phase)
	}

	// One that fails: version 3 wants each name once, and here is one twice.
	s.writes(all, "first", "Aki")
	s.writes(all, "second", "Aki")
	s.image("guestbook:3")
	s.fails(regexp.MustCompile(`(?s)one entry each.*\(name\)=\(Aki\) is duplicated`))
	s.serves(all, 2)
	s.migrated(2)
	if got := s.field(".status.image") + " " + s.field(".status.ready"); got != "guestbook:2 3/3" {
		t.Errorf("after a migration that failed, %s runs", got)
	}
	if people.saw(3) {
		t.Error("version 3 has served before its migration succeeded")
	}

	// Back, and when the data has been mended, forward again.
	s.update("guestbook:2")
	s.serves(all, 2)
	s.inBook("DELETE FROM entry WHERE id = 'second'")
	s.update("guestbook:3")
	s.serves(all, 3)
	s.migrated(3)
	if _, err := all.write(s.ctx, "third", "Aki"); err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("a second entry of the same name gives %v", err)
	}

	// Version 2 lives with the schema of version 3.
	s.update("guestbook:2")
	s.serves(all, 2)
	s.migrated(3)

	// A new primary.
	led := s.ready("guestbook-db")
	people.without() // what was before does not count
	s.run("delete", "pod", led.Status.Primary, "--wait=false")
	s.electedAfter(led)
	before := people.count()
	s.until(func(context.Context) error {
		if now := people.count(); now < before+20 {
			return fmt.Errorf("%d entries since the change of the primary", now-before)
		}
		return nil
	})
	if err := outside.Lost.Judge(people.without()); err != nil { // the guest book has to connect anew
		t.Error(err)
	}
	s.visited(people)
	watched()
}

// image asks for another version.
func (s *story) image(image string) {
	s.Helper()
	s.run("patch", "myapp", "guestbook", "--type=merge", "-p", `{"spec":{"image":"`+image+`"}}`)
}

// update waits until another version runs.
func (s *story) update(image string) {
	s.Helper()
	s.image(image)
	begin := time.Now()
	s.until(func(context.Context) error {
		got, err := s.app(`{.status.observedGeneration}={.metadata.generation} {.status.image} {.status.ready} ` +
			`{.status.conditions[?(@.type=="Ready")].status}`)
		if err != nil {
			return err
		}
		seen, state, _ := strings.Cut(got, " ")
		observed, generation, _ := strings.Cut(seen, "=")
		if observed != generation || state != image+" 3/3 True" {
			return fmt.Errorf("%s is to run, and it is %s", image, got)
		}
		return nil
	})
	s.Logf("%s runs after %s", image, time.Since(begin).Round(100*time.Millisecond))
}

// app reads the MyApp.
func (s *story) app(jsonpath string) (string, error) {
	return s.Kubectl(s.ctx, "get", "myapp", "guestbook", "-o", "jsonpath="+jsonpath)
}

func (s *story) field(path string) string {
	s.Helper()
	got, err := s.app("{" + path + "}")
	must(s.T, err)
	return got
}

// fails waits until the migration has failed, with words of which the condition must tell.
func (s *story) fails(words *regexp.Regexp) {
	s.Helper()
	s.until(func(context.Context) error {
		got, err := s.app(
			`{.status.conditions[?(@.type=="Migrated")].status} {.status.conditions[?(@.type=="Migrated")].message}`)
		if err == nil && (!strings.HasPrefix(got, "False ") || !words.MatchString(got)) {
			err = fmt.Errorf("the migration is to fail with %s, and the condition Migrated is %s", words, got)
		}
		return err
	})
}

// serves asks every Pod that the Service leads to for its version; and what has been written is there.
func (s *story) serves(all guests, version int) {
	s.Helper()
	pods := map[string]bool{}
	s.until(func(ctx context.Context) error {
		a, err := all.ask(ctx, "/entries")
		if err != nil {
			return err
		}
		if a.Version != version {
			return fmt.Errorf("%s is version %d, and not %d", a.Pod, a.Version, version)
		}
		if pods[a.Pod] = true; len(pods) < 3 {
			return fmt.Errorf("only these have answered: %v", pods)
		}
		return nil
	})
	leader, err := guests(s.address("guestbook-leader")).ask(s.ctx, "/leader")
	if err != nil || !pods[leader.Pod] {
		s.Errorf("the leader is %+v, %v; these are there: %v", leader, err, pods)
	}
}

func (s *story) writes(all guests, id, name string) {
	s.Helper()
	_, err := all.write(s.ctx, id, name)
	must(s.T, err)
}

// inBook asks the guest book's database, as superuser, in the Pod of its primary.
func (s *story) inBook(query string) string {
	s.Helper()
	db, err := s.SampleDB(s.ctx, "guestbook-db")
	must(s.T, err)
	out, err := s.Kubectl(s.ctx, "exec", db.Status.Primary, "--", "psql", "-U", "postgres", "-XAtc", query, "guestbook")
	must(s.T, err)
	return strings.TrimSpace(out)
}

// migrated looks at the application's own record: each migration is there once.
func (s *story) migrated(version int) {
	s.Helper()
	got := s.inBook("SELECT count(*) || ' ' || max(number) FROM guestbook_migration")
	if want := fmt.Sprintf("%d %d", version, version); got != want {
		s.Errorf("the record of migrations says %s, want %s", got, want)
	}
}

// visitors write entries, one after the other, as people who try again until there is an answer.
type visitors struct {
	mutex    sync.Mutex
	written  int
	gap      outside.Gap
	failures []error
	versions map[int]bool
	end      func()
}

// visit begins to write.
func (s *story) visit(all guests) *visitors {
	ctx, stop := context.WithCancel(s.ctx)
	v := &visitors{versions: map[int]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			v.write(ctx, all)
			time.Sleep(50 * time.Millisecond)
		}
	})
	v.end = func() { stop(); running.Wait() }
	s.Cleanup(v.end)
	return v
}

func (v *visitors) write(ctx context.Context, all guests) {
	name := fmt.Sprintf("visitor %d", v.written)
	a, err := all.write(ctx, name, name)
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if err != nil {
		v.failures = append(v.failures, err)
		return
	}
	v.written++
	v.gap.Note(time.Now())
	v.versions[a.Version] = true
}

// count is how many entries were acknowledged.
func (v *visitors) count() int {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.written
}

// without is the longest time without an entry since it was last asked for.
func (v *visitors) without() time.Duration {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	longest := v.gap.Longest()
	v.gap.Forget()
	return longest
}

// saw says whether a version has taken an entry.
func (v *visitors) saw(version int) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.versions[version]
}

// visited ends the writing: every entry that was acknowledged is there, once.
func (s *story) visited(v *visitors) {
	s.Helper()
	v.end()
	there := s.inBook("SELECT count(*) FROM entry WHERE name LIKE 'visitor %'")
	// The last one may have been written without an answer.
	if there != fmt.Sprint(v.written) && there != fmt.Sprint(v.written+1) {
		s.Errorf("%d entries were acknowledged, and %s are there", v.written, there)
	}
	s.Logf("%d entries while it was updated and its primary changed; these tries failed: %v", v.written, v.failures)
}
