package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"toban.dev/internal/httppath"
)

// Config says where a bucket is. Exactly one of S3, GCS, Azure, Volume and Folder is set.
type Config struct {
	S3     *S3     `json:"s3,omitempty"`
	GCS    *GCS    `json:"gcs,omitempty"`
	Azure  *Azure  `json:"azure,omitempty"`
	Volume *Volume `json:"volume,omitempty"`
	// Folder is the path of a folder.
	Folder string `json:"folder,omitempty"`

	// Prefix is the folder in the bucket that all names are below.
	Prefix string `json:"prefix,omitempty"`
	// Credentials is the path of a folder with credentials, a Secret's. What its files
	// are called is at each store. Without them, S3, GCS and Azure ask the platform
	// who this is. They are read again before each request, so they may change.
	Credentials string `json:"credentials,omitempty"`
	// KeepAll has nothing removed by these credentials: another Pod does that, with its own. It is not even tried.
	KeepAll bool `json:"keepAll,omitempty"`
	// Patient is for who would lose hours of work: denied what was allowed before, it
	// waits a few minutes for other credentials.
	Patient bool `json:"-"`
	// Way is how the store is reached, where somebody may cut it; nil where nobody does. Make it by NewWay.
	Way *httppath.Path `json:"-"`
	// Clock is set by what the store answers; nil for who does not ask it what time it is.
	Clock *Clock `json:"-"`
	// CA are certificates (PEM) of authorities to trust in addition to the system's;
	// a Volume trusts no other.
	CA string `json:"ca,omitempty"`
}

// S3 is a bucket of Amazon S3 or a store compatible to it, which must honour
// If-None-Match in PutObject. The files of its credentials are accessKeyID,
// secretAccessKey and, if there is one, sessionToken; without them, they come from
// AWS' environment variables and files, the IAM role of the service account (also
// by EKS Pod Identity), or that of the machine.
type S3 struct {
	// Endpoint is a URL, without the bucket. Empty is Amazon's.
	Endpoint string `json:"endpoint,omitempty"`
	// Region is by default what AWS_REGION says, else us-east-1.
	Region string `json:"region,omitempty"`
	Bucket string `json:"bucket"`
	// PathStyle puts the bucket into the path, not into the host name.
	PathStyle bool `json:"pathStyle,omitempty"`
}

// GCS is a bucket of Google Cloud Storage. The file of its credentials is
// credentials.json: a service account's key, or an external account's
// configuration. Without it, it is the workload identity.
type GCS struct {
	Bucket string `json:"bucket"`
	// Endpoint is the URL of another server than Google's. One with http:// is an
	// emulator, and gets no credentials.
	Endpoint string `json:"endpoint,omitempty"`
}

// Azure is a container of Azure Blob Storage, in an account without a hierarchical
// namespace. The file of its credentials is accountKey or sasToken; without one,
// it is the workload identity, or what else Azure's default chain finds.
type Azure struct {
	Account   string `json:"account"`
	Container string `json:"container"`
	// Endpoint is a URL, without the container. Empty is https://ACCOUNT.blob.core.windows.net.
	Endpoint string `json:"endpoint,omitempty"`
}

// Volume is a server of ours. The files of its credentials are tls.crt and tls.key,
// read for each connection; authorities are in the file ca.crt, which may change too, or without it in Config.CA.
type Volume struct {
	// URL is https://HOST:PORT.
	URL string `json:"url"`
	// Identity is the common name in the server's certificate, as in pki.ClientTLS.
	Identity string `json:"identity"`
}

// The files of credentials.
const (
	fileAccessKey    = "accessKeyID"
	fileSecretKey    = "secretAccessKey"
	fileSessionToken = "sessionToken"
	fileGoogle       = "credentials.json"
	fileAccountKey   = "accountKey"
	fileSAS          = "sasToken"
	fileCertificate  = "tls.crt"
	fileKey          = "tls.key"
	fileAuthority    = "ca.crt"
)

// Open makes a bucket of its configuration. Whether it is there, and the
// credentials are right, the first operation shows.
func Open(ctx context.Context, config Config) (Bucket, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Folder != "" {
		return Sub(OpenFolder(config.Folder), config.Prefix), nil
	}
	s, err := openStore(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("set up the bucket: %w", err)
	}
	if config.KeepAll {
		return Sub(keeper{remote{s}}, config.Prefix), nil
	}
	return Sub(remote{s}, config.Prefix), nil
}

func openStore(ctx context.Context, config Config) (store, error) {
	if config.Volume != nil {
		return openVolume(config)
	}
	secure, err := trust(config.CA)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: config.Clock.through(config.Way.Through(transport(secure)))}
	ctx = context.WithoutCancel(ctx) // who opens the bucket may be done long before it is set up anew
	return openRenewed(config, func() (store, error) {
		switch {
		case config.S3 != nil:
			return openS3(config, client)
		case config.GCS != nil:
			return openGCS(ctx, config, client)
		default:
			return openAzure(config, client)
		}
	})
}

func (c Config) check() error {
	set := 0
	for _, is := range []bool{c.S3 != nil, c.GCS != nil, c.Azure != nil, c.Volume != nil, c.Folder != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("a bucket is one of s3, gcs, azure, volume and folder: %d are set", set)
	}
	if prefix := strings.Trim(c.Prefix, "/"); prefix != "" {
		if err := checkName(prefix); err != nil {
			return fmt.Errorf("the bucket's prefix: %w", err)
		}
	}
	for name, wrong := range map[string]bool{
		"s3.bucket":                     c.S3 != nil && c.S3.Bucket == "",
		"gcs.bucket":                    c.GCS != nil && c.GCS.Bucket == "",
		"azure.account":                 c.Azure != nil && c.Azure.Account == "",
		"azure.container":               c.Azure != nil && c.Azure.Container == "",
		"volume.identity":               c.Volume != nil && c.Volume.Identity == "",
		"credentials (the mTLS files) ": c.Volume != nil && c.Credentials == "",
	} {
		if wrong {
			return fmt.Errorf("the bucket's %s is not set", name)
		}
	}
	return nil
}

// parseURL reads the URL of a server: what, for the error, is the field's name.
func parseURL(what, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("%s is %q: it must be https://HOST or https://HOST:PORT", what, text)
	}
	return u, nil
}

// secret reads a file of credentials; it is empty if there is no such file. Who
// made the Secret by hand may have left a newline at its end.
func (c Config) secret(name string) (string, error) {
	if c.Credentials == "" {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Join(c.Credentials, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the bucket's credentials: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Place names where a bucket is, with its prefix, for people and to tell it from others. There is nothing in it that
// may change while the objects stay: no credentials, no authority, no region.
func (c Config) Place() string {
	switch {
	case c.S3 != nil:
		return cmp.Or(strings.TrimSuffix(c.S3.Endpoint, "/"), "s3:/") + "/" + joined(c.S3.Bucket, c.Prefix)
	case c.GCS != nil:
		return cmp.Or(strings.TrimSuffix(c.GCS.Endpoint, "/"), "gs:/") + "/" + joined(c.GCS.Bucket, c.Prefix)
	case c.Azure != nil:
		a := c.Azure
		return cmp.Or(strings.TrimSuffix(a.Endpoint, "/"), "https://"+a.Account+".blob.core.windows.net") + "/" +
			joined(a.Container, c.Prefix)
	case c.Volume != nil:
		return strings.TrimSuffix(c.Volume.URL+"/"+joined(c.Prefix), "/")
	}
	return strings.TrimSuffix(c.Folder+"/"+joined(c.Prefix), "/")
}

func joined(parts ...string) string {
	var all []string
	for _, part := range parts {
		if part = strings.Trim(part, "/"); part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, "/")
}
