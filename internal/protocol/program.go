package protocol

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// PathProgram is where the operator gives an agent another program to go on as: POST, with the program as the body and
// what it is in the headers. The answer is a Status: the program has been taken and rehearsed. When the agent goes on
// as it, its Status says so.
const PathProgram = "/v1/agent"

// Headers of a request to PathProgram: the program's hash (SHA-256, in hexadecimal) and its architecture.
const (
	HeaderProgram      = "Toban-Program-Sha256"
	HeaderArchitecture = "Toban-Program-Architecture"
)

// MaxProgram bounds a program (bytes).
const MaxProgram = 512 << 20

// Program is which program an agent runs.
type Program struct {
	// SHA256 is its hash in hexadecimal, Architecture what it was built for, as Go calls it.
	SHA256       string `json:"sha256"`
	Architecture string `json:"architecture"`
	// Failed is a program that was given and that the agent does not run, nil for none.
	Failed *ProgramFailure `json:"failed,omitempty"`
}

// ProgramFailure is why an agent does not run a program.
type ProgramFailure struct {
	SHA256  string `json:"sha256"`
	Message string `json:"message"`
	// Busy says that the moment was not good. The program may be given again.
	Busy bool `json:"busy,omitempty"`
}

// GiveProgram gives an agent a program to go on as.
func (c *Client) GiveProgram(ctx context.Context, host string, is Program, size int64, body io.Reader) (Status, error) {
	url := "https://" + net.JoinHostPort(host, strconv.Itoa(c.port)) + PathProgram
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return Status{}, fmt.Errorf("make request to %s: %w", host, err)
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/octet-stream")
	request.Header.Set(HeaderProgram, is.SHA256)
	request.Header.Set(HeaderArchitecture, is.Architecture)
	response, err := c.http.Do(request)
	if err != nil {
		return Status{}, fmt.Errorf("give the agent at %s its program: %w", host, err)
	}
	defer response.Body.Close()
	return decode[Status](host, response)
}
