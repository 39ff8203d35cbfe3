// Package scrub reads an archive again, a part of it with each verification, in the Pod of that.
package scrub

import (
	"context"
	"time"

	"toban.dev/internal/archive/scrub"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work"
	"toban.dev/internal/work/pod"
)

// Archive reads on in the archive where the last verification has stopped. What it finds, and that it could not read,
// is in the result; the backup is verified all the same.
func Archive(ctx context.Context, v *work.Verification) {
	s := v.Asked.Verify.Scrub
	if s == nil {
		return
	}
	v.Progress.Step("reads other objects of the archive again")
	last := stateOf(s.Last)
	for _, name := range v.Result.Objects { // whether it is the newest that they are of is to be known
		last.Findings = append(last.Findings, scrub.Finding{Name: name})
	}
	begin := time.Now()
	state, err := scrub.ReadOn(ctx, scrub.Options{
		Bucket: v.Archive, Decoder: v.Decoder, Secret: secret(ctx, v),
		Period: time.Duration(s.Days) * 24 * time.Hour, Budget: s.Budget, Pinned: v.Asked.Keep.Pinned,
		Now: begin, Workers: transfer.Streams(),
	}, last)
	v.Result.Scrub = resultOf(state, err)
	v.Log.Info("read the archive again", "took", time.Since(begin).String(), "found", v.Result.Scrub)
}

// secret is that of the restored database, by which its WAL is stamped; nil where it could not be restored.
func secret(ctx context.Context, v *work.Verification) []byte {
	programs, err := postgres.FindPrograms(ctx, v.Asked.Verify.Major)
	if err != nil {
		return nil
	}
	data := postgres.DataDirectory{Volume: v.Restored()}
	control, err := (&postgres.Server{Programs: programs, Data: data}).Control(ctx)
	if err != nil {
		v.Log.Warn("the stamps of WAL are not compared", "error", err.Error())
		return nil
	}
	return control.Nonce
}

// stateOf is what the last verification has left.
func stateOf(s protocol.ScrubState) scrub.State {
	out := scrub.State{Position: s.Position, At: s.At, Round: s.Round, Whole: s.Whole,
		Objects: s.Objects, Bytes: s.Bytes, Total: s.Total, More: s.More}
	for _, o := range s.Broken {
		out.Findings = append(out.Findings, scrub.Finding(o))
	}
	return out
}

// resultOf is the opposite of stateOf.
func resultOf(s scrub.State, err error) *protocol.ScrubState {
	out := &protocol.ScrubState{Position: s.Position, At: s.At, Round: s.Round, Whole: s.Whole,
		Objects: s.Objects, Bytes: s.Bytes, Total: s.Total, More: s.More}
	for _, f := range s.Findings {
		if f.Problem != "" { // else it was only to be looked at
			out.Broken = append(out.Broken, protocol.BrokenObject(f))
		}
	}
	out.Error = pod.Words(err)
	return out
}
