package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/naming"
)

// logsPoll is how often it is looked whether there are other Pods to follow.
const logsPoll = 2 * time.Second

type logsOptions struct {
	cluster.Cluster
	instance        string
	follow          bool
	since           time.Duration
	tail            int64
	agent, postgres bool
}

// Logs is `toban logs`: what the instances of a SampleDB have logged, as one.
func Logs() *cobra.Command {
	var o logsOptions
	c := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show the logs of all instances of a SampleDB, in the order of their time",
		Long: "Shows what PostgreSQL and the agents have logged in all instances, merged by time. In front of\n" +
			"each line are the instance and the role that it has now. You need the right to get pods/log.\n\n" +
			"The logs of Pods that are gone are not there any more. A line that is a JSON object of the agent\n" +
			"counts as the agent's, any other as PostgreSQL's.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), c.OutOrStdout(), args[0]) },
	}
	f := c.Flags()
	o.Reach(f)
	f.StringVarP(&o.Output.Format, "output", "o", "", "json, for programs: an object in each line (default: text)")
	f.StringVar(&o.instance, "instance", "", "only the log of this instance")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what is logged from now on")
	f.DurationVar(&o.since, "since", 0, "only what is newer, such as 10m (default: all that is there)")
	f.Int64Var(&o.tail, "tail", -1, "only so many lines of each instance (default: all)")
	f.BoolVar(&o.postgres, "postgres", false, "only what PostgreSQL has logged")
	f.BoolVar(&o.agent, "agent", false, "only what the agents have logged")
	c.MarkFlagsMutuallyExclusive("postgres", "agent")
	return c
}

// Last are the last lines of all instances, or of one, as programs get them.
func Last(ctx context.Context, at cluster.Cluster, name, instance string, lines int64) ([]byte, error) {
	o := logsOptions{Cluster: at, instance: instance, tail: lines}
	o.Output.Format = "json"
	api, err := o.Connect()
	if err != nil {
		return nil, err
	}
	pods, err := o.chosen(ctx, api, name)
	if err != nil {
		return nil, err
	}
	open, err := o.Opener()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = o.showAll(ctx, &out, pods, open)
	return out.Bytes(), err
}

func (o *logsOptions) run(ctx context.Context, out io.Writer, name string) error {
	if o.Output.Format != "" && o.Output.Format != "json" {
		return fmt.Errorf("--output must be json or nothing, not %q", o.Output.Format)
	}
	api, _, err := o.Find(ctx, name)
	if err != nil {
		return err
	}
	pods, err := o.chosen(ctx, api, name)
	if err != nil {
		return err
	}
	open, err := o.Opener()
	if err != nil {
		return err
	}
	if o.follow {
		return o.followAll(ctx, out, api, name, open)
	}
	return o.showAll(ctx, out, pods, open)
}

// chosen are the Pods whose logs are asked for.
func (o *logsOptions) chosen(ctx context.Context, api client.Reader, name string) ([]corev1.Pod, error) {
	pods, err := o.InstancePods(ctx, api, name)
	if err != nil || o.instance == "" {
		return pods, err
	}
	for _, pod := range pods {
		if pod.Name == o.instance {
			return []corev1.Pod{pod}, nil
		}
	}
	_, err = cluster.InstanceChoice{Name: o.instance}.Pick(name, pods)
	return nil, err
}

// from are the options of the log as the person asks for it.
func (o *logsOptions) from() (out corev1.PodLogOptions) {
	if o.since > 0 {
		seconds := max(int64(o.since/time.Second), 1)
		out.SinceSeconds = &seconds
	}
	if o.tail >= 0 {
		out.TailLines = &o.tail
	}
	return out
}

// showAll shows what there is, merged. A log that can't be read is an error, after all others are shown.
func (o *logsOptions) showAll(ctx context.Context, out io.Writer, pods []corev1.Pod, open cluster.OpenLog) error {
	var logs []*podLog
	var failed error
	from := o.from()
	counts := o.tail >= 0 && (o.postgres || o.agent) // the kubelet would count the lines of the other one too
	if counts {
		from.TailLines = nil
	}
	for _, pod := range pods {
		stream, err := open(ctx, pod.Name, from)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		defer stream.Close()
		log := newPodLog(pod.Name, pod.Labels[naming.LabelRole], stream)
		if counts {
			log.keepLast(int(o.tail), o.wants)
		}
		logs = append(logs, log)
	}
	return errors.Join(mergeLogs(logs, func(l logLine) error { return o.write(out, l) }), failed)
}

// followAll shows what there is and what comes, of the Pods that are there and of those that come.
func (o *logsOptions) followAll(
	ctx context.Context, out io.Writer, api client.Reader, name string, open cluster.OpenLog,
) error {
	f := follower{open: open, from: o.from(), lines: make(chan logLine), ended: make(chan string),
		running: map[string]bool{}, last: map[string]time.Time{}, roles: map[string]string{}}
	tick := time.NewTicker(logsPoll)
	defer tick.Stop()
	for {
		if pods, err := o.chosen(ctx, api, name); err == nil { // else the API or the Pods are away for a moment
			f.begin(ctx, pods)
		}
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				again = true
			case pod := <-f.ended:
				f.running[pod] = false
			case line := <-f.lines:
				if line.Role = f.roles[line.Instance]; !f.isNew(line) {
					continue
				}
				if err := o.write(out, line); err != nil {
					return err
				}
			}
		}
	}
}

// follower follows the logs of Pods. All but its goroutines' channels belongs to the one that reads these.
type follower struct {
	open  cluster.OpenLog
	from  corev1.PodLogOptions
	lines chan logLine
	ended chan string
	// running are the Pods that are followed, last when the last line of each was, roles are those that they have now.
	running map[string]bool
	last    map[string]time.Time
	roles   map[string]string
}

// begin follows the Pods that are not followed yet, or not any more: from the last line on.
func (f *follower) begin(ctx context.Context, pods []corev1.Pod) {
	for _, pod := range pods {
		f.roles[pod.Name] = pod.Labels[naming.LabelRole]
		if f.running[pod.Name] {
			continue
		}
		options := f.from
		if last := f.last[pod.Name]; !last.IsZero() {
			since := metav1.NewTime(last)
			options = corev1.PodLogOptions{SinceTime: &since}
		}
		options.Follow = true
		f.running[pod.Name] = true
		go f.follow(ctx, pod.Name, options)
	}
}

// follow passes the lines of a log on until that ends. Why it ends does not matter: it is tried again.
func (f *follower) follow(ctx context.Context, pod string, options corev1.PodLogOptions) {
	defer func() {
		select {
		case f.ended <- pod:
		case <-ctx.Done():
		}
	}()
	stream, err := f.open(ctx, pod, options)
	if err != nil {
		return
	}
	defer stream.Close()
	for log := newPodLog(pod, "", stream); log.next(); {
		select {
		case f.lines <- log.line:
		case <-ctx.Done():
			return
		}
	}
}

// isNew says that a line was not shown before: a log that is opened again begins with the second of its last line.
func (f *follower) isNew(l logLine) bool {
	if !l.Time.After(f.last[l.Instance]) {
		return false
	}
	f.last[l.Instance] = l.Time
	return true
}

// wants says whether a line is of whom the person asks for.
func (o *logsOptions) wants(l logLine) bool {
	return (!o.postgres || l.Source == sourcePostgreSQL) && (!o.agent || l.Source == sourceAgent)
}

// write shows a line, if it is of what is asked for.
func (o *logsOptions) write(out io.Writer, l logLine) error {
	if !o.wants(l) {
		return nil
	}
	if !o.Output.Programs() {
		_, err := fmt.Fprintln(out, l)
		return err
	}
	return json.NewEncoder(out).Encode(l)
}
