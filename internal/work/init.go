package work

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/work/initjob"
	"toban.dev/internal/work/pod"
)

// InitOptions are what the init Job is told.
type InitOptions struct {
	// Plan is the file with what to do, Termination that for the result.
	Plan, Termination string
	// Authority is the folder with the SampleDB's authority, App that with the application's credentials.
	Authority, App string
	// Port is that of the PostgreSQL servers.
	Port uint16
	// Patience is how long to wait for an instance that takes writes.
	Patience time.Duration
	// Unlink, where it is set, removes from what was restored the links that it had to other servers.
	Unlink func(ctx context.Context, connect initjob.Connect) error
}

// Init sets up the database of a new SampleDB, in the init Job, and leaves its result where the kubelet finds it,
// whatever came of it.
func Init(ctx context.Context, o InitOptions) error {
	work := o.work(ctx)
	if err := writeInit(o.Termination, initjob.Report(work)); err != nil && work == nil {
		return err
	}
	return work
}

func (o InitOptions) work(ctx context.Context) error {
	text, err := os.ReadFile(o.Plan)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	var plan initjob.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return fmt.Errorf("understand the plan %s: %w", o.Plan, err)
	}
	config, err := pod.InitTLS(o.Authority, plan.Given)
	if err != nil {
		return err
	}
	password, err := os.ReadFile(filepath.Join(o.App, naming.KeyPassword))
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	job := initjob.Job{
		Plan:     plan,
		Port:     o.Port,
		TLS:      config,
		Password: string(password),
		Patience: o.Patience,
		Log:      slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	}
	if plan.Restored {
		job.Unlink = o.Unlink
	}
	return job.Run(ctx)
}

// writeInit leaves the result of an init Job, whose message is as long as there is room for.
func writeInit(path string, result initjob.Result) error {
	const room = pod.MaxTermination - 256 // for the JSON around it
	pod.Fit(&result, pod.MaxTermination, func() bool {
		runes := []rune(result.Message)
		if len(runes) > 0 {
			result.Message = string(runes[:min(len(runes)*3/4, room)]) + "…"
		}
		return len(runes) > 0
	})
	return pod.Write(path, result)
}
