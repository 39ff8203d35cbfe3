package cluster

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

	"toban.dev/internal/cli/root"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
)

// Execution is a program that runs in an instance's container, with the rights of the person who calls the command: it
// takes the right to create pods/exec.
type Execution struct {
	Pod     string
	Command []string
	In      io.Reader // nil for none
	Out     io.Writer
	// Err is where its standard error goes; nil for a terminal, which has one stream.
	Err      io.Writer
	Terminal *show.Terminal
}

// Run runs it until it ends. Its error is a root.ExitError where the program ends with another code than 0.
func (e Execution) Run(ctx context.Context, at *Cluster) error {
	config, _, err := at.Rest()
	if err != nil {
		return err
	}
	executor, err := e.executor(config, at.Namespace)
	if err != nil {
		return fmt.Errorf("prepare to run %s in the Pod %s: %w", e.Command[0], e.Pod, err)
	}
	options := remotecommand.StreamOptions{Stdin: e.In, Stdout: e.Out, Stderr: e.Err}
	if e.Terminal != nil {
		options.Tty, options.TerminalSizeQueue, options.Stderr = true, e.Terminal, nil
	}
	err = executor.StreamWithContext(ctx, options)
	var ended exec.CodeExitError
	switch {
	case errors.As(err, &ended):
		return &root.ExitError{Code: ended.Code}
	case err != nil:
		return fmt.Errorf("run %s in the Pod %s: %w", e.Command[0], e.Pod, err)
	}
	return nil
}

// executor speaks WebSocket, and SPDY where something between here and the API server does not pass that on, as kubectl
// does.
func (e Execution) executor(config *rest.Config, namespace string) (remotecommand.Executor, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	url := clientset.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(e.Pod).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: naming.ContainerPostgreSQL, Command: e.Command,
		Stdin: e.In != nil, Stdout: true, Stderr: e.Terminal == nil, TTY: e.Terminal != nil,
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
