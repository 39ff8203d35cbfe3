package bucket

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"toban.dev/internal/pki"
)

// maxComplaint bounds what of a refusal gets into an error (bytes).
const maxComplaint = 1000

// volumeStore speaks with our own server. What it reads is protected by TLS on the
// way, and by its length against being cut off.
type volumeStore struct {
	client *http.Client
	url    *url.URL
}

func openVolume(config Config) (store, error) {
	u, err := parseURL("volume.url", config.Volume.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" {
		return nil, fmt.Errorf("volume.url is %q: it must be https://", config.Volume.URL)
	}
	direct := transport(config.mutual())
	direct.Proxy = nil // it is in the same cluster
	return volumeStore{&http.Client{Transport: config.Clock.through(config.Way.Through(direct))}, u}, nil
}

// mutual is TLS with certificates on both sides. The files are read for each
// connection, so they may change.
func (c Config) mutual() *tls.Config {
	certificate := func() (tls.Certificate, error) {
		return tls.LoadX509KeyPair(filepath.Join(c.Credentials, fileCertificate), filepath.Join(c.Credentials, fileKey))
	}
	config := pki.ClientTLS(certificate, nil, c.Volume.Identity)
	config.VerifyConnection = func(state tls.ConnectionState) error {
		roots, err := c.roots()
		if err != nil {
			return err
		}
		if err := pki.ClientTLS(certificate, roots, c.Volume.Identity).VerifyConnection(state); err != nil {
			return final{err}
		}
		return nil
	}
	return config
}

func (c Config) roots() (*x509.CertPool, error) {
	file, err := c.secret(fileAuthority)
	if err != nil {
		return nil, err
	}
	roots, err := pki.Pool(cmp.Or(file, c.CA))
	if err != nil {
		return nil, fmt.Errorf("the volume's authority (ca, or the file %s): %w", fileAuthority, err)
	}
	return roots, nil
}

func (v volumeStore) put(ctx context.Context, name string, content []byte, create bool) error {
	sum := sha256.Sum256(content)
	header := http.Header{headerSum: {hex.EncodeToString(sum[:])}, "Expect": {"100-continue"}}
	if create {
		header.Set("If-None-Match", "*")
	}
	answer, err := v.ask(ctx, http.MethodPut, v.url.JoinPath(pathObjects, escaped(name)), content, header)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (v volumeStore) get(ctx context.Context, name string) (io.ReadCloser, error) {
	answer, err := v.ask(ctx, http.MethodGet, v.url.JoinPath(pathObjects, escaped(name)), nil, nil)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func (v volumeStore) page(ctx context.Context, prefix, after, from string) ([]Object, string, error) {
	u := v.url.JoinPath(pathList)
	u.RawQuery = url.Values{"prefix": {prefix}, "after": {cmp.Or(from, after)}}.Encode()
	answer, err := v.ask(ctx, http.MethodGet, u, nil, nil)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	var objects []Object
	decoder := json.NewDecoder(answer.Body)
	for {
		var l line
		switch err := decoder.Decode(&l); {
		case err != nil:
			return nil, "", fmt.Errorf("the listing is cut off: %w", err)
		case l.Last != nil:
			return objects, l.Last.Next, nil
		case l.Object == nil:
			return nil, "", errors.New("the listing has a line that is not known")
		}
		objects = append(objects, *l.Object)
	}
}

func (v volumeStore) remove(ctx context.Context, names []string) error {
	text, err := json.Marshal(names)
	if err != nil {
		return final{err}
	}
	answer, err := v.ask(ctx, http.MethodPost, v.url.JoinPath(pathDelete), text, nil)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// ask returns the answer if it is a good one.
func (v volumeStore) ask(
	ctx context.Context, method string, to *url.URL, body []byte, header http.Header,
) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, final{err}
	}
	for key, values := range header {
		request.Header[key] = values
	}
	answer, err := v.client.Do(request)
	if err != nil {
		return nil, refused(err)
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusNoContent {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxComplaint)) // the status says enough
	err = fmt.Errorf("the volume's server answers %s: %s",
		answer.Status, strings.ToValidUTF8(strings.TrimSpace(string(text)), ""))
	for _, known := range statuses {
		if known.status == answer.StatusCode {
			return nil, fmt.Errorf("%w: %w", known.err, err)
		}
	}
	return nil, byStatus(answer.StatusCode, err)
}

// refused tells a server that does not want our certificate from one that is away:
// crypto/tls calls what the other side complains of a remote error.
func refused(err error) error {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "remote error" {
		return fmt.Errorf("%w: the volume's server does not take our certificate: %w", ErrDenied, err)
	}
	return err
}

// escaped is a name as it goes into a path.
func escaped(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}
