package bucket

import "testing"

// A store is told from others by where its objects are, and not by how they are reached.
func TestThePlaceOfABucket(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"S3": {Config{S3: &S3{Bucket: "b", Region: "eu-west-1"}, Credentials: "/secret"}, "s3://b"},
		"a prefix, with strokes": {
			Config{S3: &S3{Bucket: "b"}, Prefix: "/a/b/", KeepAll: true, CA: "pem"}, "s3://b/a/b",
		},
		"another server": {Config{S3: &S3{Bucket: "b", Endpoint: "https://minio:9000/"}}, "https://minio:9000/b"},
		"Google":         {Config{GCS: &GCS{Bucket: "b"}, Prefix: "p"}, "gs://b/p"},
		"Azure": {
			Config{Azure: &Azure{Account: "a", Container: "c"}, Prefix: "p"}, "https://a.blob.core.windows.net/c/p",
		},
		"Azure elsewhere": {
			Config{Azure: &Azure{Account: "a", Container: "c", Endpoint: "http://here:1/a/"}}, "http://here:1/a/c",
		},
		"a volume": {Config{Volume: &Volume{URL: "https://x-archive.ns.svc:8443"}}, "https://x-archive.ns.svc:8443"},
		"a folder": {Config{Folder: "/tmp/b", Prefix: "p"}, "/tmp/b/p"},
	} {
		if got := c.config.Place(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
