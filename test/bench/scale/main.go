// Command scale measures one operator with many SampleDBs: how long it takes to make them all and to begin with all of
// them there, what it costs at rest, and how soon it acts on an edit: at rest, while all others are changed at once,
// and while the agents of a tenth of them hang. kube-apiserver, etcd and the operator are real, each a process of its
// own. What is played is the rest of Kubernetes, and the agents, which answer by the real agent's own server of the
// protocol, over mTLS, and have no PostgreSQL. It needs bin/toban, KUBEBUILDER_ASSETS and an otherwise idle machine,
// and is started in the repository's folder: make bench-scale.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

type options struct {
	sizes                string
	edits, namespaces    int
	archived             int
	settle, rest         time.Duration
	program              string
	json, markdown, plot string
	render               bool
}

func main() {
	var o options
	flag.StringVar(&o.sizes, "sizes", "10,100,300,1000", "numbers of SampleDBs to measure; every third has 3 instances")
	flag.IntVar(&o.edits, "edits", 200, "how many edits of single SampleDBs to measure")
	flag.IntVar(&o.namespaces, "namespaces", 1, "over how many namespaces to spread the SampleDBs")
	flag.IntVar(&o.archived, "archived", 0,
		"how many of a hundred SampleDBs have backups, as by default; then let -settle be more than 10m, in which the "+
			"Jobs of the first backups stay, and -rest 10m, in which a status is written once")
	flag.DurationVar(&o.settle, "settle", 5*time.Minute, "how long after its start the operator is said to be at rest")
	flag.DurationVar(&o.rest, "rest", 5*time.Minute, "for how long to measure at rest")
	flag.StringVar(&o.program, "toban", "bin/toban", "the program")
	flag.StringVar(&o.json, "json", "", "file for what was measured; none by default")
	flag.StringVar(&o.markdown, "markdown", "", "page for the table; none by default")
	flag.StringVar(&o.plot, "plot", "", "file for an SVG of how each cost grows; none by default")
	flag.BoolVar(&o.render, "render", false, "measure nothing: write table and plot from the file of -json")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.render {
		all, err := readReport(o.json)
		if err != nil {
			return err
		}
		return o.present(all)
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return errors.New("KUBEBUILDER_ASSETS must be the folder with kube-apiserver and etcd: use make bench-scale")
	}
	ctrl.SetLogger(logr.Discard())
	log.SetOutput(io.Discard) // where the agents' servers tell of connections that were given up
	folder, err := os.MkdirTemp("", "toban-scale-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	return o.measure(ctx, folder)
}

// numbers are those in a list with commas.
func numbers(list string) (out []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-sizes %s: %q is no number of SampleDBs", list, text)
		}
		out = append(out, n)
	}
	return out, nil
}

// step is one that is done for each size, one after the other.
type step struct {
	name string
	do   func(*bench, context.Context) error
}

// measure does each step for all sizes before the next one. So all sizes rest at the same time, which takes long.
func (o options) measure(ctx context.Context, folder string) (err error) {
	sizes, err := numbers(o.sizes)
	if err != nil {
		return err
	}
	found := report{Date: time.Now().UTC().Format(time.DateOnly), Namespaces: o.namespaces, Archived: o.archived,
		Load: loadAverage()}
	var all []*bench
	defer func() {
		for _, b := range all {
			err = errors.Join(err, b.end())
		}
	}()
	for i, n := range sizes {
		b, err := begin(ctx, o, n, i, folder)
		if b != nil {
			all = append(all, b)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range []step{{"cold start", (*bench).coldStart}, {"edits at rest", (*bench).editAtRest}} {
		if err := o.each(ctx, all, s); err != nil {
			return err
		}
	}
	if err := o.restAll(ctx, all); err != nil {
		return err
	}
	for _, s := range []step{{"storm", (*bench).storm}, {"trouble", (*bench).trouble}} {
		if err := o.each(ctx, all, s); err != nil {
			return err
		}
	}
	for _, b := range all {
		found.Sizes = append(found.Sizes, b.found)
	}
	return o.present(found)
}

func (o options) each(ctx context.Context, all []*bench, s step) error {
	for _, b := range all {
		say("%d SampleDBs: %s", b.found.SampleDBs, s.name)
		if err := s.do(b, ctx); err != nil {
			return fmt.Errorf("%d SampleDBs: %s: %w", b.found.SampleDBs, s.name, err)
		}
	}
	return nil
}

// loadAverage is that of the last minute, before anything is measured.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64) // 0 where it is none
	return load
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
