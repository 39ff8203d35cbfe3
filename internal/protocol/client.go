package protocol

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxBody bounds what is read of a message (bytes): a Config with the longest legal lists is far smaller.
	maxBody = 4 << 20
	// maxComplaint bounds what of a refusal gets into an error (bytes).
	maxComplaint = 1000
)

// Client talks to the agents of one SampleDB.
type Client struct {
	http *http.Client
	port int
}

// NewClient makes a client that shows its certificate and trusts an agent whose
// certificate is from the SampleDB's own authority and says IdentityInstance.
func NewClient(config *tls.Config, port int) *Client {
	transport := &http.Transport{
		TLSClientConfig:     config,
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		TLSHandshakeTimeout: 3 * time.Second,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     30 * time.Second,
	}
	return &Client{http: &http.Client{Transport: transport}, port: port}
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks an agent how its instance is. The host is a name or an address.
func (c *Client) Status(ctx context.Context, host string) (Status, error) {
	return c.call(ctx, http.MethodGet, host, PathStatus, nil)
}

// Sync gives an agent its config and returns how its instance is.
func (c *Client) Sync(ctx context.Context, host string, config Config) (Status, error) {
	return c.call(ctx, http.MethodPost, host, PathSync, config)
}

// Restart asks an agent to restart its PostgreSQL server.
func (c *Client) Restart(ctx context.Context, host string, request Restart) (Status, error) {
	return c.call(ctx, http.MethodPost, host, PathRestart, request)
}

// Switchover asks the primary's agent to hand over to another instance.
func (c *Client) Switchover(ctx context.Context, host string, request Switchover) (Status, error) {
	return c.call(ctx, http.MethodPost, host, PathSwitchover, request)
}

func (c *Client) call(ctx context.Context, method, host, path string, in any) (Status, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return Status{}, fmt.Errorf("encode request to %s: %w", host, err)
		}
		body = bytes.NewReader(text)
	}
	url := "https://" + net.JoinHostPort(host, strconv.Itoa(c.port)) + path
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return Status{}, fmt.Errorf("make request to %s: %w", host, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Status{}, fmt.Errorf("ask the agent at %s: %w", host, err)
	}
	defer response.Body.Close()
	return decode(host, response)
}

func decode(host string, response *http.Response) (Status, error) {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return Status{}, fmt.Errorf("read the answer of the agent at %s: %w", host, err)
	}
	if response.StatusCode != http.StatusOK {
		return Status{}, fmt.Errorf("the agent at %s answers %s: %s", host, response.Status, complaint(text))
	}
	if len(text) > maxBody {
		return Status{}, fmt.Errorf("the answer of the agent at %s is longer than %d bytes", host, maxBody)
	}
	var status Status
	if err := json.Unmarshal(text, &status); err != nil {
		return Status{}, fmt.Errorf("understand the answer of the agent at %s: %w", host, err)
	}
	return status, nil
}

// complaint is a refusal's text, cut to what fits into a log line.
func complaint(text []byte) string {
	if len(text) > maxComplaint {
		return strings.ToValidUTF8(string(text[:maxComplaint]), "") + "…"
	}
	return strings.TrimSpace(string(text))
}
