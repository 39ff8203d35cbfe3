//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// web makes a connection for each request: it is for each connection that a Service chooses a Pod.
var web = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func get(ctx context.Context, url string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	return send(request)
}

func send(request *http.Request) (status int, body string, err error) {
	response, err := web.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// address is a Service's, from this machine.
func (s *story) address(service string) string {
	s.Helper()
	return "http://" + s.run("get", "service", service, "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
}

// guests is the guest book at an address.
type guests string

// answered is what the guest book says with each answer.
type answered struct {
	Pod     string
	Version int
	Error   string
	Entries []struct{ ID, Name, Place string }
}

func (g guests) ask(ctx context.Context, path string) (answered, error) {
	status, body, err := get(ctx, string(g)+path)
	return understood(status, body, err)
}

// write leaves an entry. Sent again with the same id it is the same entry.
func (g guests) write(ctx context.Context, id, name string) (answered, error) {
	text := fmt.Sprintf(`{"id":%q,"name":%q,"message":"hello","place":"Mitaka"}`, id, name)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, string(g)+"/entries", strings.NewReader(text))
	if err != nil {
		return answered{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	return understood(send(request))
}

func understood(status int, body string, err error) (answered, error) {
	var a answered
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		return a, fmt.Errorf("%d: %q: %w", status, body, err)
	}
	if status >= http.StatusBadRequest {
		return a, fmt.Errorf("%d: %s", status, a.Error)
	}
	return a, nil
}
