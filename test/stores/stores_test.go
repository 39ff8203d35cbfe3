// Package stores tries the clients of object stores against servers that speak
// the real protocols.
package stores

import (
	"testing"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/test/stores/servers"
)

func TestS3(t *testing.T) {
	server := servers.StartS3(t)
	missing, denied := server.Config, server.Config
	missing.S3 = &bucket.S3{Endpoint: server.URL, Bucket: "missing", PathStyle: true}
	denied.Credentials = servers.Secret(t, map[string]string{"accessKeyID": "tester", "secretAccessKey": "a wrong one"})
	buckettest.Run(t, buckettest.Store{Bucket: server.Config, Missing: missing, Denied: &denied})
	buckettest.RunCut(t, server.Config)
}

func TestAzure(t *testing.T) {
	server := servers.StartAzure(t)
	missing, denied := server.Config, server.Config
	azure := *server.Config.Azure
	azure.Container = "missing"
	missing.Azure = &azure
	denied.Credentials = servers.Secret(t, map[string]string{"accountKey": "YSB3cm9uZyBvbmU="})
	buckettest.Run(t, buckettest.Store{Bucket: server.Config, Missing: missing, Denied: &denied})
	buckettest.RunCut(t, server.Config)
}

// TestGCS is of an emulator that knows no credentials.
func TestGCS(t *testing.T) {
	server := servers.StartGCS(t)
	missing := server.Config
	missing.GCS = &bucket.GCS{Endpoint: server.URL, Bucket: "missing"}
	buckettest.Run(t, buckettest.Store{Bucket: server.Config, Missing: missing})
	buckettest.RunCut(t, server.Config)
}
