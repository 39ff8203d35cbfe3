package keep

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/scrub"
	"toban.dev/internal/archive/write"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/wal"
)

// leader is one with its pg_wal and archiver. from is from where on its archive has no gap that is known.
type leader struct {
	*archivetest.Source
	archiver *write.Archiver
	from     wal.LSN
	begun    bool // the archive had WAL of this term history
	// dismissed: retention has removed the notes in its folder. What it still writes, late as it is, only its
	// successors' WAL makes good.
	dismissed bool
}

// world is an archive with all its leaders, who come and go.
type world struct {
	t      *testing.T
	random *rand.Rand
	// losses is of its own, so that a seed stays the same history whatever is lost; and so is others, for what there is
	// only with branches: restores in place, pinned backups, and objects that can't be understood.
	losses *rand.Rand
	others *rand.Rand
	// former is for what former versions did.
	former   *rand.Rand
	branches bool
	// keys changes the key, nil without encryption.
	keys    *rand.Rand
	pinned  []string
	bucket  *buckettest.Memory
	encoder *format.Encoder
	decoder *format.Decoder
	leaders []*leader
	backups int
	did     []string
	counts  map[string]int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), losses: rand.New(rand.NewPCG(seed, 2)),
		others: rand.New(rand.NewPCG(seed, 3)), former: rand.New(rand.NewPCG(seed, 5)),
		bucket: buckettest.NewMemory(), decoder: &format.Decoder{}, counts: map[string]int{}}
	w.encoder, _ = format.NewEncoder("")
	if seed%4 == 0 {
		w.keys = rand.New(rand.NewPCG(seed, 4))
		w.rotate()
		var keys strings.Builder
		for _, key := range archivetest.Keys {
			keys.WriteString(key.String() + "\n")
		}
		w.decoder, _ = format.NewDecoder(keys.String())
	}
	begin := wal.LSN(3 * format.SegmentSize)
	w.leaders = []*leader{
		{Source: &archivetest.Source{
			Terms: []ha.TermStart{{Term: 1, Timeline: 1}}, End: begin + 100, Begin: begin,
		}, from: begin},
	}
	w.restart(w.leaders[0])
	return w
}

func (w *world) note(format string, args ...any) { w.did = append(w.did, fmt.Sprintf(format, args...)) }

func (w *world) fatal(format string, args ...any) {
	w.t.Helper()
	for _, did := range w.did {
		w.t.Log(did)
	}
	w.t.Fatalf(format, args...)
}

// rotate encrypts from now on for another key, or for the same.
func (w *world) rotate() {
	key := archivetest.Keys[w.keys.IntN(len(archivetest.Keys))]
	w.encoder, _ = format.NewEncoder(key.Recipient().String())
	w.note("encrypts for %s", key.Recipient())
}

// checkKeys looks whether the catalogue says of all WAL which key it needs.
func (w *world) checkKeys() {
	if w.keys == nil {
		return
	}
	c, err := book.Read(w.t.Context(), w.bucket)
	if err != nil {
		w.fatal("read: %v", err)
	}
	for _, t := range c.Terms {
		notes := t.KeyNotes()
		for _, p := range t.WAL {
			told := book.RecipientsOf(notes, p.Piece)
			w.counts["keys told"] += min(1, len(notes))
			if !slices.Contains(told, "") && !slices.ContainsFunc(archivetest.Keys, func(key *age.X25519Identity) bool {
				_, err := age.Decrypt(bytes.NewReader(w.bucket.Objects[p.Object.Name].Content), key)
				return err == nil && slices.Contains(told, key.Recipient().String())
			}) {
				w.fatal("%s is told to need one of the keys %v, which is not so: %+v", p.Object.Name, told, notes)
			}
		}
	}
}

func (w *world) restart(l *leader) {
	if w.keys != nil && w.keys.IntN(2) == 0 {
		w.rotate()
	}
	l.dismissed = false // it writes its notes again
	l.archiver, _ = write.NewArchiver(write.ArchiverOptions{Bucket: w.bucket, Owner: archivetest.Owner,
		Encoder: w.encoder,
		Secret:  []byte("nonce"), Source: l.Source, TermHistory: l.Terms,
		Now: func() time.Time { return w.bucket.Clock }})
}

func (w *world) newest() *leader { return w.leaders[len(w.leaders)-1] }

// elect makes a leader from what one before it had, mostly the last.
func (w *world) elect() {
	p := w.newest()
	if w.random.IntN(4) == 0 {
		p = w.leaders[w.random.IntN(len(w.leaders))]
	}
	start := p.End - wal.LSN(w.random.Uint64N(uint64(min(p.End-p.Begin, wal.LSN(2*format.SegmentSize)))+1))
	if w.random.IntN(6) == 0 {
		start = max(p.Begin, format.SegmentStart(format.NumberAt(start)))
	}
	var timeline wal.Timeline
	for i, s := range p.Terms {
		// Of a leader's WAL that it never had it knows no timeline.
		if s.LSN < min(start, format.Cutoff(p.Terms, i)) || i == 0 {
			timeline = max(timeline, s.Timeline)
		}
	}
	history := append(slices.Clone(p.Terms),
		ha.TermStart{Term: w.newest().Terms[len(w.newest().Terms)-1].Term + 1, LSN: start, Timeline: timeline + 1})
	l := &leader{
		Source: &archivetest.Source{Terms: history, End: start + 100, Begin: p.Begin}, from: p.from, begun: p.begun,
	}
	w.leaders = append(w.leaders, l)
	w.note("term %d from %s, oldest %s: %v", history[len(history)-1].Term, start, l.Begin, history)
	w.restart(l)
}

// archive lets an archiver do a step, with what may go wrong.
func (w *world) archive(l *leader) {
	calls, failAt, crash := 0, -1, w.random.IntN(2) == 0
	if w.random.IntN(3) > 0 {
		failAt = w.random.IntN(16)
	}
	w.bucket.Fault = func(bool) error {
		if calls++; failAt >= 0 && (calls-1 == failAt || crash && calls > failAt) {
			return buckettest.ErrInjected
		}
		return nil
	}
	_, err := l.archiver.Step(w.t.Context())
	w.bucket.Fault = func(bool) error { return nil }
	ahead := (*write.AheadError)(nil)
	if err != nil && !errors.Is(err, buckettest.ErrInjected) && (!errors.As(err, &ahead) || l == w.newest()) {
		w.fatal("step: %v", err)
	}
	w.note("term %d: archived %s of %s: %v",
		l.Terms[len(l.Terms)-1].Term, l.archiver.State().Archived, l.End, err)
	if state := l.archiver.State(); state.Gap != nil {
		l.from = max(l.from, state.Gap.To)
		w.counts["gaps"]++
	}
	w.check(l)
	if crash && failAt >= 0 && calls > failAt {
		w.counts["crashes"]++
		w.restart(l)
	}
}

// check reads back what a leader says that it has archived.
func (w *world) check(l *leader) {
	to := l.archiver.State().Archived
	if l.from >= to || l.dismissed {
		return
	}
	c, err := book.Read(w.t.Context(), w.bucket.Without())
	if err != nil {
		w.fatal("read: %v", err)
	}
	if all := stretches(onlyOf(c, l.Terms), l.Terms); !l.begun {
		if len(all) == 0 {
			return
		}
		// What went before there was any archive is in none.
		l.from, l.begun = max(l.from, all[0].From), true
	}
	if l.from < to {
		w.restore(c, l.Terms, l.from, to)
	}
}

// only is what a leader sees of the archive: the folders of its own term history. What others have archived of the same
// WAL is as if there were none, and no gap to it is said.
func onlyOf(c book.Catalogue, history []ha.TermStart) book.Catalogue {
	own := c
	own.Terms = map[uint64]*book.Term{}
	for _, s := range history {
		if c.Terms[s.Term] != nil {
			own.Terms[s.Term] = c.Terms[s.Term]
		}
	}
	return own
}

// restore reads WAL back as a server would.
func (w *world) restore(c book.Catalogue, history []ha.TermStart, from, to wal.LSN) {
	w.counts["restored"]++
	plan, err := c.PlanWAL(history, from, to)
	if err != nil {
		// Its own leader has not come to write down the history, but then it has no WAL of its own.
		own := history[len(history)-1]
		if t := c.Terms[own.Term]; len(history) > 1 && to > own.LSN && (t == nil || len(t.WAL) == 0) {
			return
		}
		w.fatal("%v: plan from %s to %s: %v", history, from, to, err)
	}
	files := map[string][]byte{}
	for _, s := range plan.Segments {
		content := make([]byte, format.SegmentSize)
		for _, o := range s.Objects {
			raw, err := format.ReadWhole(w.t.Context(), w.bucket.Without(), o.Name)
			if err != nil {
				w.fatal("%v", err)
			}
			r, err := w.decoder.Decode(o.Name, bytes.NewReader(raw))
			if err != nil {
				w.fatal("%v", err)
			}
			var plain bytes.Buffer
			if _, err := plain.ReadFrom(r); err != nil || plain.Len() != int(o.Piece.To-o.Piece.From) {
				w.fatal("%s has %d bytes: %v", o.Name, plain.Len(), err)
			}
			copy(content[o.Piece.From:o.To], plain.Bytes())
		}
		files[s.File] = content
	}
	for at := from; at < to; at = format.SegmentAt(0, at).End() {
		number := format.NumberAt(at)
		end := min(to, format.SegmentAt(0, at).End())
		got := serverReads(files, history, plan.Timeline, number)
		if got == nil {
			w.fatal("the server finds no segment %d of %v (timeline %d)", number, history, plan.Timeline)
		}
		want := make([]byte, end-at)
		archivetest.WriteWAL(history, at, want)
		offset := at - format.SegmentStart(number)
		if got := got[offset : offset+end-at]; !bytes.Equal(got, want) {
			w.fatal("%v: WAL from %s to %s is not what it was", history, at, end)
		}
	}
}

// serverReads is the file that a server reads a segment from, by the history of its timeline (XLogFileReadAnyTLI).
func serverReads(files map[string][]byte, history []ha.TermStart, target wal.Timeline, number uint64) []byte {
	known := false
	for i, s := range slices.Backward(history) {
		known = known || s.Timeline == target && s.LSN < format.Cutoff(history, i)
		if !known || s.LSN >= format.Cutoff(history, i) || format.NumberAt(s.LSN) > number {
			continue
		}
		if content := files[format.SegmentOf(s.Timeline, number).String()]; content != nil {
			return content
		}
	}
	return nil
}

// backup puts one there that ends where the archive is.
func (w *world) backup(l *leader) {
	to := l.archiver.State().Archived
	if l.from >= to {
		return
	}
	w.backups++
	b := format.Backup{ID: fmt.Sprintf("b%05d", w.backups), Type: format.TypeFull, Term: l.Terms[len(l.Terms)-1].Term,
		Started: w.bucket.Clock, Stopped: w.bucket.Clock, Trigger: []string{"", "schedule", "request"}[w.backups%3]}
	b.StopLSN = to - wal.LSN(w.random.Uint64N(uint64(to-l.from)))
	if w.branches {
		b.StopLSN = to // its time is that of its WAL
	}
	b.StartLSN = l.from + wal.LSN(w.random.Uint64N(uint64(b.StopLSN-l.from)))
	b.Pieces = []format.Object{{Name: "base.tar.00000.zst", Size: 3,
		SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}
	c, _ := book.Read(w.t.Context(), w.bucket)
	if window, ok := c.Window(l.Terms); ok && w.random.IntN(3) == 0 {
		parent := window.Backups[len(window.Backups)-1]
		b.Type, b.Parent, b.Started, b.Stopped = format.TypeIncremental, parent.ID, b.Started.Add(time.Second),
			b.Started.Add(time.Second)
		b.StartLSN, b.StopLSN = max(b.StartLSN, parent.StartLSN), max(b.StopLSN, parent.StopLSN)
	}
	text, _ := json.Marshal(b)
	_ = w.bucket.Put(w.t.Context(), b.Folder()+"base.tar.00000.zst", []byte("abc"))
	if w.random.IntN(5) > 0 {
		_ = w.bucket.Put(w.t.Context(), b.Folder()+format.FileBackup, text)
	}
	w.note("backup %s of %v from %s to %s (%s)", b.ID, l.Terms, b.StartLSN, b.StopLSN, b.Parent)
}

// reach is up to where a backup leads along a term history.
type reach struct {
	backup  format.Backup
	history []ha.TermStart
	to      wal.LSN
	until   time.Time // when the WAL before to was written
}

// covers says that it leads to where another does, over the same WAL.
func (r reach) covers(o reach) bool { return r.backup.ID == o.backup.ID && r.leadsTo(o) }

// leadsTo says that it leads to where another does, maybe from another backup.
func (r reach) leadsTo(o reach) bool {
	return r.to >= o.to && slices.Equal(format.UpTo(r.history, o.to), format.UpTo(o.history, o.to))
}

func reaches(c book.Catalogue) []reach {
	var all []reach
	for _, history := range c.TermHistories() {
		wal := c.Along(history)
		for _, b := range c.Backups {
			if _, err := c.Chain(b.ID); err != nil || !c.In(b, history) {
				continue
			}
			to, _ := wal.Covered(b.StartLSN)
			if to >= b.StopLSN {
				all = append(all, reach{b, history, to, wal.Written(to)})
			}
		}
	}
	return all
}

// retain deletes what a policy allows, up to a crash, and looks whether every backup leads as far as before.
func (w *world) retain() {
	policy := Policy{
		Count: w.random.IntN(4), Age: time.Duration(w.random.IntN(4)) * 12 * time.Hour, Now: w.bucket.Clock,
		Pinned: w.pinned,
	}
	w.retainWithout(policy)
	if w.branches {
		w.retainUnread(policy)
	}
	c, names := w.retainIn(w.bucket, policy, func(names []string) []string {
		if w.random.IntN(2) == 0 {
			names = names[:w.random.IntN(len(names)+1)]
		}
		return names
	})
	w.counts["deleted"] += len(names)
	for _, l := range w.leaders {
		note := func(name string) bool {
			return strings.HasPrefix(name, format.TermFolder(l.Terms[len(l.Terms)-1].Term)) &&
				(strings.HasSuffix(name, "/"+format.FileLineage) || strings.Contains(name, ".history"))
		}
		l.dismissed = l.dismissed || slices.ContainsFunc(names, note)
	}
	w.forget(c)
}

// retainWithout looks what would be deleted if objects were lost.
func (w *world) retainWithout(policy Policy) {
	lossy := w.bucket.Without()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(lossy.Objects)), format.IsSmall)
	for range min(len(names), 1+w.losses.IntN(3)) {
		name := names[w.losses.IntN(len(names))]
		delete(lossy.Objects, name)
		w.note("what if %s were lost", name)
	}
	w.retainIn(lossy, policy, func(names []string) []string { return names })
}

// retainIn deletes what a policy allows, or only those that cut leaves of it. It returns what is left.
func (w *world) retainIn(
	b *buckettest.Memory, policy Policy, cut func([]string) []string,
) (after book.Catalogue, names []string) {
	ctx := w.t.Context()
	c, err := book.Read(ctx, b)
	if err != nil {
		w.fatal("%v", err)
	}
	before := reaches(c)
	r := retention{c}
	d, kept := r.retain(policy)
	if broken := r.breaks(policy, r.without(d.Names), kept); broken != "" {
		w.fatal("retain: %+v deletes %v of %v: %s", policy, d.Names, d.Deleted, broken)
	}
	if all := Retain(c, policy); len(all.Held) > 0 {
		w.counts["held"]++
	} else if !slices.Equal(all.Names, d.Names) {
		w.fatal("retention removes %v, and by its rules %v", all.Names, d.Names)
	}
	names = cut(d.Names)
	w.note("retain: %+v deletes %v of %v", policy, names, d.Deleted)
	_ = b.Delete(ctx, names...)
	after, err = book.Read(ctx, b)
	if err != nil || len(after.Unread) > 0 {
		w.fatal("after retention: %v %v", err, after.Unread)
	}
	still := reaches(after)
	counted := needed(policy, c, before, d)
	w.leadAsFar(b, counted, still, after)
	w.promised(policy, before, counted, still)
	w.lookAtBranches(b, after)
	if _, had := c.Window(c.NewestTermHistory()); had {
		if _, has := after.Window(after.NewestTermHistory()); !has {
			w.fatal("the last good backup is gone")
		}
	}
	return after, names
}

// needed is how far each backup has to lead after retention: no further than its own end where it stands alone.
func needed(policy Policy, c book.Catalogue, before []reach, d Deletions) []reach {
	alone, out := standingAlone(policy, c, before, d), slices.Clone(before)
	for i, r := range out {
		if alone[r.backup.ID] {
			out[i].to = min(r.to, r.backup.StopLSN)
		}
	}
	return out
}

// standingAlone are the backups that need not lead further than to their own end: one of another kind than the
// schedule's, older than as many of the schedule's as are wanted; one that is only pinned; and one that is kept only as
// a parent, if all that it is kept for stand alone.
func standingAlone(policy Policy, c book.Catalogue, before []reach, d Deletions) map[string]bool {
	alone, reasons := map[string]bool{}, map[string]string{}
	for _, v := range d.Kept {
		reasons[v.Name] = v.Reason
	}
	for _, r := range before {
		newer := map[string]bool{}
		for _, o := range before {
			if o.backup.Kind() == naming.TriggerSchedule && o.backup.Stopped.After(r.backup.Stopped) {
				newer[o.backup.ID] = true
			}
		}
		alone[r.backup.ID] = policy.Count > 0 && len(newer) >= policy.Count &&
			r.backup.Kind() != naming.TriggerSchedule
	}
	for _, b := range slices.Backward(c.Backups) { // children before their parents
		switch reasons[b.Folder()] {
		case KeptPinned:
			alone[b.ID] = true
		case KeptParent:
			alone[b.ID] = !slices.ContainsFunc(c.Backups, func(child format.Backup) bool {
				return child.Parent == b.ID && reasons[child.Folder()] != "" && !alone[child.ID]
			})
		}
	}
	return alone
}

// leadAsFar looks whether each backup that is still there leads as far as before.
func (w *world) leadAsFar(b *buckettest.Memory, before, still []reach, after book.Catalogue) {
	for _, r := range before {
		if !slices.ContainsFunc(after.Backups, func(b format.Backup) bool { return b.ID == r.backup.ID }) {
			continue
		}
		i := slices.IndexFunc(still, func(s reach) bool { return s.covers(r) })
		if i < 0 {
			w.fatal("backup %s led along %v to %s, and does not any more", r.backup.ID, r.history, r.to)
		}
		if b == w.bucket { // where WAL is lost its history may be
			w.restore(after, still[i].history, r.backup.StartLSN, r.to)
		}
	}
}

// promised looks whether what a policy promises is there, if it was: the newest backups of each trigger that can be
// restored, and every moment of the time. The earliest of those that a backup leads to, up to where it does, needs
// what the later ones need.
func (w *world) promised(policy Policy, before, counted, still []reach) {
	newer := map[string]map[string]bool{} // backups by kind
	slices.SortStableFunc(counted, func(a, b reach) int {
		return cmp.Or(b.backup.Stopped.Compare(a.backup.Stopped), cmp.Compare(b.backup.ID, a.backup.ID))
	})
	for _, r := range counted {
		of := newer[r.backup.Kind()]
		if of == nil {
			of = map[string]bool{}
			newer[r.backup.Kind()] = of
		}
		of[r.backup.ID] = true
		if len(of) <= policy.Count && !slices.ContainsFunc(still, func(s reach) bool { return s.covers(r) }) {
			w.fatal("backup %s is one of the newest %d that can be restored, and leads no longer along %v to %s",
				r.backup.ID, policy.Count, r.history, r.to)
		}
	}
	w.promisedMoments(policy, before, still)
	for _, r := range before {
		end := r
		end.to = r.backup.StopLSN
		if slices.Contains(policy.Pinned, r.backup.ID) &&
			!slices.ContainsFunc(still, func(s reach) bool { return s.covers(end) }) {
			w.fatal("the pinned backup %s can't be restored any more as it was when it ended", r.backup.ID)
		}
	}
}

// promisedMoments looks whether every moment of the promised time can be restored that could be before.
func (w *world) promisedMoments(policy Policy, before, still []reach) {
	horizon := policy.Now.Add(-policy.Age)
	for _, r := range before {
		moment := r.backup.Stopped
		if moment.Before(horizon) {
			moment = horizon
		}
		if policy.Age <= 0 || r.until.Before(moment) {
			continue
		}
		w.counts["moments"]++
		if !slices.ContainsFunc(still, func(s reach) bool { return !s.backup.Stopped.After(moment) && s.leadsTo(r) }) {
			w.fatal("%s could be restored from %s along %v to %s, and can't be any more",
				moment, r.backup.ID, r.history, r.to)
		}
	}
}

// forget moves up from where each leader's archive can be expected.
func (w *world) forget(c book.Catalogue) {
	newest := c.NewestTermHistory()
	for _, l := range w.leaders {
		first := wal.LSN(math.MaxUint64)
		wal := c.Along(l.Terms)
		for _, b := range c.Backups {
			// One that is kept alone does not lead to the end; what has to lead there leadAsFar has seen to.
			if to, _ := wal.Covered(b.StartLSN); c.In(b, l.Terms) && to >= l.archiver.State().Archived {
				first = min(first, b.StartLSN)
			}
		}
		// Without a backup of its own, only the newest leader's WAL is sure to be kept.
		if first < math.MaxUint64 || len(newest) > 0 && l.Terms[len(l.Terms)-1] != newest[len(newest)-1] {
			l.from = max(l.from, first)
		}
	}
}

// live goes through one history.
func (w *world) live() {
	for range 40 {
		w.step()
		if w.branches {
			w.stepAside()
		}
	}
	if c, err := book.Read(w.t.Context(), w.bucket.Without()); err == nil {
		w.lookAtBranches(w.bucket, c)
	}
	if w.bucket.Changed > 0 {
		w.fatal("an object was changed")
	}
	w.scrub()
	w.checkKeys()
	w.goBack()
}

// scrub looks whether what leaders have written is read as what they wrote, whoever they were.
func (w *world) scrub() {
	state, err := scrub.ReadOn(w.t.Context(), scrub.Options{Bucket: w.bucket, Decoder: w.decoder,
		Secret: []byte("nonce"), Period: time.Hour, Pinned: w.pinned, Now: w.bucket.Clock}, scrub.State{})
	if err != nil {
		w.fatal("%v", err)
	}
	w.counts["scrubbed"] += state.Objects
	for _, f := range state.Findings {
		// Policies at random leave holes that no policy alone would.
		if !strings.HasPrefix(f.Problem, "missing, or of another term") &&
			!strings.HasSuffix(f.Problem, "consists of it too") {
			w.fatal("a scrub finds %+v, where nothing was changed", f)
		}
	}
}

// goBack has the volume of the last leader go back in time, and looks whether that is noticed where the archive has
// more: nothing may be written then, whatever the server writes.
func (w *world) goBack() {
	l := w.newest()
	first := max(l.Begin, l.Terms[len(l.Terms)-1].LSN) + 1
	if l.End <= first {
		return
	}
	back := first + wal.LSN(w.random.Uint64N(uint64(l.End-first)))
	c, _ := book.Read(w.t.Context(), w.bucket)
	end := wal.LSN(0)
	if own := c.Terms[l.Terms[len(l.Terms)-1].Term]; own != nil {
		for _, p := range own.WAL {
			end = max(end, p.Segment.Start()+wal.LSN(p.To))
		}
	}
	before := maps.Clone(w.bucket.Objects)
	l.Lost, l.End = back, back
	w.note("term %d goes back to %s; its archive ends at %s", l.Terms[len(l.Terms)-1].Term, back, end)
	for range 4 {
		w.restart(l)
		l.End += wal.LSN(w.random.Uint64N(2 * format.SegmentSize))
		_, err := l.archiver.Step(w.t.Context())
		ahead := (*write.AheadError)(nil)
		switch noticed := errors.As(err, &ahead); {
		case err != nil && !noticed:
			w.fatal("after the volume went back: %v", err)
		case noticed != (end > back):
			w.fatal("the archive ends at %s, the volume went back to %s: %v", end, back, err)
		case noticed && len(w.bucket.Objects) != len(before):
			w.fatal("something was written into an archive that is ahead")
		}
		w.counts[fmt.Sprintf("ahead: %t", end > back)]++
	}
}

func (w *world) step() {
	l := w.newest()
	if w.random.IntN(8) == 0 {
		l = w.leaders[w.random.IntN(len(w.leaders))] // one that does not know yet that it is late
	}
	w.bucket.Clock = w.bucket.Clock.Add(time.Duration(w.random.IntN(120)) * time.Minute)
	switch n := w.random.IntN(20); {
	case n < 7:
		l.End += wal.LSN(w.random.Uint64N(format.SegmentSize) + 1)
		if w.random.IntN(5) == 0 {
			l.End += wal.LSN(4 * format.SegmentSize)
		}
	case n < 14:
		w.archive(l)
	case n < 15:
		w.restart(l)
	case n < 16:
		w.elect()
	case n < 18:
		w.recycle(l)
	case n < 19:
		w.backup(l)
	default:
		w.retain()
	}
}

// stretches are the WAL of a term history without gaps, in order.
func stretches(c book.Catalogue, history []ha.TermStart) []format.Gap {
	var all []format.Gap
	for from := wal.LSN(0); ; {
		to, missing := c.Covered(history, from)
		if to > from {
			all = append(all, format.Gap{From: from, To: to})
		}
		switch {
		case missing == nil:
			return all
		case missing.To > from:
			from = missing.To
		default: // what there is of the segment does not begin with it
			from = format.SegmentAt(0, from).End()
		}
	}
}

// recycle takes old WAL away, sometimes more than is archived.
func (w *world) recycle(l *leader) {
	keep := l.archiver.State().Slot()
	if w.random.IntN(5) == 0 {
		keep = format.SegmentStart(format.NumberAt(l.End))
	}
	l.Begin = max(l.Begin, min(keep, format.SegmentStart(format.NumberAt(l.End))))
	w.note("term %d: oldest %s", l.Terms[len(l.Terms)-1].Term, l.Begin)
}

// Seeds that have found something.
var foundSeeds = []uint64{
	1795225501978312247, // a leader left a hole which it could have filled
	1795228303725733798, // one did not say that its own first WAL is lost
	1795234640472817081, // nor that the WAL of the leader before it is, which had archived nothing
	1795234929464644937, // nor that there is a hole before what it has written itself
	1795235682633043664, // a late leader writes on into the folder whose notes retention has removed
	1795235983549027686, // and where that was cut short
	1795771266948742917, // no defect: a parent of one that stands alone was to lead on
	1795365265095201375, // a hole between what was written side by side, for which the WAL is gone
	1795365422261193835, // a parent of one that leads to the end is kept alone, and does not
	1795234938412257803, // retention deletes the term history of a term without WAL; others lead over the same
}

// Seeds that have found something with branches.
var foundBranches = []uint64{
	1795365642064660404, // WAL was not found that only a leader after the place of the restore had archived
	1795366057237367778, // a timeline's history that only a leader of another branch had archived
	1795366046032942902, // a time was on a branch that had only what the one before it had
	1795366068821593368, // of two other leaders' WAL now one was taken and now another
	1795365927840357730, // a leader whose WAL only another had archived
	1795365719449911814, // a branch showed moments of the one that it had left
	1795364567547542490, // what a backup.json that is cut off may need is older than it by more than an hour
	1795364462741656570, // a branch showed moments from before its only backup had ended
	1795873734273591340, // a restore in place left terms without WAL out, and their WAL of others was not found
}

var schedules = flag.Uint64("schedules", 200, "how many schedules TestHistories goes through")

func TestHistories(t *testing.T) {
	archivetest.SmallSegments(t)
	for _, seed := range foundSeeds {
		t.Run(fmt.Sprintf("found %d", seed), func(t *testing.T) { newWorld(t, seed).live() })
	}
	for _, seed := range foundBranches {
		t.Run(fmt.Sprintf("found %d", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.branches = true
			w.live()
		})
	}
	// Others each time: what is found has its seed in its name. How many these are depends on no clock.
	seed, most := uint64(time.Now().UnixNano()), *schedules
	if text := os.Getenv("TOBAN_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
		most = 1
	}
	counts := map[string]int{}
	n := uint64(0)
	for ; n < most && !t.Failed(); n++ {
		t.Run(fmt.Sprintf("TOBAN_SEED=%d", seed+n), func(t *testing.T) {
			w := newWorld(t, seed+n)
			w.branches = (seed+n)%2 == 0
			w.live()
			for what, count := range w.counts {
				counts[what] += count
			}
		})
	}
	t.Logf("%d schedules from seed %d: %v", n, seed, counts)
	for _, what := range []string{"restored", "gaps", "crashes"} {
		if counts[what] == 0 && most > 1 && !t.Failed() {
			t.Errorf("%d schedules from seed %d had none that is counted as %q", n, seed, what)
		}
	}
}
