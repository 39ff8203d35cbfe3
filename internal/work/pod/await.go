package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"toban.dev/internal/protocol"
)

// Awaiting is a Pod that does its work when the operator tells it to begin, and then tells what has come of it.
type Awaiting struct {
	Pod
	refuses func(id string) string

	once, toldOnce sync.Once
	// begun is closed when it is told to begin, told when the operator knows the result.
	begun, told chan struct{}
}

// Await has it be told to begin. refuses says why it is not the one that is told to begin with an id, "" where it is. A
// progress that has the result is one by which the operator knows it.
func (a *Awaiting) Await(refuses func(id string) string, hasResult func(protocol.BackupProgress) bool) {
	a.refuses = refuses
	a.begun, a.told = make(chan struct{}), make(chan struct{})
	a.Progress.More = map[string]http.HandlerFunc{"POST " + protocol.PathBegin: a.onBegin}
	a.Progress.Answered = func(p protocol.BackupProgress) {
		if hasResult(p) {
			a.toldOnce.Do(func() { close(a.told) })
		}
	}
}

// AwaitBegin waits until it is told to begin.
func (a *Awaiting) AwaitBegin(ctx context.Context) error {
	a.Progress.Step(protocol.StepAwaitsBegin)
	select {
	case <-a.begun:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", protocol.StepAwaitsBegin, ctx.Err())
	}
}

// tellPatience is for how long it waits for the operator to ask what has come of it. An operator that is away reads it
// from the Pod's termination message.
const tellPatience = 5 * time.Second

// Tell waits until the operator has asked what has come of it, and says whether it has.
func (a *Awaiting) Tell(ctx context.Context, progress protocol.BackupProgress) bool {
	a.Progress.Set(progress)
	patience := time.NewTimer(tellPatience)
	defer patience.Stop()
	select {
	case <-a.told:
		return true
	case <-patience.C:
	case <-ctx.Done():
	}
	return false
}

// onBegin is told to begin. It may be told again.
func (a *Awaiting) onBegin(w http.ResponseWriter, request *http.Request) {
	var begin protocol.UpgradeBegin
	if err := json.NewDecoder(io.LimitReader(request.Body, MaxTermination)).Decode(&begin); err != nil {
		http.Error(w, "understand the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	if why := a.refuses(begin.ID); why != "" {
		http.Error(w, why, http.StatusConflict)
		return
	}
	a.once.Do(func() { close(a.begun) })
	a.Progress.Answer(w, request)
}
