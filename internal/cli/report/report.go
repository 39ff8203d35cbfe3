package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
)

const (
	// reportLines is how much of each log is in a report, reportBytes at most so much.
	reportLines = 5000
	reportBytes = 4 << 20
)

type reportOptions struct {
	cluster.Cluster
	file    string
	version string
	parts   Parts
}

// Parts are what other verbs show of a SampleDB, and a report has too: nil where the program does not have the verb.
type Parts struct {
	// Status is what `toban status` shows.
	Status func(ctx context.Context, at *cluster.Cluster, api client.Reader, db *v1.SampleDB) (string, error)
	// Top is what `toban top` shows for programs, with statements and other texts without what may be secret.
	Top func(ctx context.Context, at cluster.Cluster, name string, statement, text func(string) string) (any, error)
}

// Report is `toban report`: all that somebody needs to help with a SampleDB, without secrets.
func Report(version string, parts Parts) *cobra.Command {
	o := reportOptions{version: version, parts: parts}
	c := &cobra.Command{
		Use:   "report NAME",
		Short: "Write what is known of a SampleDB into a file, for those who help: without secrets",
		Long: "Writes a compressed archive with the SampleDB and what belongs to it, its status, the events, the\n" +
			"end of the logs, versions, and a snapshot of `kubectl toban top`. What you have no right to read is\n" +
			"left out; problems.txt says so.\n\n" +
			"Secrets are not read. Annotations that are not Toban's, values of environments, and what looks like a\n" +
			"password, a key or a token are taken out, also of the logs. Logs may have statements with your data:\n" +
			"look through the file before you pass it on.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	f := c.Flags()
	o.Flags(f)
	f.StringVarP(&o.file, "file", "f", "", "the file to write (default: NAME-report-TIME.tar.gz here)")
	return c
}

// shownReport is what was written.
type shownReport struct {
	File string `json:"file"`
	// Files are those in it.
	Files []string `json:"files"`
	// Problems are what could not be read.
	Problems []string `json:"problems,omitempty"`
}

func (s shownReport) write(out io.Writer) error {
	for _, problem := range s.Problems {
		fmt.Fprintln(out, "left out:", problem)
	}
	_, err := fmt.Fprintf(out, "%s has %d files. Look through them before you pass them on.\n", s.File, len(s.Files))
	return err
}

func (o *reportOptions) run(c *cobra.Command, name string) (err error) {
	if err := o.Output.Check(); err != nil {
		return err
	}
	api, db, err := o.Find(c.Context(), name)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	root := name + "-report-" + now.Format("20060102-150405")
	if o.file == "" {
		o.file = root + ".tar.gz"
	}
	file, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create the report: %w", err)
	}
	r := report{reportOptions: o, api: api, db: db, bundle: newBundle(file, root, now)}
	err = r.collect(c.Context())
	if err = errors.Join(err, r.bundle.close(), file.Close()); err != nil {
		return err
	}
	shown := shownReport{o.file, r.bundle.files, r.problems}
	return o.Output.Show(c.OutOrStdout(), shown, shown.write)
}

// report is one run.
type report struct {
	*reportOptions
	api      client.Client
	db       *v1.SampleDB
	bundle   *bundle
	problems []string
}

// collect writes all parts. What can't be read is a problem of the report, and no error.
func (r *report) collect(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		r.addVersions, r.addStatus, r.addObjects, r.addEvents, r.addLogs, r.addTop,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if len(r.problems) == 0 {
		return nil
	}
	return r.bundle.add("problems.txt", []byte(redactText(strings.Join(r.problems, "\n"))+"\n"))
}

// lacks notes what could not be read.
func (r *report) lacks(what string, err error) {
	r.problems = append(r.problems, fmt.Sprintf("%s: %v", what, err))
}

func (r *report) addVersions(context.Context) error {
	text := fmt.Sprintf("command: %s\nPostgreSQL: %s\n", r.version, r.db.Status.Version)
	config, _, err := r.Rest()
	if err != nil {
		return err
	}
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err == nil {
		if info, asked := server.ServerVersion(); asked == nil {
			text += fmt.Sprintf("Kubernetes: %s (%s)\n", info.GitVersion, info.Platform)
		} else {
			err = asked
		}
	}
	if err != nil {
		r.lacks("the version of Kubernetes", err)
	}
	return r.bundle.add("versions.txt", []byte(text))
}

func (r *report) addStatus(ctx context.Context) error {
	if r.parts.Status == nil {
		return nil
	}
	text, err := r.parts.Status(ctx, &r.Cluster, r.api, r.db)
	if err != nil {
		return err
	}
	return r.bundle.add("status.txt", []byte(redactText(text)))
}

// addLogs writes the end of the logs of all Pods of the SampleDB, those of Jobs too, and of a container before its last
// restart.
func (r *report) addLogs(ctx context.Context) error {
	pods, err := r.pods(ctx)
	if err != nil {
		r.lacks("the Pods", err)
		return nil
	}
	open, err := r.Opener()
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if err := r.addLog(ctx, open, pod.Name, c.Name, false); err != nil {
				return err
			}
			if c.RestartCount == 0 {
				continue
			}
			if err := r.addLog(ctx, open, pod.Name, c.Name, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *report) addLog(ctx context.Context, open cluster.OpenLog, pod, container string, previous bool) error {
	lines, size, name := int64(reportLines), int64(reportBytes), "logs/"+pod+"/"+container+".log"
	if previous {
		name = "logs/" + pod + "/" + container + ".previous.log"
	}
	stream, err := open(ctx, pod, corev1.PodLogOptions{
		Container: container, TailLines: &lines, LimitBytes: &size, Previous: previous,
	})
	if err != nil {
		r.lacks(name, err)
		return nil
	}
	defer stream.Close()
	content, err := io.ReadAll(stream)
	if err != nil {
		r.lacks(name, err)
	}
	return r.bundle.add(name, []byte(redactText(string(content))))
}

// addTop writes what the primary's sessions do. The statements have no constants in them.
func (r *report) addTop(ctx context.Context) error {
	if r.parts.Top == nil {
		return nil
	}
	shown, err := r.parts.Top(ctx, r.Cluster, r.db.Name,
		func(statement string) string { return redactText(redactStatement(statement)) }, redactText)
	if err != nil {
		r.lacks("top", err)
		return nil
	}
	content, err := yaml.Marshal(shown)
	if err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return r.bundle.add("top.yaml", content)
}
