//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// What a user types every day: a session, what happens now, logs, a restart, and a report for those who help.
func TestDailyUse(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 2,
		"postgresql: {parameters: {shared_preload_libraries: pg_stat_statements}}",
		"init: {extensions: [pg_stat_statements]}"))
	s.ready("shop")
	sh := s.shell()
	for command, want := range map[string]string{
		"echo 'SELECT 40 + 2' | kubectl toban psql shop -- -At":                                         "42",
		"kubectl toban psql shop --app -- -Atc 'SELECT current_user, 1' < /dev/null":                    "app|1",
		"kubectl toban psql shop --replica -d postgres -- -Atc 'SELECT pg_is_in_recovery()' </dev/null": "t",
		// A program that keeps the terminal: psql asks, and its terminal has a size.
		`printf 'SELECT 6*7 AS "the answer";\n\\q\n' | script -qec 'kubectl toban psql shop' /dev/null`: "the answer",
		"echo 'SELECT 1/0' | kubectl toban psql shop -- -v ON_ERROR_STOP=1 -f -; echo ended with $?":    "ended with 3",
	} {
		s.until(func(context.Context) error { // on a busy machine a primary may hand over in between
			out, err := sh.try(command)
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("%s\nsays %q, and not %q", command, out, want)
			}
			return err
		})
	}
	s.showsHowTheServersAre(sh)
	s.showsWhoBlocks(sh)
	s.restartsInOrder(sh)
	s.rebuildsTheStandby(sh)
	s.reports(sh)
}

// showsHowTheServersAre asks the servers, as the primary and its standby see each other.
func (s *story) showsHowTheServersAre(sh *shell) {
	s.Helper()
	s.until(func(context.Context) error {
		var shown struct {
			Servers []struct {
				Role, Unknown string
				Standbys      []struct{ Name, State string }
			}
		}
		out, err := sh.try("kubectl toban status shop -o json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		roles := map[string]int{}
		for _, one := range shown.Servers {
			roles[one.Role] += 1 + len(one.Standbys)
		}
		if roles["primary"] != 2 || roles["standby"] != 1 {
			return fmt.Errorf("the servers are %+v", shown.Servers)
		}
		return nil
	})
	if out := sh.types("kubectl toban status shop"); !strings.Contains(out, "OLDEST TRANSACTION") ||
		strings.Contains(out, "nobody sends it WAL") {
		s.Errorf("status says %s", out)
	}
}

// showsWhoBlocks has one session wait for another.
func (s *story) showsWhoBlocks(sh *shell) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.sql("shop", "CREATE TABLE orders (id int)")
	primary := s.ready("shop").Status.Primary
	session := func(statements string) { // it ends with its server
		_, _ = s.Kubectl(ctx, "exec", primary, "--", "psql", "-c", statements, "app")
	}
	go session("BEGIN; LOCK TABLE orders; SELECT pg_sleep(300)")
	s.until(func(ctx context.Context) error {
		out, err := s.Kubectl(ctx, "exec", primary, "--", "psql", "-Atc", "SELECT count(*) FROM pg_locks "+
			"WHERE granted AND relation = 'orders'::regclass AND mode = 'AccessExclusiveLock'", "app")
		if err == nil && strings.TrimSpace(out) != "1" {
			err = fmt.Errorf("%s sessions have the lock", out)
		}
		return err
	})
	go session("SELECT * FROM orders")
	s.until(func(context.Context) error {
		var top struct {
			Role    string
			Blocked []struct {
				Lock, Statement string
				By              []struct{ Statement string }
			}
			Statements []struct{ Statement string }
		}
		out, err := sh.try("kubectl toban top shop -o json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(out), &top); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if len(top.Blocked) != 1 || len(top.Blocked[0].By) != 1 || len(top.Statements) == 0 || top.Role != "primary" ||
			!strings.Contains(top.Blocked[0].Lock, "public.orders") ||
			!strings.Contains(top.Blocked[0].By[0].Statement, "pg_sleep") {
			return fmt.Errorf("top says %s", out)
		}
		return nil
	})
	if out := sh.types("kubectl toban top shop"); !strings.Contains(out, "AccessShareLock on relation public.orders") {
		s.Errorf("top says %s", out)
	}
}

// restartsInOrder restarts the servers. The Pods stay, and the logs of both instances have it.
func (s *story) restartsInOrder(sh *shell) {
	s.Helper()
	pods := s.run("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
	before := s.ready("shop").Status.Primary
	var restarted struct {
		Message string
		Status  v1.SampleDBStatus
	}
	out := sh.types("kubectl toban restart shop -o json 2> told")
	must(s.T, json.Unmarshal([]byte(out), &restarted))
	if restarted.Message != "shop: every server was restarted" {
		s.Errorf("restart says %s, after %s", out, sh.types("cat told"))
	}
	if now := s.ready("shop").Status.Primary; now == before {
		s.Errorf("%s did not hand over", before)
	}
	if now := s.run("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}"); now != pods {
		s.Errorf("the Pods are others: %s, before %s", now, pods)
	}
	logs := sh.types("kubectl toban logs shop --postgres --since 10m")
	for _, line := range []string{"shop-0 ", "shop-1 "} {
		if !strings.Contains(logs, line) {
			s.Errorf("no line begins with %q:\n%s", line, logs)
		}
	}
	for _, words := range []string{"database system is shut down", "database system is ready to accept"} {
		if strings.Count(logs, words) < 2 {
			s.Errorf("not both instances say %q:\n%s", words, logs)
		}
	}
	failed := sh.types("kubectl toban logs shop --postgres --since 10m -o json | grep 'ERROR:  division by zero'")
	if !strings.Contains(failed, `"error_severity":"ERROR","message":"division by zero"`) {
		s.Errorf("a line of the server has the fields %s", failed)
	}
	if agents := sh.types("kubectl toban logs shop --agent --tail 5"); strings.Contains(agents, "LOG:  ") ||
		!strings.Contains(agents, `"level"`) {
		s.Errorf("the agents' logs are:\n%s", agents)
	}
}

// rebuildsTheStandby has the standby copy all data onto another volume; the primary may not.
func (s *story) rebuildsTheStandby(sh *shell) {
	s.Helper()
	db := s.ready("shop")
	standby := other(db)
	volume := func() string {
		return s.run("get", "pvc", naming.ClaimOf(standby), "-o", "jsonpath={.spec.volumeName}")
	}
	before := volume()
	if out, err := sh.try("kubectl toban rebuild " + db.Status.Primary); err == nil ||
		!strings.Contains(err.Error(), "is the primary") {
		s.Errorf("to rebuild the primary says %s, %v", out, err)
	}
	if out := sh.types("kubectl toban rebuild " + standby); !strings.Contains(out, "its vote counts") {
		s.Errorf("rebuild says %s", out)
	}
	if now := volume(); now == before {
		s.Errorf("%s is still on the volume %s", standby, now)
	}
	if now := s.ready("shop"); now.Status.Primary != db.Status.Primary || now.Status.Term != db.Status.Term {
		s.Errorf("%s leads term %d, and before %s term %d", now.Status.Primary, now.Status.Term, db.Status.Primary,
			db.Status.Term)
	}
}

// reports writes a report, in which there is no password.
func (s *story) reports(sh *shell) {
	s.Helper()
	_, err := s.inside(s.ready("shop").Status.Primary, "CREATE ROLE reader PASSWORD 'h1dden'")
	must(s.T, err)
	_, _ = sh.try(`echo "ALTER ROLE nobody PASSWORD 'h1dden'" | kubectl toban psql shop`) // PostgreSQL logs what fails
	sh.types("kubectl toban report shop --file report.tar.gz && mkdir report && tar xzf report.tar.gz -C report")
	for _, file := range []string{
		"top.yaml", "status.txt", "versions.txt", "objects/statefulset.yaml", "objects/event.yaml",
		"logs/shop-0/postgresql.log", "logs/shop-1/postgresql.log",
	} {
		sh.types("test -s report/*/" + file)
	}
	if problems, _ := sh.try("cat report/*/problems.txt"); strings.Contains(problems, "top") {
		s.Errorf("the report lacks: %s", problems)
	}
	password := string(s.secretOf("shop-app")["password"])
	for _, secret := range []string{password, "h1dden", "PRIVATE KEY"} {
		if found, err := sh.try("grep -rl '" + secret + "' report"); err == nil {
			s.Errorf("%q is in %s", secret, found)
		}
	}
	if !strings.Contains(sh.types("grep -rh 'ALTER ROLE nobody' report"), "(redacted)") {
		s.Errorf("the statement that failed is not in the logs of the report")
	}
}
