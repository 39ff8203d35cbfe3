package work

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// VerifyOptions are what a verification is told.
type VerifyOptions struct {
	pod.Options
	// Key is the folder with the key of the archive, Volume the scratch volume, Backup the name of the backup in the
	// archive.
	Key, Volume, Backup string
	Former
	// WithoutScrub says that the rest of the archive is not read besides.
	WithoutScrub bool
	// Besides, where it is set, is done at the end, with the archive still open.
	Besides func(context.Context, *Verification)
}

// Former is the archive of a former major version, and that version; empty for the present one.
type Former struct {
	Archive string
	Major   int
}

// of are settings for what is verified. A former archive is not read again besides.
func (f Former) of(settings *protocol.BackupSettings) {
	if f.Archive != "" {
		settings.Archive.Path, settings.Verify.Major, settings.Verify.Scrub = f.Archive, f.Major, nil
	}
}

// Verify restores a backup into a scratch volume and checks it, in the container of a verification that has the key.
// The one that runs SQL comes after it, and is Inspect. The result is left where the kubelet finds it, whatever came
// of it.
func Verify(ctx context.Context, o VerifyOptions) error {
	v := &Verification{Pod: pod.New(o.Options), options: o}
	err := v.do(ctx)
	if err == nil { // for Inspect: the kubelet hands a termination message to nobody in the Pod
		err = pod.Leave(filepath.Join(o.Volume, naming.FileVerified), &v.Result)
	}
	v.Result.Error = pod.Words(err)
	return errors.Join(err, leaveVerified(o.Termination, &v.Result))
}

// leaveVerified leaves the result for the kubelet, with its words and answers short enough.
func leaveVerified(path string, result *protocol.VerifyResult) error {
	if s := result.Scrub; s != nil {
		s.Error = pod.First(s.Error, 200)
		for i := range s.Broken {
			s.Broken[i].Problem = pod.First(s.Broken[i].Problem, 80)
		}
	}
	for i := range result.Answers {
		a := &result.Answers[i]
		a.Got, a.Problem = pod.First(a.Got, 100), pod.First(a.Problem, 100)
	}
	return pod.Leave(path, result, &result.Error)
}

// ScratchFolder is where on the volume a backup is restored to.
func ScratchFolder(volume string) string { return filepath.Join(volume, "scratch") }

// Verification is one run.
type Verification struct {
	pod.Pod
	options VerifyOptions
	// Asked are the settings of what is to be verified, Result is what has been found.
	Asked  protocol.BackupSettings
	Result protocol.VerifyResult
	// Archive is the archive that the backup is in, and Decoder opens its objects.
	Archive bucket.Bucket
	Decoder *format.Decoder
}

// Restored is the folder with what was restored.
func (v *Verification) Restored() string { return ScratchFolder(v.options.Volume) }

func (v *Verification) do(ctx context.Context) error {
	ctx = v.Telling(ctx)
	v.Progress.Step("opens the archive")
	stop, err := v.Begin(ctx, naming.IdentityRestore, &v.Asked, &v.Asked.Operator)
	if err != nil {
		return err
	}
	defer stop()
	v.options.of(&v.Asked)
	if v.options.WithoutScrub {
		v.Asked.Verify.Scrub = nil
	}
	if err := v.open(ctx); err != nil {
		return err
	}
	err = v.verify(ctx)
	if v.options.Besides != nil { // whatever is wrong with this backup, the rest is not to wait
		v.options.Besides(ctx, v)
	}
	return err
}

// open opens the archive.
func (v *Verification) open(ctx context.Context) (err error) {
	if v.Decoder, err = pod.Decoder(v.Asked.Verify.Encrypted, v.options.Key); err != nil {
		return err
	}
	whole, err := pod.OpenStore(ctx, v.Asked.Archive.Bucket, v.Own, v.Run)
	if err != nil {
		return err
	}
	v.Archive = bucket.Sub(whole, v.Asked.Archive.Path)
	return nil
}

// verify restores the backup, and checks it.
func (v *Verification) verify(ctx context.Context) error {
	options, err := v.plan(ctx)
	if err != nil {
		v.Result.Objects = restore.BrokenObjects(err)
		return err
	}
	begin := time.Now()
	report, err := restore.Verify(ctx, options)
	recordReport(&v.Result, report)
	v.Log.Info("verified", "backup", v.options.Backup, "took", time.Since(begin).String(),
		"steps", v.Result.Steps, "lsn", report.LSN)
	return err
}

// plan is the way to the end of the archive.
func (v *Verification) plan(ctx context.Context) (restore.VerifyOptions, error) {
	s := v.Asked.Verify
	programs, err := postgres.FindPrograms(ctx, s.Major)
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	catalogue, err := book.Read(ctx, v.Archive)
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	chain, err := catalogue.Chain(v.options.Backup)
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	choice, err := catalogue.Choose(book.Wanted{Backup: v.options.Backup, Now: time.Now()})
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	plan, err := catalogue.PlanWAL(choice.TermHistory, choice.Backup.StartLSN, choice.To)
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	return restore.VerifyOptions{
		Bucket: v.Archive, Decoder: v.Decoder, Chain: chain, Plan: plan, Again: book.Replan(v.Archive, choice),
		Folder: v.Restored(), Run: v.Run, Programs: programs, Parameters: s.Parameters,
		Workers: transfer.Streams(), Log: os.Stderr, Progress: v.report,
	}, nil
}

// report says how far a step is.
func (v *Verification) report(step string, p transfer.Progress) {
	words := map[string]string{restore.StepUnpack: "fetches the backup", restore.StepRecover: "replays WAL"}
	v.Progress.Set(protocol.BackupProgress{Step: words[step], Done: p.Done, Total: p.Total, Rate: int64(p.Rate)})
}

// recordReport puts into the result what was found.
func recordReport(result *protocol.VerifyResult, r restore.Report) {
	if r.LSN != "" {
		result.LSN, result.Commit = r.LSN, r.Commit
	}
	result.Objects = append(result.Objects, r.Objects...)
	result.Steps = append(result.Steps, Steps(r)...)
	for _, s := range r.Steps {
		if s.Name == restore.StepUnpack || s.Name == restore.StepRecover {
			result.Recovery += s.Took.Seconds()
		}
	}
	for _, a := range r.Answers {
		result.Answers = append(result.Answers,
			protocol.VerifyAnswer{Name: a.Name, Rows: a.Rows, Got: a.Got, Problem: a.Problem})
	}
}

// Steps are those of a verification that were done, with what they took.
func Steps(r restore.Report) (all []protocol.VerifyStep) {
	for _, s := range r.Steps {
		all = append(all, protocol.VerifyStep{Name: s.Name, Seconds: s.Took.Seconds(), Skipped: s.Skipped})
	}
	return all
}
