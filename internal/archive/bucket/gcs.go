package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/httptransport"
	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
)

// gcsStore speaks Google Cloud Storage's JSON protocol.
type gcsStore struct{ bucket *storage.BucketHandle }

func openGCS(ctx context.Context, config Config, with *http.Client) (store, error) {
	options := []option.ClientOption{storage.WithJSONReads()}
	emulated := false
	if endpoint := config.GCS.Endpoint; endpoint != "" {
		u, err := parseURL("gcs.endpoint", endpoint)
		if err != nil {
			return nil, err
		}
		emulated = u.Scheme == "http"
		options = append(options, option.WithEndpoint(u.JoinPath("/storage/v1/").String()))
	}
	if !emulated {
		var err error
		if with, err = withGoogle(config, with); err != nil {
			return nil, err
		}
	}
	c, err := storage.NewClient(ctx, append(options, option.WithHTTPClient(with))...)
	if err != nil {
		return nil, fmt.Errorf("GCS: %w", err)
	}
	return gcsStore{c.Bucket(config.GCS.Bucket).Retryer(storage.WithPolicy(storage.RetryNever))}, nil
}

// withGoogle makes a client that says who this is.
func withGoogle(config Config, with *http.Client) (*http.Client, error) {
	who, err := googleCredentials(config, with)
	if err != nil {
		return nil, fmt.Errorf("%w: find out who this is to Google Cloud: %w", ErrDenied, err)
	}
	signed, err := httptransport.NewClient(&httptransport.Options{
		Credentials: who, BaseRoundTripper: with.Transport, DisableTelemetry: true,
	})
	if err != nil {
		return nil, fmt.Errorf("GCS: %w", err)
	}
	return signed, nil
}

func googleCredentials(config Config, with *http.Client) (*auth.Credentials, error) {
	options := &credentials.DetectOptions{Scopes: []string{storage.ScopeReadWrite}, Client: with}
	text, err := config.secret(fileGoogle)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return credentials.DetectDefault(options)
	}
	var kind struct {
		Type credentials.CredType `json:"type"`
	}
	if err := json.Unmarshal([]byte(text), &kind); err != nil {
		return nil, fmt.Errorf("understand %s: %w", fileGoogle, err)
	}
	return credentials.NewCredentialsFromJSON(kind.Type, []byte(text), options)
}

// put writes an object in one request, with a sum that the server checks.
func (s gcsStore) put(ctx context.Context, name string, content []byte, create bool) error {
	object := s.bucket.Object(name)
	if create {
		object = object.If(storage.Conditions{DoesNotExist: true})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what is not complete is dropped, not closed
	w := object.NewWriter(ctx)
	w.ChunkSize = 0
	w.ContentType = "application/octet-stream"
	w.CRC32C, w.SendCRC32C = crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)), true
	_, err := w.Write(content)
	if err == nil {
		err = w.Close()
	}
	return bucketMissing(gcsError(err))
}

// get reads an object. Google says the same of an object and of a bucket that is
// not there: the bucket is asked for then.
func (s gcsStore) get(ctx context.Context, name string) (io.ReadCloser, error) {
	body, err := s.bucket.Object(name).NewReader(ctx)
	if err == nil {
		return body, nil
	}
	err = gcsError(err)
	if errors.Is(err, ErrNotExist) {
		if _, _, missing := s.page(ctx, name, "", ""); missing != nil {
			return nil, missing
		}
	}
	return nil, err
}

func (s gcsStore) page(ctx context.Context, prefix, after, from string) ([]Object, string, error) {
	query := &storage.Query{Prefix: prefix, StartOffset: after}
	if err := query.SetAttrSelection([]string{"Name", "Size", "Updated"}); err != nil {
		return nil, "", final{err}
	}
	var found []*storage.ObjectAttrs
	next, err := iterator.NewPager(s.bucket.Objects(ctx, query), pageSize, from).NextPage(&found)
	if err != nil {
		return nil, "", bucketMissing(gcsError(err))
	}
	objects := make([]Object, len(found))
	for i, o := range found {
		objects[i] = Object{Name: o.Name, Size: o.Size, Modified: o.Updated}
	}
	return objects, next, nil
}

func (s gcsStore) remove(ctx context.Context, names []string) error {
	return each(ctx, names, func(ctx context.Context, name string) error {
		err := gcsError(s.bucket.Object(name).Delete(ctx))
		if !errors.Is(err, ErrNotExist) {
			return err
		}
		_, _, missing := s.page(ctx, name, "", "")
		return missing
	})
}

// bucketMissing is for what asks for no object: what is not there then is the bucket.
func bucketMissing(err error) error {
	if errors.Is(err, ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNoBucket, final{errors.New(err.Error())})
	}
	return err
}

// gcsError gives an error its meaning (Cloud Storage's documentation, "HTTP status
// and error codes for JSON").
func gcsError(err error) error {
	var answer *googleapi.Error
	var login *auth.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrBucketNotExist):
		return fmt.Errorf("%w: %w", ErrNoBucket, err)
	case errors.Is(err, storage.ErrObjectNotExist):
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	case errors.As(err, &login) && login.Response != nil:
		return loginError(login.Response.StatusCode, err)
	case !errors.As(err, &answer):
		return err
	case answer.Code == http.StatusNotFound:
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	case answer.Code == http.StatusForbidden && limited(answer):
		return err
	}
	return byStatus(answer.Code, err)
}

// limited says that there were too many requests, not too few rights.
func limited(answer *googleapi.Error) bool {
	for _, item := range answer.Errors {
		if strings.HasSuffix(strings.ToLower(item.Reason), "ratelimitexceeded") {
			return true
		}
	}
	return false
}

// loginError is for the answer of a server that was asked who this is: a bad
// request is one with credentials that are wrong (RFC 6749, 5.2).
func loginError(status int, err error) error {
	if status == http.StatusBadRequest {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return byStatus(status, err)
}
