// Package buckettest is what every bucket must do, whatever is behind it: one
// table, which the tests of each store run.
package buckettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toban.dev/internal/archive/bucket"
)

// Store is a store to be tried.
type Store struct {
	// Bucket is there, and the credentials may do everything.
	Bucket bucket.Config
	// Missing is a bucket that is not there.
	Missing bucket.Config
	// Denied has wrong credentials; nil where there is no such thing.
	Denied *bucket.Config
}

const (
	// deadline is how long a behaviour may take.
	deadline = 2 * time.Minute
	// atOnce is the meaning of "at once" for a cancelled context, on a busy machine.
	atOnce = 5 * time.Second
)

var behaviours = map[string]func(ctx context.Context, t *testing.T, b bucket.Bucket){
	"what was put is there, and is replaced whole": putGet,
	"an object of 0 bytes": func(ctx context.Context, t *testing.T, b bucket.Bucket) {
		sized(ctx, t, b, 0)
	},
	"an object of 32 MiB": func(ctx context.Context, t *testing.T, b bucket.Bucket) {
		sized(ctx, t, b, 32<<20)
	},
	"an object that is too large is refused":               tooLarge,
	"an object that is not there":                          absent,
	"create does not replace":                              create,
	"of ten that create an object exactly one does":        race,
	"names come in the order of their bytes":               order,
	"a prefix that is no folder":                           prefix,
	"a listing that begins after a name":                   after,
	"a listing that is left goes no further":               leave,
	"odd but legal names":                                  oddNames,
	"names that are not legal are refused":                 badNames,
	"what is deleted is gone, and again is no error":       remove,
	"the folder of what was deleted can be written again":  removeAndWrite,
	"a folder of a bucket shows only what is in it":        sub,
	"a context that is cancelled ends everything at once":  cancelled,
	"writing and deleting side by side in the same folder": together,
}

// Run tries every behaviour, each in a folder of its own.
func Run(t *testing.T, s Store) {
	folder := 0
	for name, behaviour := range behaviours {
		folder++
		config := s.Bucket
		config.Prefix = fmt.Sprintf("behaviour/%02d", folder)
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			behaviour(ctx, t, open(t, config))
		})
	}
	t.Run("a bucket that is missing", func(t *testing.T) { all(t, s.Missing, bucket.ErrNoBucket) })
	if s.Denied != nil {
		t.Run("wrong credentials", func(t *testing.T) { all(t, *s.Denied, bucket.ErrDenied) })
	}
	t.Run("more objects than a page", func(t *testing.T) {
		config := s.Bucket
		config.Prefix = "many"
		many(t, open(t, config))
	})
}

func open(t *testing.T, config bucket.Config) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.Context(), config)
	if err != nil {
		t.Fatalf("open the bucket: %v", err)
	}
	return b
}

func put(ctx context.Context, t *testing.T, b bucket.Bucket, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := b.Put(ctx, name, []byte("content of "+name)); err != nil {
			t.Fatalf("put: %v", err)
		}
	}
}

// read returns the content of an object.
func read(ctx context.Context, b bucket.Bucket, name string) ([]byte, error) {
	body, err := b.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func expect(ctx context.Context, t *testing.T, b bucket.Bucket, name string, want []byte) {
	t.Helper()
	got, err := read(ctx, b, name)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("get %s: %d bytes (%.60q), %v; want %d (%.60q)", name, len(got), got, err, len(want), want)
	}
}

func list(ctx context.Context, t *testing.T, b bucket.Bucket, prefix string) []string {
	t.Helper()
	names := []string{}
	for object, err := range b.List(ctx, prefix) {
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		names = append(names, object.Name)
	}
	return names
}

func putGet(ctx context.Context, t *testing.T, b bucket.Bucket) {
	before := time.Now().Add(-time.Minute)
	for _, content := range []string{"the first, which is longer", "second"} {
		if err := b.Put(ctx, "a/b", []byte(content)); err != nil {
			t.Fatalf("put: %v", err)
		}
		expect(ctx, t, b, "a/b", []byte(content))
	}
	for object, err := range b.List(ctx, "") {
		if err != nil || object.Name != "a/b" || object.Size != 6 || object.Modified.Before(before) {
			t.Fatalf("list: %+v, %v", object, err)
		}
	}
}

func sized(ctx context.Context, t *testing.T, b bucket.Bucket, size int) {
	content := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(content)
	if err := b.Create(ctx, "created", content); err != nil {
		t.Fatalf("create: %v", err)
	}
	expect(ctx, t, b, "created", content)
	if err := b.Put(ctx, "put", content); err != nil {
		t.Fatalf("put: %v", err)
	}
	expect(ctx, t, b, "put", content)
}

func tooLarge(ctx context.Context, t *testing.T, b bucket.Bucket) {
	if err := b.Put(ctx, "large", make([]byte, bucket.MaxObject+1)); !errors.Is(err, bucket.ErrInvalid) {
		t.Fatalf("put: %v, want ErrInvalid", err)
	}
}

func absent(ctx context.Context, t *testing.T, b bucket.Bucket) {
	put(ctx, t, b, "folder/object")
	for _, name := range []string{"none", "folder/none", "folder", "none/none"} {
		if _, err := read(ctx, b, name); !errors.Is(err, bucket.ErrNotExist) {
			t.Errorf("get %s: %v, want ErrNotExist", name, err)
		}
	}
	if names := list(ctx, t, b, "none/"); len(names) != 0 {
		t.Errorf("list of a folder that is not there: %q", names)
	}
}

func create(ctx context.Context, t *testing.T, b bucket.Bucket) {
	if err := b.Create(ctx, "a/object", []byte("first")); err != nil {
		t.Fatalf("create: %v", err)
	}
	if err := b.Create(ctx, "a/object", []byte("second")); !errors.Is(err, bucket.ErrExists) {
		t.Fatalf("create again: %v, want ErrExists", err)
	}
	expect(ctx, t, b, "a/object", []byte("first"))
	if err := b.Delete(ctx, "a/object"); err != nil {
		t.Fatalf("delete: %v", err)
	}
	if err := b.Create(ctx, "a/object", []byte("third")); err != nil {
		t.Fatalf("create after delete: %v", err)
	}
	expect(ctx, t, b, "a/object", []byte("third"))
}

func race(ctx context.Context, t *testing.T, b bucket.Bucket) {
	for round := range 5 {
		name := fmt.Sprintf("round/%d", round)
		var errs [10]error
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = b.Create(ctx, name, fmt.Appendf(nil, "%d", i)) })
		}
		all.Wait()
		winner := slices.Index(errs[:], nil)
		if winner < 0 {
			t.Fatalf("nobody won: %v", errors.Join(errs[:]...))
		}
		for i, err := range errs {
			if i != winner && !errors.Is(err, bucket.ErrExists) {
				t.Errorf("%d has %v, though %d has won", i, err, winner)
			}
		}
		expect(ctx, t, b, name, fmt.Appendf(nil, "%d", winner))
	}
}

func order(ctx context.Context, t *testing.T, b bucket.Bucket) {
	// A folder's place is that of its name with a slash: after - and ., before 0.
	want := []string{
		"A", "a-b", "a.b", "a/b", "a/c/d", "a/c0", "a0", "b", "wal/0000002A/x.00000000-00100000.zst",
		"wal/0000002A/x.zst", "é",
	}
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	put(ctx, t, b, backwards...)
	if got := list(ctx, t, b, ""); !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func prefix(ctx context.Context, t *testing.T, b bucket.Bucket) {
	put(ctx, t, b, "wal/01", "wal/02", "wal/0/1", "walk", "wa", "x")
	for prefix, want := range map[string][]string{
		"wal":     {"wal/0/1", "wal/01", "wal/02", "walk"},
		"wal/":    {"wal/0/1", "wal/01", "wal/02"},
		"wal/0":   {"wal/0/1", "wal/01", "wal/02"},
		"wal/0/":  {"wal/0/1"},
		"wal/02":  {"wal/02"},
		"wal/02/": {},
		"walks":   {},
		"y":       {},
	} {
		if got := list(ctx, t, b, prefix); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", prefix, got, want)
		}
	}
}

func after(ctx context.Context, t *testing.T, b bucket.Bucket) {
	put(ctx, t, b, "base/9", "wal/01/a", "wal/02/a", "wal/02/b", "wal/02/b.1", "wal/1", "x")
	for _, c := range []struct {
		prefix, after string
		want          []string
	}{
		{"wal/", "", []string{"wal/01/a", "wal/02/a", "wal/02/b", "wal/02/b.1", "wal/1"}},
		{"wal/", "wal/02/a", []string{"wal/02/b", "wal/02/b.1", "wal/1"}},
		{"wal/", "wal/02/az", []string{"wal/02/b", "wal/02/b.1", "wal/1"}},
		{"wal/", "wal/02/b.1", []string{"wal/1"}},
		{"wal/02", "wal/01/b", []string{"wal/02/a", "wal/02/b", "wal/02/b.1"}},
		{"wal/", "wal/2", []string{}},
	} {
		got := []string{}
		for object, err := range b.ListAfter(ctx, c.prefix, c.after) {
			if err != nil {
				t.Fatalf("list %q after %q: %v", c.prefix, c.after, err)
			}
			got = append(got, object.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q after %q: got %q, want %q", c.prefix, c.after, got, c.want)
		}
	}
}

func leave(ctx context.Context, t *testing.T, b bucket.Bucket) {
	put(ctx, t, b, "a", "b/1", "b/2", "c")
	seen := 0
	for _, err := range b.List(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Fatalf("saw %d objects, want 2", seen)
	}
}

func oddNames(ctx context.Context, t *testing.T, b bucket.Bucket) {
	want := []string{
		"a b", "a!b", "a#b", "a$b", "a%20b", "a%2Fb", "a&b", "a'b", "a(b)", "a*b", "a+b", "a,b", "a..b", "a:b", "a;b=c",
		"a=b", "a?b", "a@b", "a[b]", "a^b", "a~b", "日本/名前",
	}
	slices.Sort(want)
	put(ctx, t, b, want...)
	if got := list(ctx, t, b, ""); !slices.Equal(got, want) {
		t.Errorf("list:\n got %q\nwant %q", got, want)
	}
	for _, name := range want {
		expect(ctx, t, b, name, []byte("content of "+name))
	}
	if err := b.Delete(ctx, want...); err != nil {
		t.Errorf("delete: %v", err)
	}
	if got := list(ctx, t, b, ""); len(got) != 0 {
		t.Errorf("after delete: %q", got)
	}
}

func badNames(ctx context.Context, t *testing.T, b bucket.Bucket) {
	for _, name := range []string{
		"", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/./b", ".a", "a.", `a\b`, "a\nb", "a\x00b", "a\xffb",
		strings.Repeat("a/", 1000) + "a",
	} {
		_, get := b.Get(ctx, name)
		for what, err := range map[string]error{
			"put": b.Put(ctx, name, nil), "create": b.Create(ctx, name, nil), "get": get, "delete": b.Delete(ctx, name),
		} {
			if !errors.Is(err, bucket.ErrInvalid) {
				t.Errorf("%s %.20q: %v, want ErrInvalid", what, name, err)
			}
		}
	}
	for _, err := range b.List(ctx, "a/../../") {
		if !errors.Is(err, bucket.ErrInvalid) {
			t.Errorf("list: %v, want ErrInvalid", err)
		}
	}
}

func remove(ctx context.Context, t *testing.T, b bucket.Bucket) {
	put(ctx, t, b, "a/1", "a/2", "a/b/3", "c")
	for range 2 {
		if err := b.Delete(ctx, "a/1", "a/b/3", "none", "none/none"); err != nil {
			t.Fatalf("delete: %v", err)
		}
		if got, want := list(ctx, t, b, ""), []string{"a/2", "c"}; !slices.Equal(got, want) {
			t.Fatalf("left: %q, want %q", got, want)
		}
	}
	if err := b.Delete(ctx); err != nil {
		t.Fatalf("delete nothing: %v", err)
	}
}

func removeAndWrite(ctx context.Context, t *testing.T, b bucket.Bucket) {
	for range 3 {
		put(ctx, t, b, "a/b/c")
		if err := b.Delete(ctx, "a/b/c"); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	// What was a folder may be an object once it is empty.
	put(ctx, t, b, "a")
	expect(ctx, t, b, "a", []byte("content of a"))
}

func sub(ctx context.Context, t *testing.T, b bucket.Bucket) {
	put(ctx, t, b, "in/a", "inner", "out")
	in := bucket.Sub(b, "/in/")
	put(ctx, t, in, "b/c")
	if got, want := list(ctx, t, in, ""), []string{"a", "b/c"}; !slices.Equal(got, want) {
		t.Errorf("in it: %q, want %q", got, want)
	}
	if err := in.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if got, want := list(ctx, t, b, ""), []string{"in/b/c", "inner", "out"}; !slices.Equal(got, want) {
		t.Errorf("around it: %q, want %q", got, want)
	}
	if _, err := in.Get(ctx, "../out"); !errors.Is(err, bucket.ErrInvalid) {
		t.Errorf("out of it: %v, want ErrInvalid", err)
	}
}

// operations are all that can be asked of a bucket.
func operations(ctx context.Context, b bucket.Bucket) map[string]error {
	_, get := read(ctx, b, "object")
	var listed error
	for _, err := range b.List(ctx, "") {
		listed = err
	}
	return map[string]error{
		"put": b.Put(ctx, "object", []byte("x")), "create": b.Create(ctx, "object", []byte("x")), "get": get,
		"list": listed, "delete": b.Delete(ctx, "object"),
	}
}

func all(t *testing.T, config bucket.Config, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for what, err := range operations(ctx, open(t, config)) {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
}

func cancelled(ctx context.Context, t *testing.T, b bucket.Bucket) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	start := time.Now()
	for what, err := range operations(ctx, b) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %q", what, err, context.Canceled)
		}
	}
	if took := time.Since(start); took > atOnce {
		t.Errorf("it took %s", took)
	}
}

func together(ctx context.Context, t *testing.T, b bucket.Bucket) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprintf("folder/in/%d", i)
			for range 10 {
				if err := errors.Join(b.Put(ctx, name, []byte(name)), b.Delete(ctx, name)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
	if got := list(ctx, t, b, ""); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

func many(t *testing.T, b bucket.Bucket) {
	const count = 2100
	ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
	defer cancel()
	want := make([]string, count)
	var all sync.WaitGroup
	limit := make(chan struct{}, 16)
	for i := range want {
		want[i] = fmt.Sprintf("%d/%04d", i/700, i)
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			if err := b.Put(ctx, want[i], nil); err != nil {
				t.Errorf("put: %v", err)
			}
		})
	}
	all.Wait()
	if got := list(ctx, t, b, ""); !slices.Equal(got, want) {
		t.Fatalf("listed %d objects, want %d", len(got), count)
	}
	if err := b.Delete(ctx, want...); err != nil {
		t.Fatalf("delete: %v", err)
	}
	if got := list(ctx, t, b, ""); len(got) != 0 {
		t.Fatalf("%d are left", len(got))
	}
}
