package scrub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep/keeptest"
	"toban.dev/internal/ha"
)

// scrubbed is an archive of one term with two backups and the WAL of some segments, which ReadOn reads again and again.
type scrubbed struct {
	*keeptest.Written
	options Options
	state   State
}

const scrubPeriod = 30 * 24 * time.Hour

// newScrubbed makes one, encrypted where there is a key.
func newScrubbed(t *testing.T, key *age.X25519Identity) *scrubbed {
	s := &scrubbed{Written: keeptest.NewWritten(t, key)}
	s.options = Options{Bucket: s.Bucket, Decoder: &format.Decoder{}, Period: scrubPeriod, Workers: 2,
		Secret: []byte("nonce"), Now: s.Bucket.Clock.Add(2 * time.Hour)}
	if key != nil {
		var err error
		s.options.Decoder, err = format.NewDecoder(key.String())
		archivetest.Must(t, err)
	}
	return s
}

// run reads on, a week after the last time.
func (s *scrubbed) run() {
	s.Helper()
	var err error
	if s.state, err = ReadOn(s.Context(), s.options, s.state); err != nil {
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

func TestWhatAScrubFinds(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(s *scrubbed) string // the object that is to be found
		words  string
		newest bool
	}{
		"nothing, where all is well":           {func(*scrubbed) string { return "" }, "", false},
		"a piece of an old backup that rotted": {damaged("base/b1/base.tar.00001", keeptest.Flip), "SHA-256", false},
		"a piece that was cut off":             {damaged("base/b1/base.tar.00002", keeptest.Cut), "truncated", false},
		"a piece of the newest backup":         {damaged("base/b2/base.tar.00000", keeptest.Flip), "SHA-256", true},
		"a manifest that rotted":               {damaged("base/b1/backup_manifest", keeptest.Flip), "SHA-256", false},
		"WAL that rotted": {
			damaged("wal/00000001/000000010000000000000004", keeptest.Flip), "altered", false,
		},
		"WAL that was cut off": {damaged("wal/00000001/000000010000000000000007", keeptest.Cut), "altered", true},
		"WAL of another place": {func(s *scrubbed) string {
			from, to := s.Names("000000010000000000000004")[0], s.Names("000000010000000000000005")[0]
			s.Bucket.Objects[to] = s.Bucket.Objects[from]
			return to
		}, "altered", false},
		"a piece in the place of another": {func(s *scrubbed) string {
			s.Bucket.Objects[s.Names("b1/base.tar.00001")[0]] = s.Bucket.Objects[s.Names("b1/base.tar.00000")[0]]
			return s.Names("b1/base.tar.00001")[0]
		}, "", false},
		"a piece that is lost":             {lost("base/b1/base.tar.00001"), "missing", false},
		"WAL that leads on from a backup":  {lost("wal/00000001/000000010000000000000005"), "missing", false},
		"WAL that leads on from the last":  {lost("wal/00000001/000000010000000000000008"), "missing", true},
		"WAL that a backup needs":          {lost("wal/00000001/000000010000000000000003"), "b1 needs", false},
		"a backup.json that can't be read": {damaged("base/b1/backup.json", keeptest.Cut), "understood", false},
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
		s.Change(s.Names(name)[0], change)
		return s.Names(name)[0]
	}
}

// lost takes away all objects of such a name, the parts of a segment too.
func lost(name string) func(*scrubbed) string {
	return func(s *scrubbed) string {
		names := s.Names(name)
		for _, one := range names {
			delete(s.Bucket.Objects, one)
		}
		return names[0]
	}
}

// Who has only the public half of the key can encrypt, but not stamp.
func TestEncryptedWALFromSomebodyElseIsFound(t *testing.T) {
	s := newScrubbed(t, archivetest.Keys[0])
	name := s.Names("000000010000000000000004")[0]
	content := make([]byte, format.SegmentSize)
	archivetest.WriteWAL([]ha.TermStart{{Term: 9, Timeline: 1}}, format.SegmentStart(4), content)
	encoder, err := format.NewEncoder(archivetest.Keys[0].Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	plain := format.SegmentOf(1, 4).String()
	s.Change(name, func([]byte) []byte {
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
	name := s.Names("base/b1/base.tar.00001")[0]
	whole := s.Bucket.Objects[name]
	s.Change(name, keeptest.Flip)
	s.round()
	for range 6 {
		if s.run(); len(s.state.Findings) != 1 || s.state.Findings[0].Name != name {
			t.Fatalf("found %+v", s.state.Findings)
		}
	}
	s.Bucket.Objects[name] = whole
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
			for _, name := range s.Names("tar") {
				born[name] = cmp.Or(born[name], s.options.Now)
			}
			for name := range s.scrubNext() {
				seen[name] = s.options.Now
			}
			for _, name := range s.Names("tar") {
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
	r := &reads{Memory: s.Bucket, names: map[string]int{}}
	s.options.Bucket = r
	var err error
	if s.state, err = ReadOn(s.Context(), s.options, s.state); err != nil {
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
	folder := archivetest.Folder{T: s.T, Bucket: s.Bucket, Encoder: encoder, ID: id}
	b := format.Backup{ID: id, Term: 1}
	for i := range pieces {
		b.Pieces = append(b.Pieces, folder.Put(format.PieceName(format.BaseTar, i), []byte(fmt.Sprint(id, i))))
	}
	text, _ := json.Marshal(b)
	_ = s.Bucket.Put(s.Context(), format.FolderBase+id+"/"+format.FileBackup, text)
}

func TestABudgetIsKept(t *testing.T) {
	for _, budget := range []int64{1, 400, 5000} {
		s := newScrubbed(t, nil)
		s.options.Budget = budget
		largest := int64(0)
		for _, o := range s.Bucket.Objects {
			largest = max(largest, int64(len(o.Content)))
		}
		all := map[string]bool{}
		for range 60 {
			r := &reads{Memory: s.Bucket, names: map[string]int{}}
			s.options.Bucket = r
			s.run()
			for name := range r.names {
				all[name] = true
			}
			if r.bytes >= budget+largest || r.bytes != s.state.Bytes || len(r.names) != s.state.Objects {
				t.Fatalf("with a budget of %d it has read %d, and says %d", budget, r.bytes, s.state.Bytes)
			}
		}
		for _, name := range s.Names(".zst") {
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
	s.Bucket.Fault = func(bool) error { return nil }
	gone := &removes{Memory: s.Bucket, prefixes: []string{"base/b1/", "wal/00000001/000000010000000000000003"}}
	s.options.Bucket = gone
	if s.run(); len(s.state.Findings) > 0 {
		t.Errorf("what was removed is found: %+v", s.state.Findings)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	state, err := ReadOn(ctx, s.options, s.state)
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
