package bucket

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// s3Store speaks S3's protocol.
type s3Store struct {
	client minio.Core
	bucket string
}

func openS3(config Config, with *http.Client) (store, error) {
	c := config.S3
	endpoint, err := parseURL("s3.endpoint", cmp.Or(c.Endpoint, "https://s3.amazonaws.com"))
	if err != nil {
		return nil, err
	}
	who, err := s3Credentials(config)
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupAuto
	if c.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:        who,
		Secure:       endpoint.Scheme == "https",
		Region:       cmp.Or(c.Region, os.Getenv("AWS_REGION"), "us-east-1"),
		BucketLookup: lookup,
		Transport:    with.Transport,
		MaxRetries:   1,
	})
	if err != nil {
		return nil, fmt.Errorf("S3: %w", err)
	}
	return s3Store{*core, c.Bucket}, nil
}

// s3Credentials are those in the files, or those that AWS' own clients would find.
func s3Credentials(config Config) (*credentials.Credentials, error) {
	key, err1 := config.secret(fileAccessKey)
	secret, err2 := config.secret(fileSecretKey)
	token, err3 := config.secret(fileSessionToken)
	switch err := errors.Join(err1, err2, err3); {
	case err != nil:
		return nil, err
	case key == "" && secret == "":
		return credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}), nil
	case key == "" || secret == "":
		return nil, fmt.Errorf("%w: the bucket's Secret needs both %s and %s", ErrDenied, fileAccessKey, fileSecretKey)
	}
	return credentials.NewStatic(key, secret, token, credentials.SignatureV4), nil
}

// put writes an object in one request, with an MD5 sum that the server checks:
// that one all of them know.
func (s s3Store) put(ctx context.Context, name string, content []byte, create bool) error {
	options := minio.PutObjectOptions{
		ContentType: "application/octet-stream", SendContentMd5: true, DisableMultipart: true,
	}
	if create {
		options.SetMatchETagExcept("*")
	}
	_, err := s.client.Client.PutObject(ctx, s.bucket, name, bytes.NewReader(content), int64(len(content)), options)
	return s3Error(err)
}

func (s s3Store) get(ctx context.Context, name string) (io.ReadCloser, error) {
	body, _, _, err := s.client.GetObject(ctx, s.bucket, name, minio.GetObjectOptions{})
	if err != nil {
		return nil, s3Error(err)
	}
	return body, nil
}

func (s s3Store) page(ctx context.Context, prefix, after, from string) ([]Object, string, error) {
	options := minio.ListObjectsOptions{Prefix: prefix, Recursive: true, MaxKeys: pageSize}
	options.StartAfter = cmp.Or(from, after)
	var objects []Object
	for o := range s.client.ListObjectsIter(ctx, s.bucket, options) {
		if o.Err != nil {
			return nil, "", s3Error(o.Err)
		}
		objects = append(objects, Object{Name: o.Key, Size: o.Size, Modified: o.LastModified})
		if len(objects) == pageSize {
			return objects, o.Key, nil
		}
	}
	return objects, "", ctx.Err() // a listing that was cancelled just ends
}

func (s s3Store) remove(ctx context.Context, names []string) error {
	results, err := s.client.RemoveObjectsWithIter(ctx, s.bucket, objectsOf(names), minio.RemoveObjectsOptions{})
	if err != nil {
		return s3Error(err)
	}
	var failed error
	for result := range results {
		if err := s3Error(result.Err); err != nil && !errors.Is(err, ErrNotExist) {
			failed = err
		}
	}
	return errors.Join(failed, ctx.Err())
}

func objectsOf(names []string) iter.Seq[minio.ObjectInfo] {
	return func(yield func(minio.ObjectInfo) bool) {
		for _, name := range names {
			if !yield(minio.ObjectInfo{Key: name}) {
				return
			}
		}
	}
}

// s3Error gives an error its meaning (Amazon S3 API Reference, "Error responses";
// the codes with X are MinIO's).
func s3Error(err error) error {
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Code {
	case "NoSuchKey":
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	case "NoSuchBucket":
		return fmt.Errorf("%w: %w", ErrNoBucket, err)
	case "PreconditionFailed":
		return fmt.Errorf("%w: %w", ErrExists, err)
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled", "AccountProblem",
		"ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return fmt.Errorf("%w: %w", ErrFull, err)
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return final{fmt.Errorf("the bucket may be in another region (%q): set s3.region: %w", answer.Region, err)}
	case "RequestTimeout", "BadDigest", "IncompleteBody":
		return err
	}
	if strings.Contains(answer.Message, "WORM") { // MinIO's, of an object that is locked: a code that says nothing
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	if answer.StatusCode == http.StatusNotImplemented || strings.HasPrefix(answer.Code, "NotImplemented") {
		return final{fmt.Errorf("the store can't do what is needed (If-None-Match in PutObject): %w", err)}
	}
	return byStatus(answer.StatusCode, err)
}
