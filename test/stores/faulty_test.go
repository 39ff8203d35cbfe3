package stores

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/test/stores/servers"
)

// behind opens an S3 bucket through a proxy that can be made to behave badly.
func behind(t *testing.T) (bucket.Bucket, *servers.Faulty) {
	t.Helper()
	server := servers.StartS3(t)
	faulty := servers.StartFaulty(t, server.URL)
	b, err := bucket.Open(t.Context(), server.At(faulty.URL))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), "first", []byte("first")); err != nil {
		t.Fatalf("through the proxy: %v", err)
	}
	return b, faulty
}

func TestAwayIsAnErrorAndPasses(t *testing.T) {
	b, faulty := behind(t)
	faulty.Away()
	start := time.Now()
	err := b.Put(t.Context(), "away", nil)
	if took := time.Since(start); err == nil || took > 45*time.Second {
		t.Errorf("while it is away: %v after %s", err, took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	start = time.Now()
	if err := b.Put(ctx, "away", nil); !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
		t.Errorf("cancelled while it is away: %v after %s", err, time.Since(start))
	}
	done := make(chan error, 1)
	go func() { done <- b.Put(t.Context(), "back", nil) }()
	time.AfterFunc(time.Second, func() {
		if err := faulty.Back(); err != nil {
			t.Errorf("back: %v", err)
		}
	})
	if err := <-done; err != nil {
		t.Errorf("it came back meanwhile: %v", err)
	}
}

func TestRefusedWrites(t *testing.T) {
	b, faulty := behind(t)
	faulty.RefuseWritesAfter(1)
	if err := b.Put(t.Context(), "one more", nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), "too many", nil); err == nil {
		t.Error("a refused write is no error")
	}
	body, err := b.Get(t.Context(), "first")
	if err != nil {
		t.Fatalf("reading goes on: %v", err)
	}
	_ = body.Close() // it was there
	faulty.RefuseWritesAfter(-1)
	if err := b.Put(t.Context(), "too many", nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestSlowIsNotAway takes longer than the patience with a connection that stands still.
func TestSlowIsNotAway(t *testing.T) {
	b, faulty := behind(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 128<<10) // 2 MiB
	faulty.Bandwidth(100 << 10)
	start := time.Now()
	if err := b.Put(t.Context(), "slow", content); err != nil {
		t.Fatalf("write slowly: %v", err)
	}
	if took := time.Since(start); took < 16*time.Second {
		t.Errorf("it took only %s: nothing was tried", took)
	}
	faulty.Bandwidth(0)
	body, err := b.Get(t.Context(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestNoAnswerIsAnError(t *testing.T) {
	b, faulty := behind(t)
	faulty.Delay(time.Minute)
	start := time.Now()
	err := b.Put(t.Context(), "late", nil)
	if took := time.Since(start); err == nil || took > 50*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

// TestLostAnswer has the answer to a create come too late: what is there then is one's own.
func TestLostAnswer(t *testing.T) {
	b, faulty := behind(t)
	content := bytes.Repeat([]byte("x"), 1<<20)
	faulty.LoseAnswers(1)
	if err := b.Create(t.Context(), "own", content); err != nil {
		t.Errorf("one's own: %v", err)
	}
	faulty.LoseAnswers(1)
	if err := b.Create(t.Context(), "own", []byte("other")); !errors.Is(err, bucket.ErrExists) {
		t.Errorf("another's: %v, want ErrExists", err)
	}
}
