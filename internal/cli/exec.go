package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
)

// ExitError is that a program in a Pod has ended with an exit code, after it has said why itself.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// execution is a program that runs in an instance's container, with the rights of the person who calls the command: it
// takes the right to create pods/exec.
type execution struct {
	pod     string
	command []string
	in      io.Reader // nil for none
	out     io.Writer
	// err is where its standard error goes; nil for a terminal, which has one stream.
	err      io.Writer
	terminal *show.Terminal
}

// run runs it until it ends. Its error is an ExitError where the program ends with another code than 0.
func (e execution) run(ctx context.Context, at *cluster) error {
	config, _, err := at.rest()
	if err != nil {
		return err
	}
	executor, err := e.executor(config, at.namespace)
	if err != nil {
		return fmt.Errorf("prepare to run %s in the Pod %s: %w", e.command[0], e.pod, err)
	}
	options := remotecommand.StreamOptions{Stdin: e.in, Stdout: e.out, Stderr: e.err}
	if e.terminal != nil {
		options.Tty, options.TerminalSizeQueue, options.Stderr = true, e.terminal, nil
	}
	err = executor.StreamWithContext(ctx, options)
	var ended exec.CodeExitError
	switch {
	case errors.As(err, &ended):
		return &ExitError{ended.Code}
	case err != nil:
		return fmt.Errorf("run %s in the Pod %s: %w", e.command[0], e.pod, err)
	}
	return nil
}

// executor speaks WebSocket, and SPDY where something between here and the API server does not pass that on, as kubectl
// does.
func (e execution) executor(config *rest.Config, namespace string) (remotecommand.Executor, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	url := clientset.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(e.pod).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: naming.ContainerPostgreSQL, Command: e.command,
		Stdin: e.in != nil, Stdout: true, Stderr: e.terminal == nil, TTY: e.terminal != nil,
	}, scheme.ParameterCodec).URL()
	socket, err := remotecommand.NewWebSocketExecutor(config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, "POST", url)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}
