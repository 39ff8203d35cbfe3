package second

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/pod"
)

// putArchive puts an encrypted archive of a segment of WAL and a backup into a folder of a store.
func putArchive(t *testing.T, store bucket.Bucket, path string) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := format.NewEncoder(key.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	b := bucket.Sub(store, path)
	put := func(name, text string) format.Object {
		content := []byte(text)
		if strings.HasSuffix(name, ".age") {
			var sealed bytes.Buffer
			w, err := encoder.Writer(&sealed)
			if err == nil {
				_, err = w.Write(content)
			}
			if err = errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			content = sealed.Bytes()
		}
		if err := b.Create(t.Context(), name, content); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		return format.Object{Name: filepath.Base(name), Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	}
	if err := format.Claim(t.Context(), b, format.Owner{UID: "one", Namespace: "shop", Name: "main",
		SystemIdentifier: path}); err != nil {
		t.Fatal(err)
	}
	start := wal.LSN(3 * wal.SegmentSize)
	put(format.TermFolder(1)+format.FileLineage, `{"term":1,"starts":[{"term":1,"lsn":"0/0","timeline":1}]}`)
	put(format.TermFolder(1)+wal.SegmentAt(1, start, wal.SegmentSize).String()+".zst.age", "WAL")
	made := format.Backup{ID: "b1", Type: format.TypeFull, Term: 1, StartLSN: start + 0x28, StopLSN: start + 0x100,
		Started: time.Now(), Stopped: time.Now(), StartTimeline: 1, StopTimeline: 1}
	made.Manifest = put("base/b1/backup_manifest.zst.age", "manifest")
	made.Pieces = []format.Object{put("base/b1/base.tar.00000.zst.age", "piece")}
	note, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	put("base/b1/"+format.FileBackup, string(note))
}

// secondPod runs the process in the Pod that copies, with stores in two folders.
func secondPod(t *testing.T, change func(*protocol.BackupSettings)) (first, second string, run func() (
	protocol.CopyResult, error)) {
	t.Helper()
	first, second = t.TempDir(), t.TempDir()
	settings := protocol.BackupSettings{
		Archive: protocol.Archive{Bucket: bucket.Config{Folder: first}, Path: "shop/main-1a2b3c4d-pg18", Owner: "one"},
		Keep:    protocol.Retention{Count: 7}, Second: &bucket.Config{Folder: second},
		Former: []protocol.FormerArchive{{Path: "shop/main-1a2b3c4d", Major: 17}},
	}
	if change != nil {
		change(&settings)
	}
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	o := pod.Options{Settings: filepath.Join(t.TempDir(), "settings.json"), Run: t.TempDir(),
		Termination: filepath.Join(t.TempDir(), "result.json")}
	if err := os.WriteFile(o.Settings, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return first, second, func() (result protocol.CopyResult, err error) {
		err = Copy(t.Context(), o)
		text, readErr := os.ReadFile(o.Termination)
		if readErr = errors.Join(readErr, json.Unmarshal(text, &result)); readErr != nil {
			t.Fatal(readErr)
		}
		return result, err
	}
}

// All archives of a SampleDB are copied, those of former major versions too, and none of others.
func TestAllArchivesOfASampleDBAreCopied(t *testing.T) {
	first, second, run := secondPod(t, nil)
	store := bucket.OpenFolder(first)
	for _, path := range []string{"shop/main-1a2b3c4d", "shop/main-1a2b3c4d-pg18", "shop/other-1a2b3c4d"} {
		putArchive(t, store, path)
	}
	result, err := run()
	if err != nil || result.Until.IsZero() || result.LSN == "" || result.CheckedAt.IsZero() || result.Problem != "" {
		t.Fatalf("%+v, %v", result, err)
	}
	for path, want := range map[string]bool{
		"shop/main-1a2b3c4d": true, "shop/main-1a2b3c4d-pg18": true, "shop/other-1a2b3c4d": false,
	} {
		_, err := os.Stat(filepath.Join(second, path, "base/b1/backup.json"))
		if (err == nil) != want {
			t.Errorf("%s is copied: %v", path, err == nil)
		}
	}
	again, err := run()
	if err != nil || again.Objects > 0 || again.Until.Before(result.Until) {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// What the first store has lost is told, and stays in the copy.
func TestWhatTheFirstStoreHasLostStaysInTheCopy(t *testing.T) {
	first, second, run := secondPod(t, nil)
	putArchive(t, bucket.OpenFolder(first), "shop/main-1a2b3c4d-pg18")
	if _, err := run(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(first, "shop/main-1a2b3c4d-pg18/base")); err != nil {
		t.Fatal(err)
	}
	if lost, err := run(); err != nil || fmt.Sprint(lost.Lost) != "[b1]" || lost.Removed > 0 {
		t.Errorf("when the archive has lost a backup: %+v, %v", lost, err)
	}
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}
	if gone, err := run(); err == nil || gone.Error == "" || !gone.Until.IsZero() || gone.Removed > 0 {
		t.Errorf("when the first store is lost: %+v, %v", gone, err)
	}
	if _, err := os.Stat(filepath.Join(second, "shop/main-1a2b3c4d-pg18/base/b1/backup.json")); err != nil {
		t.Errorf("the copy has lost the backup: %v", err)
	}
}

func TestASecondStoreWithoutItsSecretIsTold(t *testing.T) {
	first, _, run := secondPod(t, func(s *protocol.BackupSettings) {
		s.Second = &bucket.Config{S3: &bucket.S3{Bucket: "copies"}, Credentials: "/does/not/exist"}
	})
	putArchive(t, bucket.OpenFolder(first), "shop/main-1a2b3c4d-pg18")
	result, err := run()
	if err == nil || !strings.Contains(result.Error, "spec.backup.secondStore names is not there") {
		t.Errorf("%+v, %v", result, err)
	}
}

// The first store was lost, and backup.store names another one: the status forgets the archives of former versions. A
// pinned backup stays in the copy, which has the last one.
func TestAPinnedBackupOfAFormerVersionStaysInTheCopy(t *testing.T) {
	const former, present = "shop/main-1a2b3c4d", "shop/main-1a2b3c4d-pg18"
	for name, c := range map[string]struct {
		known, forgotten []string
		stays            bool
	}{
		"as the status has it": {known: []string{"b1"}, stays: true},
		"forgotten":            {forgotten: []string{"b1"}, stays: true},
		"not pinned":           {},
	} {
		first, second, run := secondPod(t, func(s *protocol.BackupSettings) {
			s.Keep.Count = 1
			s.Former = []protocol.FormerArchive{{Path: former, Major: 17, Pinned: c.known}}
			if c.forgotten != nil {
				s.Former, s.Forgotten = nil, []protocol.FormerArchive{{Path: former, Major: 17, Pinned: c.forgotten}}
			}
		})
		putArchive(t, bucket.OpenFolder(first), present) // the new store has the present one only
		putArchive(t, bucket.OpenFolder(second), former)
		owner, err := os.ReadFile(filepath.Join(second, former, "archive.json"))
		if err = errors.Join(err, os.WriteFile(filepath.Join(second, former, "copy.json"), owner, 0o600)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if result, err := run(); err != nil || result.Problem != "" {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
		}
		if _, err := os.Stat(filepath.Join(second, former, "base/b1/backup.json")); (err == nil) != c.stays {
			t.Errorf("%s: the pinned backup is in the copy: %v", name, err == nil)
		}
	}
}
