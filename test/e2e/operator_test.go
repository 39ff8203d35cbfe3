//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"toban.dev/test/outside"
)

// Where the operator runs, and as what.
const (
	system    = outside.Namespace("toban-system")
	operator  = "deployment/toban-operator"
	operators = "app.kubernetes.io/name=toban,app.kubernetes.io/component=operator"
)

// Whatever takes the place of an operator, no database notices: no Pod is made
// anew, no container and no PostgreSQL starts again. The new one has looked at the database
// when a change that needs no restart has been applied. And without an operator a database goes on.
func TestANewOperatorAndNone(t *testing.T) {
	all := beginAlone(t)
	all.apply(bare("shop", 2))
	all.ready("shop")
	const agentImage = `jsonpath={.spec.template.spec.containers[0].env[?(@.name=="OPERATOR_IMAGE")].value}`
	image := all.operator("get", operator, "-o", agentImage)
	if image == "" {
		t.Fatal("the operator's Deployment says no OPERATOR_IMAGE")
	}
	const other = "toban.invalid/toban:other"
	megabytes := 4
	for name, replace := range map[string]func(*story){
		"its Pod is deleted":                 func(s *story) { s.operator("delete", "pod", "-l", operators) },
		"its Deployment is rolled out again": func(s *story) { s.operator("rollout", "restart", operator) },
		"it takes the agent from another image": func(s *story) {
			s.Cleanup(func() {
				s.operator("set", "env", operator, "OPERATOR_IMAGE="+image)
				s.operatorRuns()
				s.agentImage("shop", image)
			})
			s.operator("set", "env", operator, "OPERATOR_IMAGE="+other)
			s.operatorRuns()
			s.agentImage("shop", other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{T: t, Namespace: all.Namespace, ctx: all.ctx}
			before := s.lives("shop")
			replace(s)
			s.operatorRuns()
			megabytes++
			s.patch("shop", fmt.Sprintf(`{"postgresql":{"parameters":{"work_mem":"%dMB"}}}`, megabytes))
			s.ready("shop")
			if after := s.lives("shop"); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
	t.Run("there is none", func(t *testing.T) {
		(&story{T: t, Namespace: all.Namespace, ctx: all.ctx}).goesOnAlone("shop")
	})
}

// goesOnAlone takes the operator away: the primary comes back after its Pod was deleted, takes writes through the
// Service, and has its standby again. A change waits until there is an operator.
func (s *story) goesOnAlone(name string) {
	s.Helper()
	db := s.ready(name)
	s.sql(name, "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
	check := s.writing(name)
	s.Cleanup(func() { s.scaleOperator(1) }) // the namespace goes only with an operator
	s.scaleOperator(0)

	old := s.uid(db.Status.Primary)
	s.run("delete", "pod", db.Status.Primary)
	s.until(func(context.Context) error {
		if now := s.uid(db.Status.Primary); now == "" || now == old {
			return fmt.Errorf("the Pod %s has not come back", db.Status.Primary)
		}
		return nil
	})
	s.until(func(ctx context.Context) error {
		return s.access(name, name).Do(ctx,
			"INSERT INTO kept SELECT 101 WHERE NOT EXISTS (SELECT FROM kept WHERE id = 101)")
	})
	s.everyInstanceStreams(name, 1)
	check(outside.HandsOver)
	// The Service may lead to the Pod that has ended for a moment longer.
	s.until(func(ctx context.Context) error {
		n, err := s.access(name, name).Patient().Ask(ctx, "SELECT count(*) FROM kept")
		if err == nil && n != "101" {
			s.Fatalf("kept has %s rows, want 101", n)
		}
		return err
	})

	s.patch(name, `{"postgresql":{"parameters":{"work_mem":"9MB"}}}`)
	if pods := s.operator("get", "pods", "-l", operators, "-o", "name"); pods != "" {
		s.Fatalf("there was an operator all the time: %s", pods)
	}
	s.scaleOperator(1)
	s.ready(name)
	if got := s.ask(name, "SHOW work_mem"); got != "9MB" {
		s.Errorf("work_mem is %s, want 9MB", got)
	}
}

// The metrics are for those who have the ClusterRole toban-metrics-reader.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 1))
	s.ready("shop")
	s.apply(fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: somebody}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: toban-metrics-reader}
subjects:
  - {kind: ServiceAccount, name: reader, namespace: %[1]s}
`, s.Namespace))
	t.Cleanup(func() { s.run("delete", "clusterrolebinding", string(s.Namespace)) })
	for who, c := range map[string]struct {
		token  string
		status int
	}{
		"nobody":           {"", http.StatusUnauthorized},
		"a ServiceAccount": {s.token("somebody"), http.StatusForbidden},
	} {
		status, body, err := s.metrics(s.ctx, c.token)
		must(t, err)
		if status != c.status || strings.Contains(body, "toban_") {
			t.Errorf("%s gets %d, want %d: %.300s", who, status, c.status, body)
		}
	}
	token := s.token("reader")
	for _, series := range []string{
		fmt.Sprintf(`toban_sampledb_instances_ready{namespace="%s",sampledb="shop"} 1`, s.Namespace),
		`toban_operator_acts{shard="0"} 1`,
	} {
		s.until(func(ctx context.Context) error {
			status, body, err := s.metrics(ctx, token)
			if err == nil && (status != http.StatusOK || !strings.Contains(body, series)) {
				err = fmt.Errorf("the answer is %d and lacks %s: %.300s", status, series, body)
			}
			return err
		})
	}
}

// operator is kubectl in the operator's namespace that must succeed.
func (s *story) operator(args ...string) string {
	s.Helper()
	out, err := system.Kubectl(s.ctx, args...)
	must(s.T, err)
	return strings.TrimSpace(out)
}

// operatorRuns waits for an operator as its Deployment wants it.
func (s *story) operatorRuns() {
	s.Helper()
	s.operator("rollout", "status", operator, "--timeout="+patience.String())
}

// scaleOperator waits until there are as many operators.
func (s *story) scaleOperator(replicas int) {
	s.Helper()
	s.operator("scale", operator, fmt.Sprintf("--replicas=%d", replicas))
	s.operatorRuns()
	s.until(func(context.Context) error {
		if names := strings.Fields(s.operator("get", "pods", "-l", operators, "-o", "name")); len(names) != replicas {
			return fmt.Errorf("there are %v", names)
		}
		return nil
	})
}

// agentImage waits until new Pods would take the agent from an image.
func (s *story) agentImage(name, image string) {
	s.Helper()
	s.until(func(context.Context) error {
		got := s.run("get", "statefulset", name, "-o", "jsonpath={.spec.template.spec.initContainers[0].image}")
		if got != image {
			return fmt.Errorf("the agent comes from %s, want %s", got, image)
		}
		return nil
	})
}

// lives are what would differ if a Pod, a container or PostgreSQL had begun anew.
func (s *story) lives(name string) string {
	s.Helper()
	pods, err := s.Pods(s.ctx, name)
	must(s.T, err)
	if len(pods) == 0 {
		s.Fatalf("%s has no Pods", name)
	}
	text := ""
	for _, pod := range pods {
		restarts := int32(0)
		for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			restarts += c.RestartCount
		}
		started, err := s.inside(pod.Name, "SELECT pg_postmaster_start_time()")
		must(s.T, err)
		text += fmt.Sprintf("%s: %s, containers restarted %d times, PostgreSQL since %s\n",
			pod.Name, pod.UID, restarts, started)
	}
	return text
}

// token is a ServiceAccount's.
func (s *story) token(account string) string {
	s.Helper()
	return strings.TrimSpace(s.run("create", "token", account))
}

// metrics asks the operator for them through its Service, as Prometheus does.
func (s *story) metrics(ctx context.Context, token string) (status int, body string, err error) {
	var service corev1.Service
	if err := system.Get(ctx, "service/toban-operator-metrics", &service); err != nil {
		return 0, "", err
	}
	url := "https://" + net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(service.Spec.Ports[0].Port)) + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// Its certificate is made at its start and nobody vouches for it.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}
