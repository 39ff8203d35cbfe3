package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/wal"
)

// measure is something whose time is taken, after its preparation.
type measure struct {
	name string
	// way is the one that the data goes, "" for neither; tool who does it.
	way, tool string
	// limit says that nobody can be faster on this machine: it is a part of the work that all have to do.
	limit       bool
	prepare, do func(context.Context) error
}

// measures are each tool's backup and restore, and the limits of the machine: its processors, and its disk.
func (b *bench) measures() []measure {
	all := append(b.backups(), b.restores()...)
	return append(all, measure{name: "verification: Toban", tool: "Toban", do: b.verify})
}

// backups begin with the limits: to compress all, and to write what that leaves.
func (b *bench) backups() []measure {
	return []measure{
		{name: "limit of a backup, processors: `tar` and `zstd -1` with all of them", way: wayBackup, limit: true,
			do: func(ctx context.Context) error {
				return b.shell(ctx, "tar -c --exclude=pg_wal -C %s . | zstd -q -1 -T0 > /dev/null",
					b.server.Data.Path())
			}},
		{name: "backup: Toban", way: wayBackup, tool: "Toban", prepare: b.emptyArchive, do: b.take},
		{name: "backup: `pg_basebackup`, zstd with all processors, no manifest", way: wayBackup, tool: "pg_basebackup",
			prepare: b.remove("basebackup"), do: func(ctx context.Context) error {
				return b.tool(ctx, "pg_basebackup", "--pgdata", b.at("basebackup"), "--format", "tar",
					"--wal-method", "none", "--checkpoint", "fast",
					"--no-manifest", "--compress", fmt.Sprintf("client-zstd:level=1,workers=%d", runtime.NumCPU()))
			}},
		{name: "backup: pgBackRest, zstd with all processors", way: wayBackup, tool: "pgBackRest", prepare: b.newRepo,
			do: func(ctx context.Context) error {
				return b.pgbackrest(ctx, "backup", "--type=full", "--start-fast", "--no-archive-check")
			}},
		{name: "limit of a backup, disk: writing what it stores", way: wayBackup, limit: true,
			do: func(ctx context.Context) error {
				return b.shell(ctx, "cp %s/base.tar.zst %s && sync -f %s",
					b.at("basebackup"), b.restored(), b.restored())
			}},
	}
}

// restores begin with the limits: to decompress all, and to write all files.
func (b *bench) restores() []measure {
	return []measure{
		{name: "limit of a restore, processors: `zstd -d` with all of them", way: wayRestore, limit: true,
			do: func(ctx context.Context) error {
				return b.shell(ctx, "find %s -name '*.tar.*.zst' -print0 | xargs -0 -n 1 -P %d zstd -q -dc > /dev/null",
					b.at("bucket"), runtime.NumCPU())
			}},
		{name: "limit of a restore, disk: copying the files", way: wayRestore, limit: true,
			do: func(ctx context.Context) error {
				return b.shell(ctx, "cp -r %s %s && rm -r %s/data/pg_wal && sync -f %s",
					b.server.Data.Path(), b.restored(),
					b.restored(), b.restored())
			}},
		{name: "restore: Toban, the files", way: wayRestore, tool: "Toban", do: b.unpack},
		{name: "restore: Toban, until it takes writes", way: wayRestore, tool: "Toban, until it takes writes",
			do: b.restore},
		{name: "restore: `tar` of `pg_basebackup`, the files", way: wayRestore, tool: "pg_basebackup",
			do: func(ctx context.Context) error {
				return b.shell(ctx, "zstd -q -dc %s/base.tar.zst | tar -x -C %s && sync -f %s",
					b.at("basebackup"), b.restored(), b.restored())
			}},
		{name: "restore: pgBackRest, the files", way: wayRestore, tool: "pgBackRest",
			do: func(ctx context.Context) error {
				return b.pgbackrest(ctx, "restore", "--pg1-path="+b.restored(), "--type=none")
			}},
	}
}

func (b *bench) remove(name string) func(context.Context) error {
	return func(context.Context) error { return os.RemoveAll(b.at(name)) }
}

// pgbackrest runs it with as many processes as there are processors.
func (b *bench) pgbackrest(ctx context.Context, command string, more ...string) error {
	args := []string{
		"--stanza=bench", "--repo1-path=" + b.at("pgbackrest/repo"), "--log-path=" + b.at("pgbackrest/log"),
		"--lock-path=" + b.at("pgbackrest"), "--log-level-console=warn", "--config=/dev/null",
	}
	if command != "restore" {
		args = append(args,
			"--pg1-path="+b.server.Data.Path(), "--pg1-socket-path="+b.server.Run, "--pg1-user=postgres")
	}
	if command != "stanza-create" {
		args = append(args, fmt.Sprintf("--process-max=%d", runtime.NumCPU()))
	}
	if command == "backup" {
		args = append(args, "--compress-type=zst", "--compress-level=1")
	}
	return b.command(ctx, "pgbackrest", append(append(args, more...), command)...)
}

func (b *bench) newRepo(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(b.at("pgbackrest/repo")),
		os.MkdirAll(b.at("pgbackrest/repo"), 0o700)); err != nil {
		return err
	}
	return b.pgbackrest(ctx, "stanza-create")
}

// take takes a base backup into the archive.
func (b *bench) take(ctx context.Context) error {
	config, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%d user=postgres sslmode=disable",
		b.server.Run, b.server.Port))
	if err != nil {
		return err
	}
	taken, err := take.Take(ctx,
		take.TakeOptions{Server: config, Bucket: b.archive.bucket, Encoder: b.archive.encoder, Term: 1,
			Archived: func(ctx context.Context, _ wal.Timeline, lsn wal.LSN) (uint64, error) {
				return 1, b.archive.upTo(ctx, lsn)
			}})
	b.archive.last = taken
	return err
}

func (b *bench) unpack(ctx context.Context) error {
	return restore.Unpack(ctx, restore.UnpackOptions{Bucket: b.archive.bucket, Decoder: b.archive.decoder,
		Chain: []format.Backup{b.archive.last}, Data: filepath.Join(b.restored(), "data")})
}

func (b *bench) restore(ctx context.Context) error {
	run, err := os.MkdirTemp("/tmp", "toban-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(run) }()
	_, err = restore.Restore(ctx, restore.RestoreOptions{
		Bucket: b.archive.bucket, Decoder: b.archive.decoder,
		Wanted: book.Wanted{Backup: b.archive.last.ID, Target: book.Target{Immediate: true}, Now: time.Now()},
		Folder: b.restored(), Run: run, Programs: b.server.Programs, Log: b.archive.log,
	})
	return err
}

func (b *bench) verify(ctx context.Context) error {
	run, err := os.MkdirTemp("/tmp", "toban-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(run) }()
	catalogue, err := book.Read(ctx, b.archive.bucket)
	if err != nil {
		return err
	}
	choice, err := catalogue.Choose(book.Wanted{Backup: b.archive.last.ID, Now: time.Now()})
	if err != nil {
		return err
	}
	plan, err := catalogue.PlanWAL(choice.TermHistory, choice.Backup.StartLSN, choice.To)
	if err != nil {
		return err
	}
	if _, err = restore.Verify(ctx, restore.VerifyOptions{
		Bucket: b.archive.bucket, Decoder: b.archive.decoder, Chain: []format.Backup{b.archive.last}, Plan: plan,
		Folder: b.restored(), Run: run, Programs: b.server.Programs, Log: b.archive.log,
	}); err != nil {
		return err
	}
	_, err = restore.Inspect(ctx,
		restore.InspectOptions{Folder: b.restored(), Run: run, Programs: b.server.Programs, Log: b.archive.log})
	return err
}
