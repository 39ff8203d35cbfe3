package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// maxLine bounds a line of the audit log (bytes).
const maxLine = 1 << 20

// requests are how many of the operator's requests the API server has answered, by what they do.
type requests struct {
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
	// Refused are the writes that were answered with an error and so changed nothing: a Secret exists.
	Refused int `json:"refused"`
	// Which are all, by verb and kind.
	Which map[string]int `json:"which,omitempty"`
}

// audited is a line of the API server's audit log.
type audited struct {
	Verb           string    `json:"verb"`
	StageTimestamp time.Time `json:"stageTimestamp"`
	ObjectRef      struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// count are the requests that were answered in a window.
func count(log io.Reader, from, until time.Time) (requests, error) {
	out := requests{Which: map[string]int{}}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var a audited
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return out, fmt.Errorf("understand the audit log: %w", err)
		}
		if !a.StageTimestamp.Before(from) && a.StageTimestamp.Before(until) {
			out.add(a)
		}
	}
	return out, lines.Err()
}

func (r *requests) add(a audited) {
	switch a.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		r.Writes++
		if a.ResponseStatus.Code >= http.StatusBadRequest {
			r.Refused++
		}
	default:
		r.Reads++
	}
	kind := a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		kind += "/" + a.ObjectRef.Subresource
	}
	r.Which[a.Verb+" "+kind]++
}

// requests are those of the operator in a window.
func (s *server) requests(from, until time.Time) (requests, error) {
	file, err := os.Open(s.audit)
	if err != nil {
		return requests{}, err
	}
	defer file.Close()
	return count(file, from, until)
}
