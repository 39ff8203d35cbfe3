package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/root"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/postgres/sql"
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

// askDeadline is how long the server may take for one statement of a question.
const askDeadline = "10s"

// DatabasePostgres is the database that every server has.
const DatabasePostgres = "postgres"

// Question is a script of SQL whose statements each answer with a value in JSON. It begins with SET ROLE pg_monitor.
type Question struct {
	// Application is what the server calls the session.
	Application, Database, Script string
}

// Ask asks the server of a Pod by psql there, with the rights of the person who calls the command.
func (c *Cluster) Ask(ctx context.Context, pod string, q Question) ([]byte, error) {
	answer, err := c.askAt(ctx, pod, q, sql.Newest)
	if err != nil && strings.Contains(err.Error(), "unrecognized configuration parameter") {
		return c.askAt(ctx, pod, q, 0) // its server is older than some of the settings
	}
	return answer, err
}

// askAt asks a server of a major version.
func (c *Cluster) askAt(ctx context.Context, pod string, q Question, major int) ([]byte, error) {
	var answer, trouble bytes.Buffer
	err := Execution{
		Pod: pod, Command: q.command(major), In: strings.NewReader(q.Script), Out: &answer, Err: &trouble,
	}.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w: %s", pod, err, strings.TrimSpace(trouble.String()))
	}
	return answer.Bytes(), nil
}

// command is psql with the settings of every session of ours. It may read what pg_monitor may, and no more.
func (q Question) command(major int) []string {
	settings := sql.SettingsAt(major, naming.RoleSuperuser, map[string]string{
		"statement_timeout": askDeadline, "lock_timeout": askDeadline, "default_transaction_read_only": "on",
	})
	delete(settings, "role") // the script takes it, since the session has to begin as the superuser
	return []string{
		"env", "PGAPPNAME=" + q.Application, sql.OptionsVariable(settings),
		"psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
		"--dbname", q.Database, "--file", "-",
	}
}

// AppDatabase is the application's, or the one that every server has.
func AppDatabase(db *v1.SampleDB) string {
	if !desired.Initialises(db) {
		return DatabasePostgres
	}
	return desired.AppDatabase(db)
}

// OpenLog opens the log of a Pod, with the time in front of each line: that of an instance, or of the container that
// the options name.
type OpenLog func(ctx context.Context, pod string, options corev1.PodLogOptions) (io.ReadCloser, error)

// Opener opens the logs of Pods, with the rights of the person who calls the command.
func (c *Cluster) Opener() (OpenLog, error) {
	config, _, err := c.Rest()
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return func(ctx context.Context, pod string, options corev1.PodLogOptions) (io.ReadCloser, error) {
		options.Container, options.Timestamps = cmp.Or(options.Container, naming.ContainerPostgreSQL), true
		stream, err := clientset.CoreV1().Pods(c.Namespace).GetLogs(pod, &options).Stream(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the log of the Pod %s: %w", pod, err)
		}
		return stream, nil
	}, nil
}
