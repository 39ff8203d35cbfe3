package servers

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"toban.dev/internal/archive/bucket"
)

// Guarded is a store with two to use it: the instances, who may list, read and create, and one who may list, read and
// delete.
type Guarded struct{ Instances, Deletion bucket.Config }

// Policy is what an S3 user may do, without the principal.
type Policy struct {
	Version   string
	Statement []map[string]any
}

// GuardS3 is an S3 server with users who may do what the policies of docs/store.md say. The condition that nothing is
// replaced a proxy before it has.
func GuardS3(t *testing.T) Guarded {
	t.Helper()
	iam := t.TempDir()
	if err := os.WriteFile(filepath.Join(iam, "users.json"), []byte(UsersOfS3(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startS3(t, t.TempDir(), s3Secret, "--iam-dir", iam)
	GuardBucket(t, server.URL)
	faulty := StartFaulty(t, server.URL)
	faulty.Refuse(func(r *http.Request) bool {
		return r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "*"
	}, s3Denied)
	as := func(name string) bucket.Config {
		config := server.At(faulty.URL)
		config.Credentials = Secret(t, map[string]string{"accessKeyID": name, "secretAccessKey": "secret of " + name})
		return config
	}
	return Guarded{Instances: as("writer"), Deletion: as("remover")}
}

const s3Denied = `<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`

// DocumentedPolicy is one of docs/store.md: "instances" or "deletion".
func DocumentedPolicy(t *testing.T, name string) Policy {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository(t), "docs", "store.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "<!-- policy-"+name+":begin -->\n```json\n")
	block, _, _ := strings.Cut(after, "```")
	var policy Policy
	if err := json.Unmarshal([]byte(strings.ReplaceAll(block, ":::archives", ":::"+bucketName)), &policy); err != nil {
		t.Fatalf("the policy %s of docs/store.md: %v", name, err)
	}
	return policy
}

// UsersOfS3 is the file users.json for the server's --iam-dir: a writer, who is the instances, a remover, and who the
// writer is renewed as.
func UsersOfS3(t *testing.T) string {
	t.Helper()
	users := map[string]any{}
	for _, name := range []string{"writer", "remover", "renewed"} {
		users[name] = map[string]any{"access": name, "secret": "secret of " + name, "role": "user"}
	}
	text, err := json.Marshal(map[string]any{"accessAccounts": users})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// GuardBucket makes the policies of docs/store.md those of the bucket "archive", which it makes where there is none.
// The server does not know the condition that nothing is replaced.
func GuardBucket(t *testing.T, url string) {
	t.Helper()
	LetIn(t, url, map[string]string{"writer": "instances", "remover": "deletion"})
}

// LetIn lets these users into the bucket "archive", each by a policy of docs/store.md, and nobody else any more.
func LetIn(t *testing.T, url string, users map[string]string) {
	t.Helper()
	all := Policy{Version: "2012-10-17"}
	for user, policy := range users {
		for _, statement := range DocumentedPolicy(t, policy).Statement {
			statement["Principal"] = map[string]any{"AWS": []string{user}}
			delete(statement, "Condition")
			all.Statement = append(all.Statement, statement)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	client, err := minio.New(strings.TrimPrefix(url, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(s3Owner, s3Secret, ""), Region: "us-east-1",
		BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		t.Fatal(err)
	}
	there, err := client.BucketExists(t.Context(), bucketName)
	if err == nil && !there {
		err = client.MakeBucket(t.Context(), bucketName, minio.MakeBucketOptions{})
	}
	if err == nil {
		err = client.SetBucketPolicy(t.Context(), bucketName, string(text))
	}
	if err != nil {
		t.Fatalf("make a bucket with the policy %s: %v", text, err)
	}
}

// GuardAzure is Azure's emulator with two tokens for the container.
func GuardAzure(t *testing.T) Guarded {
	t.Helper()
	server := startAzure(t, azureKey)
	who, err := container.NewSharedKeyCredential(azureAccount, azureKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(server.Config.Azure.Endpoint+"/"+bucketName, who, nil)
	if err != nil {
		t.Fatal(err)
	}
	with := func(may sas.ContainerPermissions) bucket.Config {
		signed, err := client.GetSASURL(may, time.Now().Add(time.Hour), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(signed, "?")
		config := server.Config
		config.Credentials = Secret(t, map[string]string{"sasToken": token})
		return config
	}
	return Guarded{
		Instances: with(sas.ContainerPermissions{Read: true, Create: true, List: true}),
		Deletion:  with(sas.ContainerPermissions{Read: true, List: true, Delete: true}),
	}
}

// GuardGCS is Google's emulator, which knows nobody, behind two proxies that let through what each may do. One denies
// to replace an object before it looks at the condition.
func GuardGCS(t *testing.T) Guarded {
	t.Helper()
	server := StartGCS(t)
	instances, deletion := StartFaulty(t, server.URL), StartFaulty(t, server.URL)
	const denied = `{"error":{"code":403,"message":"denied","errors":[{"reason":"forbidden","message":"denied"}]}}`
	instances.Refuse(func(r *http.Request) bool {
		return r.Method == http.MethodDelete || r.Method == http.MethodPost && isThere(server, r.URL)
	}, denied)
	deletion.Refuse(func(r *http.Request) bool { return !reads(r.Method) && r.Method != http.MethodDelete }, denied)
	return Guarded{Instances: server.At(instances.URL), Deletion: server.At(deletion.URL)}
}

// isThere says whether the emulator has the object that an upload names.
func isThere(server Server, upload *url.URL) bool {
	name := upload.Query().Get("name")
	answer, err := http.Get( //nolint:noctx // of a test
		server.URL + "/storage/v1/b/" + bucketName + "/o/" + url.PathEscape(name))
	if err != nil || name == "" {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
