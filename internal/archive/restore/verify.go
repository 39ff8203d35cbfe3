package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// Assertion is a question of the user's to a restored database.
type Assertion struct {
	Name, Database, SQL string
	// Want, if set, is what the first column of the first row must be, as text.
	Want *string
}

// Answer is what came of an assertion.
type Answer struct {
	Name string        `json:"name"`
	Rows int           `json:"rows"`
	Got  string        `json:"got"` // the first column of the first row
	Took time.Duration `json:"took"`
	// Problem is "" if it is as wanted. Unanswered says that it is none of the data's: the server has ended, has no
	// room, or takes too long.
	Problem    string `json:"problem,omitempty"`
	Unanswered bool   `json:"unanswered,omitempty"`
}

// Step is a part of a verification.
type Step struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took"`
	// Skipped says why it was not done, Problem what is wrong; both are "" if all is well.
	Skipped string `json:"skipped,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// The steps of a verification, in order.
const (
	StepUnpack  = "unpack"
	StepFiles   = "files"
	StepRecover = "recover"
	StepAmcheck = "amcheck"
	StepAsk     = "ask"
)

// Report is what a verification has found.
type Report struct {
	Backup  string   `json:"backup"`
	Steps   []Step   `json:"steps"`
	Answers []Answer `json:"answers,omitempty"`
	// LSN and Commit are the point to which it could be recovered.
	LSN    string    `json:"lsn,omitempty"`
	Commit time.Time `json:"commit,omitzero"`
	// Objects are those of the archive that are missing, truncated or altered.
	Objects []string `json:"objects,omitempty"`
	// Start is how long the server took to start that Inspect asks, 0 where it has not.
	Start time.Duration `json:"start,omitzero"`
}

// VerifyOptions say what is verified, and where.
type VerifyOptions struct {
	// Bucket is rooted at the archive.
	Bucket  bucket.Bucket
	Decoder *format.Decoder
	// Chain is the backup with its parents, the full one first; Plan the WAL to the end of the archive.
	Chain []format.Backup
	Plan  book.WALPlan
	// Again is that of RecoverOptions.
	Again func(ctx context.Context, s wal.Segment) ([]book.PlannedObject, error)
	// Folder has room for the database and must be empty; Run is one with a short name, for the Unix socket.
	Folder, Run string
	Programs    postgres.Programs
	// Parameters are the database's own; of use are those that its extensions need, such as shared_preload_libraries.
	Parameters map[string]string
	Workers    int
	// Log gets what the server says.
	Log io.Writer
	// Progress, if set, says how far a step is.
	Progress func(step string, p transfer.Progress)
}

type verifying struct {
	VerifyOptions
	scratch
	report Report
}

// Verify restores a backup into a scratch folder, checks every file against the manifest, and brings it to the end of
// the WAL. Its server listens on a Unix socket only, runs nothing of what is in the database, and has stopped when
// Verify returns: the rest is for Inspect, which needs neither the archive nor its key. The error is the first that was
// found; the report has what was found until then. The folder is left to the caller.
func Verify(ctx context.Context, o VerifyOptions) (Report, error) {
	if o.Workers <= 0 {
		o.Workers = transfer.Streams()
	}
	if len(o.Chain) == 0 {
		return Report{}, errors.New("verify: there is no backup")
	}
	v := &verifying{VerifyOptions: o, report: Report{Backup: o.last().ID}}
	v.scratch = newScratch(o.Programs, o.Folder, o.Run, o.Parameters, o.Log)
	defer v.kill(ctx)
	err := v.report.run(ctx, verifyStep{StepUnpack, v.unpack}, verifyStep{StepFiles, v.files},
		verifyStep{StepRecover, v.recover})
	if err == nil {
		v.stop(ctx)
	}
	return v.report, err
}

type verifyStep struct {
	name string
	do   func(context.Context) (skipped string, err error)
}

// run does steps, up to the first that fails.
func (r *Report) run(ctx context.Context, steps ...verifyStep) error {
	for _, step := range steps {
		begin := time.Now()
		skipped, err := step.do(ctx)
		s := Step{Name: step.name, Took: time.Since(begin), Skipped: skipped}
		if err != nil {
			s.Problem = err.Error()
		}
		r.Steps = append(r.Steps, s)
		if err != nil {
			r.Objects = BrokenObjects(err)
			return fmt.Errorf("verify backup %s: %s: %w", r.Backup, step.name, err)
		}
	}
	return nil
}

func (o VerifyOptions) last() format.Backup { return o.Chain[len(o.Chain)-1] }

// BrokenObjects are the names of those that an error is about.
func BrokenObjects(err error) []string {
	var object *format.ObjectError
	if errors.As(err, &object) {
		return []string{object.Name}
	}
	var stuck *StuckError
	if errors.As(err, &stuck) {
		return stuck.Objects
	}
	return nil
}

func (v *verifying) unpack(ctx context.Context) (string, error) {
	if err := os.MkdirAll(v.Folder, 0o700); err != nil {
		return "", fmt.Errorf("make room for the data: %w", err)
	}
	if err := room(v.Folder, v.Chain, 0, ahead(v.Folder)*wal.SegmentSize, "spec.backup.verification.size"); err != nil {
		return "", err
	}
	return "", v.scratch.unpack(ctx, UnpackOptions{Bucket: v.Bucket, Decoder: v.Decoder, Chain: v.Chain,
		Workers: v.Workers, Check: true, Progress: func(p transfer.Progress) {
			if v.Progress != nil {
				v.Progress(StepUnpack, p)
			}
		}})
}

func (v *verifying) files(ctx context.Context) (string, error) {
	return "", VerifyFiles(ctx, v.server.Data.Path(), v.Workers)
}

// recover brings the server to the end of the archive, and out of recovery.
func (v *verifying) recover(ctx context.Context) (string, error) {
	reached, err := v.scratch.recover(ctx, RecoverOptions{Bucket: v.Bucket, Decoder: v.Decoder, Plan: v.Plan,
		Again: v.Again, Backup: v.last(), Ahead: ahead(v.Folder), Workers: v.Workers, Progress: v.replayed})
	v.report.LSN, v.report.Commit = reached.LSN.String(), reached.Commit
	if err != nil {
		return "", err
	}
	return "", v.scratch.promote(ctx)
}

// replayed reports the progress of the replay, in bytes of WAL.
func (v *verifying) replayed(r Recovered) {
	if v.Progress != nil && r.LSN > v.last().StartLSN {
		start := v.last().StartLSN
		v.Progress(StepRecover, r.since(start))
	}
}
