//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/naming"
	"toban.dev/test/stores/servers"
)

// s3Server is an S3 server of the story's namespace. hack/e2e.sh has its image.
const s3Server = `
apiVersion: v1
kind: Pod
metadata: {name: s3, labels: {app: s3}}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: s3
    image: versitygw:1
    args: ["--port", ":7070", "--access", tester, "--secret", a secret of the tests, "--iam-dir", /users, "--quiet",
      posix, "--sidecar", /metadata, /buckets]
    readinessProbe: {tcpSocket: {port: 7070}, periodSeconds: 1}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    volumeMounts:
    - {name: users, mountPath: /users}
    - {name: buckets, mountPath: /buckets}
    - {name: metadata, mountPath: /metadata}
  volumes:
  - {name: users, secret: {secretName: s3-users}}
  - {name: buckets, emptyDir: {}}
  - {name: metadata, emptyDir: {}}
---
apiVersion: v1
kind: Service
metadata: {name: s3}
spec:
  selector: {app: s3}
  ports: [{port: 7070}]
---
apiVersion: v1
kind: Secret
metadata: {name: archive-writer}
stringData: {accessKeyID: writer, secretAccessKey: secret of writer}
---
apiVersion: v1
kind: Secret
metadata: {name: archive-remover}
stringData: {accessKeyID: remover, secretAccessKey: secret of remover}
`

// Who breaks into the Pod of an instance has its credentials of the store, and removes no backup with them. What is not
// to be kept goes all the same. (TestInstancesCanNeitherReplaceNorDelete of test/stores touches the same.)
func TestLongAnIntruderCannotRemoveBackups(t *testing.T) {
	s := begin(t)
	s.run("create", "secret", "generic", "s3-users", "--from-literal=users.json="+servers.UsersOfS3(t))
	s.apply(s3Server)
	s.run("wait", "pod/s3", "--for=condition=Ready", "--timeout=2m")
	servers.GuardBucket(t, s.address("s3"))
	s.apply(withBackup("main", 1, `schedule: none
retention: {count: 1}
store:
  s3:
    bucket: archive
    endpoint: http://s3:7070
    pathStyle: true
    credentials: {name: archive-writer}
    deletionCredentials: {name: archive-remover}`))
	s.ready("main")
	s.sql("main", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	s.condition("main", v1.ConditionArchiving, "True", v1.ReasonArchiving)
	s.backedUp("main")

	stolen := s.intruder("main-0")
	before := objectsOf(t, stolen)
	if err := stolen.Delete(t.Context(), before...); !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("the intruder deletes what there is: %v", err)
	}
	left := strings.Join(objectsOf(t, stolen), " ")
	for _, name := range before {
		if !strings.Contains(left, name) {
			t.Errorf("the intruder has removed %s", name)
		}
	}

	for _, name := range []string{"one", "two"} {
		s.apply("apiVersion: toban.dev/v1\nkind: DatabaseBackup\nmetadata: {name: " + name +
			"}\nspec: {sampleDB: main}\n")
		s.completed(name)
	}
	// Else its successor comes when Kubernetes has removed it, ten minutes after its end.
	s.run("delete", "job", naming.RetentionJob("main"), "--ignore-not-found")
	s.until(func(ctx context.Context) error {
		phase, err := s.Kubectl(ctx, "get", "databasebackup", "one", "-o", "jsonpath={.status.phase}")
		if err == nil && phase != "Removed" {
			err = fmt.Errorf("what is not to be kept is %s", phase)
		}
		return err
	})
	s.condition("main", v1.ConditionRetentionApplied, "True", v1.ReasonRetentionApplied)
	s.apply(sampleDB("again", 1, "restoreFrom: {backup: two}", "backup: {none: true}"))
	s.ready("again")
	s.kept("again", "1")
}

// intruder is the store as somebody in a Pod of an instance has it: with every Secret of a store that is there.
func (s *story) intruder(pod string) bucket.Bucket {
	s.Helper()
	mounted := s.run("get", "pod", pod, "-o", "jsonpath={.spec.volumes[*].secret.secretName}")
	if strings.Contains(mounted, "archive-remover") || !strings.Contains(mounted, "archive-writer") {
		s.Errorf("the Pod of the database has the Secrets %s", mounted)
	}
	files := map[string]string{}
	for _, name := range []string{"accessKeyID", "secretAccessKey"} {
		files[name] = s.run("exec", pod, "--", "cat", naming.PathStore+"/"+name)
	}
	b, err := bucket.Open(s.ctx, bucket.Config{
		S3:          &bucket.S3{Endpoint: s.address("s3"), Region: "us-east-1", Bucket: "archive", PathStyle: true},
		Credentials: servers.Secret(s.T, files),
	})
	must(s.T, err)
	return b
}

// objectsOf are the names of all objects in a bucket.
func objectsOf(t *testing.T, b bucket.Bucket) (names []string) {
	t.Helper()
	for o, err := range b.List(t.Context(), "") {
		must(t, err)
		names = append(names, o.Name)
	}
	return names
}
