package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"toban.dev/internal/postgres"
)

// begin makes a database system and starts its server, on a Unix socket only.
func (b *bench) begin(ctx context.Context) error {
	programs, err := newest(ctx)
	if err != nil {
		return err
	}
	b.server = &postgres.Server{
		Programs: programs, Data: postgres.DataDirectory{Volume: filepath.Join(b.folder, "volume")},
		Run: filepath.Join(b.folder, "run"), Port: 5432,
	}
	for _, folder := range []string{
		b.server.Data.Volume, b.server.Run, b.at("pgbackrest/log"), b.at("pgbackrest/repo"), b.at("bucket"),
	} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	log, err := os.Create(b.at("server.log"))
	if err != nil {
		return err
	}
	if err := b.server.Initialise(ctx, log); err != nil {
		return err
	}
	conf := fmt.Sprintf("listen_addresses = ''\nunix_socket_directories = '%s'\nshared_buffers = '512MB'\n"+
		"max_wal_size = '8GB'\nwal_keep_size = '8GB'\n", b.server.Run)
	for name, text := range map[string]string{
		"postgresql.conf": conf, "pg_hba.conf": "local all all trust\nlocal replication all trust\n",
	} {
		if err := os.WriteFile(filepath.Join(b.server.Data.Path(), name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if b.process, err = b.server.Start(ctx, log); err != nil {
		return err
	}
	return b.process.Ready(ctx)
}

func (b *bench) end(ctx context.Context) {
	b.process.Stop(context.WithoutCancel(ctx), postgres.StopImmediate)
}

func (b *bench) at(name string) string { return filepath.Join(b.folder, name) }

// newest are the programs of the newest PostgreSQL that is installed.
func newest(ctx context.Context) (postgres.Programs, error) {
	var err error
	for major := 18; major >= 15; major-- {
		var programs postgres.Programs
		if programs, err = postgres.FindPrograms(ctx, major); err == nil {
			return programs, nil
		}
	}
	return postgres.Programs{}, err
}

// fill makes the data, and begins the archive.
func (b *bench) fill(ctx context.Context) error {
	fmt.Fprintf(os.Stderr, "filling: pgbench's scale %d\n", b.scale)
	if err := b.tool(ctx, "pgbench", "--initialize", "--quiet", "--scale", fmt.Sprint(b.scale)); err != nil {
		return err
	}
	if err := b.tool(ctx, "psql", "--quiet", "--command", "checkpoint"); err != nil {
		return err
	}
	err := filepath.WalkDir(b.server.Data.Path(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(path, "/pg_wal/") {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			b.bytes += info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.openArchive(ctx)
}

// tool runs one of PostgreSQL's programs against the server.
func (b *bench) tool(ctx context.Context, program string, args ...string) error {
	return b.command(ctx, filepath.Join(b.server.Programs.Dir, program), args...)
}

func (b *bench) command(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "PGHOST="+b.server.Run, "PGUSER=postgres", "PGDATABASE=postgres")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, out)
	}
	return nil
}

// shell runs a pipe.
func (b *bench) shell(ctx context.Context, format string, args ...any) error {
	return b.command(ctx, "bash", "-o", "pipefail", "-ec", fmt.Sprintf(format, args...))
}
