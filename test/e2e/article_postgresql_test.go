//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// What the article "シェルスクリプトで作る、ゆるふわ Kubernetes Operator" prints, letter by letter.
const (
	articleDatabase = `apiVersion: "exp.wheel.jp/v1"
kind: PostgreSQL
metadata:
  name: foodb
spec:
  db: foo
  user: foo
  password: foodb-password
`
	articleSecret = `apiVersion: v1
kind: Secret
metadata:
  name: foodb-password
data:
  postgresql_password: bXlwYXNzd29yZA==
`
	articlePsql = `env PGPASSWORD=$(kubectl get secret foodb-password -o jsonpath='{.data.postgresql_password}' | base64 -d) \
    psql -h worker0 \
         -p $(kubectl get svc foodb -o jsonpath='{.spec.ports[0].nodePort}') \
         -Ufoo \
       foo -c `
	articleTable = `"CREATE TABLE hoge (id SERIAL, name TEXT); \
               INSERT INTO hoge (name) VALUES ('foo'); \
               INSERT INTO hoge (name) VALUES ('bar');"`
	articleSelect = `"SELECT * FROM hoge"`
	articleRows   = ` id | name 
----+------
  1 | foo
  2 | bar
(2 rows)

`
)

// The article from its manifest to the rows that are still there, in its order. Only the Deployment is something
// else now: a StatefulSet, because its Pods have volumes.
func TestTheArticleAboutPostgreSQL(t *testing.T) {
	t.Parallel()
	for order, manifest := range map[string]string{
		"as printed":       "# example/db-for-foo.yaml\n" + articleDatabase + "---\n" + articleSecret,
		"the Secret first": articleSecret + "---\n" + articleDatabase,
	} {
		t.Run(order, func(t *testing.T) {
			sh := begin(t).shell()
			if crds := sh.types("kubectl get crd"); !strings.Contains(crds, "postgresqls.exp.wheel.jp") {
				t.Fatalf("kubectl get crd prints\n%s", crds)
			}
			sh.file("example/db-for-foo.yaml", manifest)
			made := sh.types("kubectl create -f example/db-for-foo.yaml")
			for _, want := range []string{"postgresql.exp.wheel.jp/foodb created", "secret/foodb-password created"} {
				if !strings.Contains(made, want) {
					t.Errorf("kubectl create prints\n%s", made)
				}
			}
			sh.types("kubectl wait pg/foodb --for=condition=Ready --timeout=4m")
			pod := sh.onePod()
			sh.prints("kubectl get svc foodb", `foodb +NodePort .* 5432:3\d{4}/TCP `)
			sh.prints("kubectl get statefulset foodb", `foodb +1/1 `)
			sh.eventually(articlePsql+"'SELECT version()'", `^ +version +\n-+\n PostgreSQL 17\.`)
			if order == "as printed" {
				sh.losesItsPod(pod)
			}
		})
	}
}

// losesItsPod is the second half of the article.
func (sh *shell) losesItsPod(pod string) {
	sh.Helper()
	sh.prints(articlePsql+articleTable, `INSERT 0 1\n$`)
	if rows := sh.types(articlePsql + articleSelect); rows != articleRows {
		sh.Errorf("the rows are\n%s", rows)
	}
	// There is no minute to wait: no backup has to be taken first.
	sh.prints("kubectl delete pod "+pod, `pod "`+pod+`" deleted`)
	sh.onePod()
	sh.eventually(articlePsql+articleSelect, "^"+regexp.QuoteMeta(articleRows)+"$")
}

// prints looks at what a command prints.
func (sh *shell) prints(command, pattern string) {
	sh.Helper()
	if out := sh.types(command); !regexp.MustCompile(pattern).MatchString(out) {
		sh.Errorf("%s prints, instead of %s,\n%s", command, pattern, out)
	}
}

// eventually types a command again while it fails: in the article, too, the database is not there at once.
func (sh *shell) eventually(command, pattern string) {
	sh.Helper()
	out := ""
	sh.until(func(context.Context) error {
		var err error
		out, err = sh.try(command)
		return err
	})
	if !regexp.MustCompile(pattern).MatchString(out) {
		sh.Errorf("%s prints, instead of %s,\n%s", command, pattern, out)
	}
}

var onePod = regexp.MustCompile(`^NAME .*\n(foodb-\S+) +1/1 +Running +0 .*\n$`)

// onePod waits until the selector of the article has the one Pod, and that has the label by which the article's
// script knows that the application is ready.
func (sh *shell) onePod() string {
	sh.Helper()
	pod := ""
	sh.until(func(context.Context) error {
		out, err := sh.try("kubectl get pods --selector name=foodb")
		match := onePod.FindStringSubmatch(out)
		if err != nil || match == nil {
			return errors.Join(err, fmt.Errorf("kubectl get pods prints\n%s", out))
		}
		pod = match[1]
		label, err := sh.try("kubectl get pod " + pod + " -o jsonpath='{.metadata.labels.appReady}'")
		if err == nil && label != "ok" {
			err = fmt.Errorf("the Pod's label appReady is %q", label)
		}
		return err
	})
	return pod
}
