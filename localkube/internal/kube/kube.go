// Package kube is the little that is needed of a client of the API server.
package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"toban.dev/localkube/internal/pki"
)

// A Client speaks to one API server with one certificate.
type Client struct {
	server string
	http   *http.Client
}

// New returns a client that is who the pair called user says.
func New(server string, store pki.Store, user string) (*Client, error) {
	ca, err := os.ReadFile(store.Cert("ca"))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(store.Cert(user), store.Key(user))
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", user, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &Client{server: server, http: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
			ForceAttemptHTTP2: true,
		},
		Timeout: 10 * time.Second,
	}}, nil
}

// Ready returns nil once the API server has started completely.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/readyz", "", nil)
	return err
}

// Apply makes the object at path be as the YAML says.
func (c *Client) Apply(ctx context.Context, path, yaml string) error {
	_, err := c.do(ctx, http.MethodPatch, path+"?fieldManager=localkube&force=true",
		"application/apply-patch+yaml", []byte(yaml))
	return err
}

// Has returns nil if there is an object at path.
func (c *Client) Has(ctx context.Context, path string) error {
	_, err := c.do(ctx, http.MethodGet, path, "", nil)
	return err
}

// NodesReady returns for every node that has registered whether it is Ready.
func (c *Client) NodesReady(ctx context.Context) (map[string]bool, error) {
	body, err := c.do(ctx, http.MethodGet, "/api/v1/nodes", "", nil)
	if err != nil {
		return nil, err
	}
	return parseNodes(body)
}

func parseNodes(body []byte) (map[string]bool, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read the list of nodes: %w", err)
	}
	ready := make(map[string]bool, len(list.Items))
	for _, item := range list.Items {
		ready[item.Metadata.Name] = false
		for _, condition := range item.Status.Conditions {
			if condition.Type == "Ready" {
				ready[item.Metadata.Name] = condition.Status == "True"
			}
		}
	}
	return ready, nil
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(answer))
	}
	return answer, nil
}
