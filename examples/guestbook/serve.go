package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// longestRequest bounds a request from its first byte to the last one of its answer; patience is within it.
	longestRequest = time.Minute
	// lastRequests is how long requests that have begun may take when the program ends.
	lastRequests = 10 * time.Second
)

// serve answers until ctx ends. Then it says that it is not ready any more, answers those who do not know that yet
// for a while, and ends when the last request is answered: whoever deletes the Pod, no visitor notices.
func serve(ctx context.Context, s site, listen string, drain time.Duration) error {
	ending := &atomic.Bool{}
	server := &http.Server{
		Handler: s.handler(ending), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: longestRequest,
		WriteTimeout: longestRequest,
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	s.log.Info("serving", "address", listener.Addr().String(), "pod", s.pod, "version", s.book.version)
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	ending.Store(true)
	s.log.Info("ending", "drain", drain.String())
	time.Sleep(drain) // nobody says when the last proxy has heard of it
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRequests)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return errors.Join(fmt.Errorf("requests were cut off after %s: %w", lastRequests, err), server.Close())
	}
	s.log.Info("ended")
	return nil
}
