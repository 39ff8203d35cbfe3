package postgres

import (
	"os"
	"path/filepath"
	"testing"
)

func TestACopyFlowsWhenItsDataAndItsWALHaveBegunToCome(t *testing.T) {
	t.Parallel()
	const wal = "pg_wal/000000010000000000000002"
	for name, c := range map[string]struct {
		files map[string]string
		flows bool
	}{
		"nothing has come":                {nil, false},
		"the first file has just begun":   {map[string]string{"backup_label": "", wal: "x"}, false},
		"data has come, and no WAL":       {map[string]string{"backup_label": "x", "pg_wal/archive_status": ""}, false},
		"WAL has come, and no data":       {map[string]string{wal: "x"}, false},
		"data has come and the first WAL": {map[string]string{"backup_label": "x", wal: "x"}, true},
		"more data has come, and more WAL": {
			map[string]string{"backup_label": "x", "PG_VERSION": "17", wal: "x"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := DataDirectory{Volume: t.TempDir()}
			for file, content := range c.files {
				path := filepath.Join(d.incoming(), file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if flows, err := d.flows(); err != nil || flows != c.flows {
				t.Errorf("it flows: %v, %v", flows, err)
			}
		})
	}
}

// The first word of pg_basebackup about what the source sends may come in pieces.
func TestACopyHasBegunWhenTheSourceSends(t *testing.T) {
	t.Parallel()
	b := newHeard(wordsBegun)
	for _, piece := range []string{
		"pg_basebackup: initiating base backup, waiting for checkpoint to complete\n",
		"pg_basebackup: write-ahead", " log sta",
	} {
		if _, err := b.Write([]byte(piece)); err != nil || b.yes() {
			t.Fatalf("it has begun with %q, %v", piece, err)
		}
	}
	for range 2 {
		if _, err := b.Write([]byte("rt point: 0/2000028 on timeline 1\n")); err != nil || !b.yes() {
			t.Fatalf("it has not begun, %v", err)
		}
	}
}
