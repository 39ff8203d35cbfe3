//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What the article about custom controllers prints, letter by letter but for the lines, which it has lost.
const articleApp = `apiVersion: example.com/v1
kind: MyApp
metadata:
  name: sample-app
spec:
  replicas: 3
  image: nginx:1.25
`

// The article about MyApp, and what it says of controllers: the state is what was declared, whoever changes
// what follows from it. nginx:1.25 is Debian's nginx here (localkube/README.md).
func TestTheArticleAboutMyApp(t *testing.T) {
	s := begin(t)
	// nginx starts as root, as the official image does. Who runs it declares no more than the article here.
	s.run("label", "namespace", string(s.Namespace), "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
	sh := s.shell()
	if crds := sh.types("kubectl get crd"); !strings.Contains(crds, "myapps.example.com") {
		t.Fatalf("kubectl get crd prints\n%s", crds)
	}
	sh.file("sample-app.yaml", articleApp)
	sh.types("kubectl apply -f sample-app.yaml")
	sh.runs(3)
	if got := sh.types("kubectl get myapp sample-app -o jsonpath='{.spec.replicas} {.spec.image} " +
		"{.status.image}'"); got != "3 nginx:1.25 nginx:1.25" {
		t.Errorf("it is %s", got)
	}
	sh.welcomes()

	for what, change := range map[string]string{
		"is deleted":              "kubectl delete deployment sample-app",
		"is scaled":               "kubectl scale deployment sample-app --replicas=1",
		"has another image":       "kubectl set image deployment/sample-app *=nginx:0",
		"has another label":       "kubectl label deployment sample-app app.kubernetes.io/name=other --overwrite",
		"has another environment": "kubectl set env deployment/sample-app A=b",
	} {
		before := sh.deployment()
		sh.types(change)
		sh.until(func(context.Context) error {
			if after := sh.deployment(); after != before {
				return fmt.Errorf("the Deployment %s, and is then\n%s\nand not\n%s", what, after, before)
			}
			return nil
		})
	}
	sh.types("kubectl rollout status deployment/sample-app --timeout=4m")
	sh.runs(3)
	sh.untouched()

	sh.types("kubectl scale myapp sample-app --replicas=2")
	sh.runs(2)
	sh.types("kubectl scale myapp sample-app --replicas=0")
	sh.is("Stopped", 0)
	sh.types("kubectl scale myapp/sample-app --replicas=3")
	sh.runs(3)
	sh.welcomes()
	explained := sh.types("kubectl explain myapp.spec")
	for _, want := range []string{
		`KIND: +MyApp\n`, `replicas\s+<integer>\n`, `image\s+<string> -required-\n`, `migration\s+<Object>\n`,
	} {
		if !regexp.MustCompile(want).MatchString(explained) {
			t.Errorf("kubectl explain myapp.spec lacks %s:\n%s", want, explained)
		}
	}
	sh.types("kubectl delete myapp sample-app")
	sh.until(func(context.Context) error {
		left, err := sh.try("kubectl get deployments,services,pods,poddisruptionbudgets -o name")
		if err == nil && left != "" {
			err = fmt.Errorf("these are left: %s", left)
		}
		return err
	})
}

// runs waits until so many Pods serve, and no other is there.
func (sh *shell) runs(replicas int) { sh.Helper(); sh.is("Running", replicas) }

func (sh *shell) is(phase string, replicas int) {
	sh.Helper()
	want := fmt.Sprintf("%s %d %d", phase, replicas, replicas)
	sh.until(func(context.Context) error {
		got, err := sh.try("kubectl get myapp sample-app -o jsonpath='{.status.phase} " +
			"{.status.readyReplicas} {.status.replicas}'")
		if err == nil && got != want {
			err = fmt.Errorf("it is %s, not %s", got, want)
		}
		return err
	})
}

// deployment is what must stay as it is.
func (sh *shell) deployment() string {
	out, err := sh.try("kubectl get deployment sample-app -o jsonpath='{.metadata.labels} {.spec.replicas} " +
		"{.spec.selector} {.spec.template}'")
	if err != nil {
		return err.Error()
	}
	return out
}

// untouched has the operator look at the MyApp again: nothing is written where nothing differs, says the API server.
func (sh *shell) untouched() {
	sh.Helper()
	path := os.Getenv("TOBAN_AUDIT_LOG")
	if path == "" {
		sh.Fatal("TOBAN_AUDIT_LOG must name the API server's audit log, as hack/e2e.sh sets it")
	}
	from := time.Now()
	for i := range 3 {
		sh.types(fmt.Sprintf("kubectl annotate myapp sample-app example.com/look-again=%d --overwrite", i))
	}
	time.Sleep(2 * time.Second) // for what must not happen there is nothing to wait for
	for _, w := range writes(sh.T, path, string(sh.Namespace)) {
		if w.At.After(from) && !strings.Contains(w.URI, "/events") {
			sh.Errorf("%s %s by %s", w.Verb, w.URI, w.User.Name)
		}
	}
}

// welcomes waits until the Service answers.
func (sh *shell) welcomes() {
	sh.Helper()
	url := "http://" + sh.types("kubectl get service sample-app -o jsonpath='{.spec.clusterIP}:{.spec.ports[0].port}'")
	sh.until(func(ctx context.Context) error {
		status, page, err := get(ctx, url)
		if err == nil && (status != http.StatusOK || !strings.Contains(page, "Welcome to nginx!")) {
			err = fmt.Errorf("%s gives %d: %s", url, status, page)
		}
		return err
	})
}
