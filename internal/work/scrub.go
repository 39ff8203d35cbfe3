package work

import (
	"context"
	"time"

	"toban.dev/internal/archive/keep"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// scrub reads on in the archive where the last verification has stopped. What it finds, and that it could not read, is
// in the result; the backup is verified all the same.
func (v *verify) scrub(ctx context.Context) {
	s := v.settings.Verify.Scrub
	if s == nil {
		return
	}
	v.Progress.Step("reads other objects of the archive again")
	last := scrubState(s.Last)
	for _, name := range v.result.Objects { // whether it is the newest that they are of is to be known
		last.Findings = append(last.Findings, keep.Finding{Name: name})
	}
	begin := time.Now()
	state, err := keep.Scrub(ctx, keep.ScrubOptions{
		Bucket: v.archive, Decoder: v.decoder, Secret: v.secret(ctx),
		Period: time.Duration(s.Days) * 24 * time.Hour, Budget: s.Budget, Pinned: v.settings.Keep.Pinned,
		Now: begin, Workers: transfer.Streams(),
	}, last)
	v.result.Scrub = scrubResult(state, err)
	v.Log.Info("read the archive again", "took", time.Since(begin).String(), "found", v.result.Scrub)
}

// secret is that of the restored database, by which its WAL is stamped; nil where it could not be restored.
func (v *verify) secret(ctx context.Context) []byte {
	programs, err := postgres.FindPrograms(ctx, v.settings.Verify.Major)
	if err != nil {
		return nil
	}
	data := postgres.DataDirectory{Volume: ScratchFolder(v.volume)}
	control, err := (&postgres.Server{Programs: programs, Data: data}).Control(ctx)
	if err != nil {
		v.Log.Warn("the stamps of WAL are not compared", "error", err.Error())
		return nil
	}
	return control.Nonce
}

// scrubState is what the last verification has left.
func scrubState(s protocol.ScrubState) keep.ScrubState {
	out := keep.ScrubState{Position: s.Position, At: s.At, Round: s.Round, Whole: s.Whole,
		Objects: s.Objects, Bytes: s.Bytes, Total: s.Total, More: s.More}
	for _, o := range s.Broken {
		out.Findings = append(out.Findings, keep.Finding(o))
	}
	return out
}

// scrubResult is the opposite of scrubState.
func scrubResult(s keep.ScrubState, err error) *protocol.ScrubState {
	out := &protocol.ScrubState{Position: s.Position, At: s.At, Round: s.Round, Whole: s.Whole,
		Objects: s.Objects, Bytes: s.Bytes, Total: s.Total, More: s.More}
	for _, f := range s.Findings {
		if f.Problem != "" { // else it was only to be looked at
			out.Broken = append(out.Broken, protocol.BrokenObject(f))
		}
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}
