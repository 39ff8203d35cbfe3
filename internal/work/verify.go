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
	v := &verify{Pod: pod.New(o.Options), key: o.Key, volume: o.Volume, backup: o.Backup, former: o.Former,
		withoutScrub: o.WithoutScrub}
	err := v.do(ctx)
	if err == nil { // for Inspect: the kubelet hands a termination message to nobody in the Pod
		err = pod.Leave(filepath.Join(o.Volume, naming.FileVerified), &v.result)
	}
	if err != nil {
		v.result.Error = err.Error()
	}
	return errors.Join(err, leaveVerified(o.Termination, &v.result))
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

// verify is one run.
type verify struct {
	pod.Pod
	key, volume, backup string
	former              Former
	withoutScrub        bool
	settings            protocol.BackupSettings
	archive             bucket.Bucket // rooted at the archive
	decoder             *format.Decoder
	result              protocol.VerifyResult
}

func (v *verify) do(ctx context.Context) error {
	ctx = v.Telling(ctx)
	v.Progress.Step("opens the archive")
	stop, err := v.Begin(ctx, naming.IdentityRestore, &v.settings, &v.settings.Operator)
	if err != nil {
		return err
	}
	defer stop()
	v.former.of(&v.settings)
	if v.withoutScrub {
		v.settings.Verify.Scrub = nil
	}
	if err := v.open(ctx); err != nil {
		return err
	}
	err = v.verify(ctx)
	v.scrub(ctx) // whatever is wrong with this backup, the rest is not to wait
	return err
}

// open opens the archive.
func (v *verify) open(ctx context.Context) (err error) {
	if v.decoder, err = pod.Decoder(v.settings.Verify.Encrypted, v.key); err != nil {
		return err
	}
	whole, err := pod.OpenStore(ctx, v.settings.Archive.Bucket, v.Own, v.Run)
	if err != nil {
		return err
	}
	v.archive = bucket.Sub(whole, v.settings.Archive.Path)
	return nil
}

// verify restores the backup, and checks it.
func (v *verify) verify(ctx context.Context) error {
	options, err := v.options(ctx)
	if err != nil {
		v.result.Objects = restore.BrokenObjects(err)
		return err
	}
	begin := time.Now()
	report, err := restore.Verify(ctx, options)
	recordReport(&v.result, report)
	v.Log.Info("verified", "backup", v.backup, "took", time.Since(begin).String(),
		"steps", v.result.Steps, "lsn", report.LSN)
	return err
}

// options plan the way to the end of the archive.
func (v *verify) options(ctx context.Context) (restore.VerifyOptions, error) {
	s := v.settings.Verify
	programs, err := postgres.FindPrograms(ctx, s.Major)
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	catalogue, err := book.Read(ctx, v.archive)
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	chain, err := catalogue.Chain(v.backup)
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	choice, err := catalogue.Choose(book.Wanted{Backup: v.backup, Now: time.Now()})
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	plan, err := catalogue.PlanWAL(choice.TermHistory, choice.Backup.StartLSN, choice.To)
	if err != nil {
		return restore.VerifyOptions{}, err
	}
	return restore.VerifyOptions{
		Bucket: v.archive, Decoder: v.decoder, Chain: chain, Plan: plan, Again: book.Replan(v.archive, choice),
		Folder: ScratchFolder(v.volume), Run: v.Run, Programs: programs, Parameters: s.Parameters,
		Workers: transfer.Streams(), Log: os.Stderr, Progress: v.report,
	}, nil
}

// report says how far a step is.
func (v *verify) report(step string, p transfer.Progress) {
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
