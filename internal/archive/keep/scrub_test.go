package keep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/write"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// scrubbed is an archive of one term with two backups and the WAL of some segments, which Scrub reads again and again.
type scrubbed struct {
	*testing.T
	bucket  *buckettest.Memory
	options ScrubOptions
	state   ScrubState
}

const scrubPeriod = 30 * 24 * time.Hour

// newScrubbed makes one, encrypted where there is a key.
func newScrubbed(t *testing.T, key *age.X25519Identity) *scrubbed {
	archivetest.SmallSegments(t)
	s := &scrubbed{T: t, bucket: buckettest.NewMemory()}
	begin := wal.LSN(3 * format.SegmentSize)
	source := &archivetest.Source{Terms: []ha.TermStart{{Term: 1, Timeline: 1}}, End: begin + 100, Begin: begin}
	archiver := scrubbedArchiver(t, s.bucket, source, key)
	for range 8 {
		archiveAll(t, archiver)
		source.End += wal.LSN(format.SegmentSize)
	}
	archiveAll(t, archiver)
	s.backup(archiver.Encoder, "b1", 3)
	s.backup(archiver.Encoder, "b2", 6)
	s.options = ScrubOptions{Bucket: s.bucket, Decoder: &format.Decoder{}, Period: scrubPeriod, Workers: 2,
		Secret: []byte("nonce"), Now: s.bucket.Clock.Add(2 * slack)}
	if key != nil {
		var err error
		s.options.Decoder, err = format.NewDecoder(key.String())
		archivetest.Must(t, err)
	}
	return s
}

// scrubbedArchiver is one whose archive is encrypted, if there is a key, and that knows a secret.
func scrubbedArchiver(
	t *testing.T, b *buckettest.Memory, s *archivetest.Source, key *age.X25519Identity,
) *write.Archiver {
	t.Helper()
	recipient := ""
	if key != nil {
		recipient = key.Recipient().String()
	}
	encoder, err := format.NewEncoder(recipient)
	archivetest.Must(t, err)
	a, err := write.NewArchiver(write.ArchiverOptions{Bucket: b, Owner: archivetest.Owner, Encoder: encoder, Source: s,
		TermHistory: s.Terms, Secret: []byte("nonce")})
	archivetest.Must(t, err)
	return a
}

// archiveAll archives what there is.
func archiveAll(t *testing.T, a *write.Archiver) {
	t.Helper()
	for behind := true; behind; {
		var err error
		behind, err = a.Step(t.Context())
		archivetest.Must(t, err)
	}
}

// backup puts one there of three pieces, which begins and ends in a segment.
func (s *scrubbed) backup(encoder *format.Encoder, id string, number uint64) {
	s.Helper()
	s.bucket.Clock = s.bucket.Clock.Add(time.Hour)
	start := format.SegmentStart(number)
	b := format.Backup{ID: id, Type: format.TypeFull, Term: 1, StartLSN: start + 0x28, StopLSN: start + 0x100,
		Started: s.bucket.Clock, Stopped: s.bucket.Clock, StartTimeline: 1, StopTimeline: 1}
	folder := archivetest.Folder{T: s.T, Bucket: s.bucket, Encoder: encoder, ID: id}
	put := func(name string) format.Object { return folder.Put(name, bytes.Repeat([]byte(id+name), 100)) }
	for i := range 3 {
		b.Pieces = append(b.Pieces, put(format.PieceName(format.BaseTar, i)))
	}
	b.Manifest = put(format.FileManifest)
	archivetest.PutBackup(s.T, s.bucket, b)
}

// run reads on, a week after the last time.
func (s *scrubbed) run() {
	s.Helper()
	var err error
	if s.state, err = Scrub(s.Context(), s.options, s.state); err != nil {
		s.Fatal(err)
	}
	s.options.Now = s.options.Now.Add(7 * 24 * time.Hour)
}

// round reads until each object was read once.
func (s *scrubbed) round() {
	s.Helper()
	for began := s.options.Now; s.options.Now.Sub(began) <= scrubPeriod; {
		s.run()
	}
}

// names are those of all objects with something in their name.
func (s *scrubbed) names(in string) []string {
	var all []string
	for name := range s.bucket.Objects {
		if strings.Contains(name, in) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func (s *scrubbed) change(name string, change func([]byte) []byte) {
	o := s.bucket.Objects[name]
	o.Content = change(bytes.Clone(o.Content))
	s.bucket.Objects[name] = o
}

func flip(content []byte) []byte { content[len(content)/2] ^= 1; return content }
func cut(content []byte) []byte  { return content[:len(content)-3] }

func TestWhatAScrubFinds(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(s *scrubbed) string // the object that is to be found
		words  string
		newest bool
	}{
		"nothing, where all is well":           {func(*scrubbed) string { return "" }, "", false},
		"a piece of an old backup that rotted": {damaged("base/b1/base.tar.00001", flip), "SHA-256", false},
		"a piece that was cut off":             {damaged("base/b1/base.tar.00002", cut), "truncated", false},
		"a piece of the newest backup":         {damaged("base/b2/base.tar.00000", flip), "SHA-256", true},
		"a manifest that rotted":               {damaged("base/b1/backup_manifest", flip), "SHA-256", false},
		"WAL that rotted": {
			damaged("wal/00000001/000000010000000000000004", flip), "altered", false,
		},
		"WAL that was cut off": {damaged("wal/00000001/000000010000000000000007", cut), "altered", true},
		"WAL of another place": {func(s *scrubbed) string {
			from, to := s.names("000000010000000000000004")[0], s.names("000000010000000000000005")[0]
			s.bucket.Objects[to] = s.bucket.Objects[from]
			return to
		}, "altered", false},
		"a piece in the place of another": {func(s *scrubbed) string {
			s.bucket.Objects[s.names("b1/base.tar.00001")[0]] = s.bucket.Objects[s.names("b1/base.tar.00000")[0]]
			return s.names("b1/base.tar.00001")[0]
		}, "", false},
		"a piece that is lost":             {lost("base/b1/base.tar.00001"), "missing", false},
		"WAL that leads on from a backup":  {lost("wal/00000001/000000010000000000000005"), "missing", false},
		"WAL that leads on from the last":  {lost("wal/00000001/000000010000000000000008"), "missing", true},
		"WAL that a backup needs":          {lost("wal/00000001/000000010000000000000003"), "b1 needs", false},
		"a backup.json that can't be read": {damaged("base/b1/backup.json", cut), "understood", false},
	} {
		for kind, key := range map[string]*age.X25519Identity{"plain": nil, "encrypted": archivetest.Keys[0]} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := newScrubbed(t, key)
				want := c.damage(s)
				s.round()
				if want == "" && len(s.state.Findings) == 0 && !s.state.Whole.IsZero() {
					return
				}
				if len(s.state.Findings) != 1 || s.state.More != 0 || want == "" {
					t.Fatalf("found %+v, %d more, in the round since %s", s.state.Findings, s.state.More, s.state.Round)
				}
				f := s.state.Findings[0]
				if !strings.HasPrefix(want, f.Name) || !strings.Contains(f.Problem, c.words) || f.Newest != c.newest {
					t.Errorf("found %+v", f)
				}
			})
		}
	}
}

// damaged changes the object whose name begins so.
func damaged(name string, change func([]byte) []byte) func(*scrubbed) string {
	return func(s *scrubbed) string {
		s.change(s.names(name)[0], change)
		return s.names(name)[0]
	}
}

// lost takes away all objects of such a name, the parts of a segment too.
func lost(name string) func(*scrubbed) string {
	return func(s *scrubbed) string {
		names := s.names(name)
		for _, one := range names {
			delete(s.bucket.Objects, one)
		}
		return names[0]
	}
}

// Who has only the public half of the key can encrypt, but not stamp.
func TestEncryptedWALFromSomebodyElseIsFound(t *testing.T) {
	s := newScrubbed(t, archivetest.Keys[0])
	name := s.names("000000010000000000000004")[0]
	content := make([]byte, format.SegmentSize)
	archivetest.WriteWAL([]ha.TermStart{{Term: 9, Timeline: 1}}, format.SegmentStart(4), content)
	encoder, err := format.NewEncoder(archivetest.Keys[0].Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	plain := format.SegmentOf(1, 4).String()
	s.change(name, func([]byte) []byte {
		forged, _ := encoder.EncodeStamped(content, format.StampWith([]byte("guessed"), plain, content))
		return forged
	})
	s.round()
	if f := s.state.Findings; len(f) != 1 || f[0].Name != name || !strings.Contains(f[0].Problem, "stamp") {
		t.Errorf("found %+v", f)
	}
}

// What was found stays found while the round goes on elsewhere, and is not any more when it was put back.
func TestWhatWasFoundIsReadAgainEachTime(t *testing.T) {
	s := newScrubbed(t, nil)
	name := s.names("base/b1/base.tar.00001")[0]
	whole := s.bucket.Objects[name]
	s.change(name, flip)
	s.round()
	for range 6 {
		if s.run(); len(s.state.Findings) != 1 || s.state.Findings[0].Name != name {
			t.Fatalf("found %+v", s.state.Findings)
		}
	}
	s.bucket.Objects[name] = whole
	if s.run(); len(s.state.Findings) != 0 {
		t.Errorf("it was put back, and still found: %+v", s.state.Findings)
	}
}

// reads notes what is read.
type reads struct {
	*buckettest.Memory
	mutex sync.Mutex
	names map[string]int
	bytes int64
}

func (r *reads) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !format.IsSmall(name) {
		r.names[name]++
		r.bytes += int64(len(r.Objects[name].Content))
	}
	return r.Memory.Get(ctx, name)
}

// Every object is read within the period, whatever is written and removed meanwhile, and no run reads more than its
// budget and one object.
func TestEveryObjectIsReadWithinThePeriod(t *testing.T) {
	for seed := range uint64(4) {
		s := newScrubbed(t, nil)
		random := rand.New(rand.NewPCG(seed, 0))
		between := time.Duration(1+random.IntN(10)) * 24 * time.Hour
		seen, born := map[string]time.Time{}, map[string]time.Time{}
		for n := range 60 {
			s.addPieces(fmt.Sprintf("n%d", n), 1+random.IntN(6))
			if random.IntN(3) == 0 && n > 3 {
				lost(fmt.Sprintf("base/n%d/", n-3))(s)
			}
			for _, name := range s.names("tar") {
				born[name] = cmp.Or(born[name], s.options.Now)
			}
			for name := range s.scrubNext() {
				seen[name] = s.options.Now
			}
			for _, name := range s.names("tar") {
				if unread := s.options.Now.Sub(later(seen[name], born[name])); unread > scrubPeriod {
					t.Fatalf("seed %d, every %s: %s was not read for %s", seed, between, name, unread)
				}
			}
			s.options.Now = s.options.Now.Add(between)
		}
		if s.state.Whole.IsZero() || s.options.Now.Sub(s.state.Whole) > 2*scrubPeriod+between {
			t.Errorf("seed %d, every %s: all was read since %s, it is %s", seed, between, s.state.Whole, s.options.Now)
		}
	}
}

// scrubNext does one run, and says which objects it has read.
func (s *scrubbed) scrubNext() map[string]int {
	s.Helper()
	r := &reads{Memory: s.bucket, names: map[string]int{}}
	s.options.Bucket = r
	var err error
	if s.state, err = Scrub(s.Context(), s.options, s.state); err != nil {
		s.Fatal(err)
	}
	return r.names
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// addPieces puts a backup there of so many pieces of random size.
func (s *scrubbed) addPieces(id string, pieces int) {
	encoder, _ := format.NewEncoder("")
	folder := archivetest.Folder{T: s.T, Bucket: s.bucket, Encoder: encoder, ID: id}
	b := format.Backup{ID: id, Term: 1}
	for i := range pieces {
		b.Pieces = append(b.Pieces, folder.Put(format.PieceName(format.BaseTar, i), []byte(fmt.Sprint(id, i))))
	}
	text, _ := json.Marshal(b)
	_ = s.bucket.Put(s.Context(), format.FolderBase+id+"/"+format.FileBackup, text)
}

func TestABudgetIsKept(t *testing.T) {
	for _, budget := range []int64{1, 400, 5000} {
		s := newScrubbed(t, nil)
		s.options.Budget = budget
		largest := int64(0)
		for _, o := range s.bucket.Objects {
			largest = max(largest, int64(len(o.Content)))
		}
		all := map[string]bool{}
		for range 60 {
			r := &reads{Memory: s.bucket, names: map[string]int{}}
			s.options.Bucket = r
			s.run()
			for name := range r.names {
				all[name] = true
			}
			if r.bytes >= budget+largest || r.bytes != s.state.Bytes || len(r.names) != s.state.Objects {
				t.Fatalf("with a budget of %d it has read %d, and says %d", budget, r.bytes, s.state.Bytes)
			}
		}
		for _, name := range s.names(".zst") {
			if !all[name] {
				t.Errorf("with a budget of %d, %s was never read", budget, name)
			}
		}
	}
}

// What retention removes meanwhile is no loss; nor is what a store does not give for the moment.
func TestWhatIsNoFinding(t *testing.T) {
	s := newScrubbed(t, nil)
	s.options.Period, s.options.Workers = time.Hour, 1 // all at once
	s.bucket.Fault = func(bool) error { return nil }
	gone := &removes{Memory: s.bucket, prefixes: []string{"base/b1/", "wal/00000001/000000010000000000000003"}}
	s.options.Bucket = gone
	if s.run(); len(s.state.Findings) > 0 {
		t.Errorf("what was removed is found: %+v", s.state.Findings)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	state, err := Scrub(ctx, s.options, s.state)
	if err == nil || state.Position != s.state.Position || len(state.Findings) > 0 {
		t.Errorf("it was cut short: %v, %+v", err, state)
	}
}

// removes is a bucket out of which objects go as soon as the first of something larger is read.
type removes struct {
	*buckettest.Memory
	prefixes []string
}

func (r *removes) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if !format.IsSmall(name) {
		for _, prefix := range r.prefixes {
			for one := range r.Without().Objects {
				if strings.HasPrefix(one, prefix) {
					_ = r.Delete(ctx, one)
				}
			}
		}
	}
	return r.Memory.Get(ctx, name)
}

// WAL that leads on from a backup that stands alone is what retention removes.
func TestHolesOfRetentionAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *book.Catalogue)
		pinned []string
		holes  int
	}{
		"the schedule's leads on": {func(*book.Catalogue) {}, nil, 1},
		"one that is pinned":      {func(*book.Catalogue) {}, []string{"b2"}, 0},
		"one that was asked for":  {func(c *book.Catalogue) { c.Backups[0].Trigger = "request" }, nil, 0},
		"one asked for beside a scheduled": {func(c *book.Catalogue) {
			addBackup(c, format.Backup{ID: "r", Trigger: "request", Term: 1}, 3,
				archivetest.Day(3))
		}, nil, 1},
		"the parent of one that is pinned": {func(c *book.Catalogue) {
			addBackup(c, format.Backup{ID: "child", Term: 1}, 3, archivetest.Day(3))
			c.Backups[1].Parent, c.Backups[1].Type = "b2", format.TypeIncremental
		}, []string{"child"}, 0},
		"a gap that is noted": {func(c *book.Catalogue) {
			gap := format.Gap{From: format.SegmentStart(5), To: format.SegmentStart(6)}
			c.Terms[1].Gaps = append(c.Terms[1].Gaps, bucket.Object{Name: format.TermFolder(1) + gap.Name()})
		}, nil, 0},
		"what came last was written side by side": {func(c *book.Catalogue) { loseWAL(c, 8, 9) }, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := aMonth(10, 2, 7)
			loseWAL(&catalogue, 5)
			c.change(&catalogue)
			if holes := (scrubList{catalogue}).holes(archivetest.Day(10), c.pinned); len(holes) != c.holes {
				t.Errorf("found %+v", holes)
			}
		})
	}
}
