package bucket

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// azurePage is how many objects Azure lists at most in a request.
const azurePage = 5000

// azureStore speaks Azure Blob Storage's protocol.
type azureStore struct{ container *container.Client }

func openAzure(config Config, with *http.Client) (store, error) {
	c := config.Azure
	endpoint, err := parseURL("azure.endpoint", cmp.Or(c.Endpoint, "https://"+c.Account+".blob.core.windows.net"))
	if err != nil {
		return nil, err
	}
	common := azcore.ClientOptions{Transport: with, Retry: policy.RetryOptions{MaxRetries: -1}}
	opened, err := azureClient(config, endpoint.JoinPath(c.Container).String(), common)
	if err != nil {
		return nil, fmt.Errorf("Azure: %w", err)
	}
	return azureStore{opened}, nil
}

// azureClient makes a client with the credentials that there are.
func azureClient(config Config, url string, common azcore.ClientOptions) (*container.Client, error) {
	options := &container.ClientOptions{ClientOptions: common}
	key, err1 := config.secret(fileAccountKey)
	sas, err2 := config.secret(fileSAS)
	switch err := errors.Join(err1, err2); {
	case err != nil:
		return nil, err
	case key != "":
		shared, err := blob.NewSharedKeyCredential(config.Azure.Account, key)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrDenied, fileAccountKey, err)
		}
		return container.NewClientWithSharedKeyCredential(url, shared, options)
	case sas != "":
		return container.NewClientWithNoCredential(url+"?"+strings.TrimPrefix(sas, "?"), options)
	}
	identity, err := azidentity.NewDefaultAzureCredential(
		&azidentity.DefaultAzureCredentialOptions{ClientOptions: common})
	if err != nil {
		return nil, fmt.Errorf("%w: find out who this is to Azure: %w", ErrDenied, err)
	}
	return container.NewClient(url, identity, options)
}

// put writes an object in one request, with a sum that the server checks.
func (s azureStore) put(ctx context.Context, name string, content []byte, create bool) error {
	options := &blockblob.UploadOptions{TransactionalValidation: blob.TransferValidationTypeComputeCRC64()}
	if create {
		all := azcore.ETagAny
		options.AccessConditions = &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &all},
		}
	}
	_, err := s.container.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), options)
	return azureError(err)
}

func (s azureStore) get(ctx context.Context, name string) (io.ReadCloser, error) {
	answer, err := s.container.NewBlobClient(name).DownloadStream(ctx, nil)
	if err != nil {
		return nil, azureError(err)
	}
	return answer.Body, nil
}

func (s azureStore) page(ctx context.Context, prefix, after, from string) ([]Object, string, error) {
	options := &container.ListBlobsFlatOptions{Prefix: &prefix, MaxResults: new(int32(pageSize))}
	if after != "" {
		options.MaxResults = new(int32(azurePage)) // what comes before is gone through
	}
	if from != "" {
		options.Marker = &from
	}
	answer, err := s.container.NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return nil, "", azureError(err)
	}
	objects := make([]Object, 0, len(answer.Segment.BlobItems))
	for _, item := range answer.Segment.BlobItems {
		if item.Name == nil || item.Properties == nil {
			return nil, "", errors.New("Azure lists an object without a name or properties")
		}
		objects = append(objects, Object{
			Name: *item.Name, Size: value(item.Properties.ContentLength), Modified: value(item.Properties.LastModified),
		})
	}
	return objects, value(answer.NextMarker), nil
}

func value[T int64 | string | time.Time](pointer *T) T {
	var none T
	if pointer == nil {
		return none
	}
	return *pointer
}

func (s azureStore) remove(ctx context.Context, names []string) error {
	return each(ctx, names, func(ctx context.Context, name string) error {
		_, err := s.container.NewBlobClient(name).Delete(ctx, nil)
		if err = azureError(err); errors.Is(err, ErrNotExist) {
			return nil
		}
		return err
	})
}

// azureError gives an error its meaning (Azure's documentation, "Blob Storage error codes").
func azureError(err error) error {
	var answer *azcore.ResponseError
	var login *azidentity.AuthenticationFailedError
	switch {
	case err == nil:
		return nil
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	case bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted):
		return fmt.Errorf("%w: %w", ErrNoBucket, err)
	case bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet):
		return fmt.Errorf("%w: %w", ErrExists, err)
	case bloberror.HasCode(err, bloberror.UnauthorizedBlobOverwrite, bloberror.BlobImmutableDueToPolicy):
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case errors.As(err, &login) && login.RawResponse != nil:
		return loginError(login.RawResponse.StatusCode, err)
	case errors.As(err, &answer):
		return byStatus(answer.StatusCode, err)
	}
	return err
}
