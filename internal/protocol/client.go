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

	"toban.dev/internal/ha"
)

const (
	// maxBody bounds what is read of a message (bytes): a Config with the longest legal lists is far smaller.
	maxBody = 4 << 20
	// maxConnections is how many connections there are to one agent at the most.
	maxConnections = 12
	// maxComplaint bounds what of a refusal gets into an error (bytes).
	maxComplaint = 1000
)

// Client talks to the agents of one SampleDB.
type Client struct {
	http *http.Client
	// elections is for votes and configurations, which wait behind nothing else.
	elections *http.Client
	port      int
}

// NewClient makes a client that shows its certificate and trusts an agent whose
// certificate is from the SampleDB's own authority and says IdentityInstance.
func NewClient(config *tls.Config, port int) *Client {
	transport := &http.Transport{
		TLSClientConfig:     config,
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second, Control: thin}).DialContext,
		TLSHandshakeTimeout: 3 * time.Second,
		// Heartbeats go out though the one before is still on its way: each needs a connection. There are no more than
		// are kept: on a busy machine, making new ones would be all that is done.
		MaxIdleConnsPerHost: maxConnections,
		MaxConnsPerHost:     maxConnections,
		IdleConnTimeout:     30 * time.Second,
	}
	elections := transport.Clone()
	elections.MaxConnsPerHost = 0
	return &Client{
		http: &http.Client{Transport: transport}, elections: &http.Client{Transport: elections}, port: port,
	}
}

// DialBy has the client connect by another function than the network's.
func (c *Client) DialBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	for _, transport := range c.transports() {
		transport.DialContext = dial
	}
}

// KeepIdle has the client keep connections over which nothing goes for another time than peers want.
func (c *Client) KeepIdle(d time.Duration) {
	for _, transport := range c.transports() {
		transport.IdleConnTimeout = d
	}
}

func (c *Client) transports() (all []*http.Transport) {
	for _, client := range []*http.Client{c.http, c.elections} {
		if transport, ok := client.Transport.(*http.Transport); ok {
			all = append(all, transport)
		}
	}
	return all
}

// Close drops the idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.elections.CloseIdleConnections()
}

// Status asks an agent how its instance is. The host is a name or an address.
func (c *Client) Status(ctx context.Context, host string) (Status, error) {
	return call[Status](ctx, c, host, PathStatus, nil)
}

// Sync gives an agent its config and returns how its instance is.
func (c *Client) Sync(ctx context.Context, host string, config Config) (Status, error) {
	return call[Status](ctx, c, host, PathSync, config)
}

// Restart asks an agent to restart its PostgreSQL server.
func (c *Client) Restart(ctx context.Context, host string, request Restart) (Status, error) {
	return call[Status](ctx, c, host, PathRestart, request)
}

// Switchover asks the primary's agent to leave the lead to another instance.
func (c *Client) Switchover(ctx context.Context, host string, request Switchover) (Status, error) {
	return call[Status](ctx, c, host, PathSwitchover, request)
}

// Publish asks the primary's agent to have the Services lead to its instance, and to no other: they do not.
func (c *Client) Publish(ctx context.Context, host string) (Status, error) {
	return call[Status](ctx, c, host, PathPublish, struct{}{})
}

// Vote asks another instance for its vote.
func (c *Client) Vote(ctx context.Context, host string, request ha.VoteRequest) (ha.VoteReply, error) {
	return call[ha.VoteReply](ctx, c, host, PathVote, request)
}

// ProposeConfiguration proposes to another instance the configuration of the quorum.
func (c *Client) ProposeConfiguration(ctx context.Context, host string, proposal Proposal) (ha.AcceptReply, error) {
	return call[ha.AcceptReply](ctx, c, host, PathRecord, proposal)
}

// News tells another instance how this one is, and returns how that one is.
func (c *Client) News(ctx context.Context, host string, status Status) (Status, error) {
	return call[Status](ctx, c, host, PathNews, status)
}

// call sends in as JSON and reads the answer; without in it only asks.
func call[Answer any](ctx context.Context, c *Client, host, path string, in any) (Answer, error) {
	var none Answer
	var body io.Reader
	method := http.MethodGet
	if in != nil {
		method = http.MethodPost
		text, err := json.Marshal(in)
		if err != nil {
			return none, fmt.Errorf("encode request to %s: %w", host, err)
		}
		body = bytes.NewReader(text)
	}
	url := "https://" + net.JoinHostPort(host, strconv.Itoa(c.port)) + path
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return none, fmt.Errorf("make request to %s: %w", host, err)
	}
	by := c.http
	if path == PathVote || path == PathRecord {
		by = c.elections
	}
	response, err := by.Do(request)
	if err != nil {
		return none, fmt.Errorf("ask the agent at %s: %w", host, err)
	}
	defer response.Body.Close()
	return decode[Answer](host, response)
}

func decode[Answer any](host string, response *http.Response) (Answer, error) {
	var none, answer Answer
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return none, fmt.Errorf("read the answer of the agent at %s: %w", host, err)
	}
	if response.StatusCode != http.StatusOK {
		return none, fmt.Errorf("the agent at %s answers %s: %s", host, response.Status, complaint(text))
	}
	if len(text) > maxBody {
		return none, fmt.Errorf("the answer of the agent at %s is longer than %d bytes", host, maxBody)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return none, fmt.Errorf("understand the answer of the agent at %s: %w", host, err)
	}
	return answer, nil
}

// complaint is a refusal's text, cut to what fits into a log line.
func complaint(text []byte) string {
	if len(text) > maxComplaint {
		return strings.ToValidUTF8(string(text[:maxComplaint]), "") + "…"
	}
	return strings.TrimSpace(string(text))
}
