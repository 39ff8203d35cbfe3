package work

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"toban.dev/internal/work/initjob"
	"toban.dev/internal/work/maintenance"
	"toban.dev/internal/work/pod"
)

// FinishOptions are what the Job is told that does what is left after a change of the image.
type FinishOptions struct {
	// Plan is the file with the hosts, as the init Job has it, Termination that for the result.
	Plan, Termination string
	// Authority is the folder with the SampleDB's authority.
	Authority string
	// Port is that of the PostgreSQL servers.
	Port uint16
	// Patience is how long to wait for an instance that takes writes.
	Patience time.Duration
	// Parts are what to do, with commas between them.
	Parts string
	// UpdateExtensions says that extensions are updated.
	UpdateExtensions bool
}

// Finish does what is left to do in the databases after a change of the image, and leaves its result where the kubelet
// finds it, whatever came of it.
func Finish(ctx context.Context, o FinishOptions) error {
	result, err := o.work(ctx)
	if err != nil && result.Error == "" {
		result.Error = err.Error()
	}
	fitFinish(&result)
	return errors.Join(err, pod.Leave(o.Termination, result, &result.Error))
}

func (o FinishOptions) work(ctx context.Context) (maintenance.Result, error) {
	parts, err := maintenance.ParseParts(o.Parts)
	if err != nil {
		return maintenance.Result{}, err
	}
	var plan initjob.Plan
	if err := pod.ReadSettings(o.Plan, &plan); err != nil {
		return maintenance.Result{}, err
	}
	config, err := pod.InitTLS(o.Authority, plan.Given)
	if err != nil {
		return maintenance.Result{}, err
	}
	connections := &initjob.Job{Plan: plan, Port: o.Port, TLS: config}
	job := maintenance.Job{
		Connect: connections.Superuser, Parts: parts, UpdateExtensions: o.UpdateExtensions, Patience: o.Patience,
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	}
	return job.Run(ctx)
}

// fitFinish leaves out names that a termination message has no room for, the last ones first.
func fitFinish(r *maintenance.Result) {
	pod.Fit(r, pod.MaxTermination, pod.Drop(&r.Updated, 0), pod.Drop(&r.Older, 0), pod.Drop(&r.Partitioned, 0),
		pod.Drop(&r.Failures, 0), pod.Drop(&r.Duplicates, 0))
}
