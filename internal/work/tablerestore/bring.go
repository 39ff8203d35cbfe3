package tablerestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/archive/restore"
	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/initjob"
	"toban.dev/internal/work/pod"
)

// copyPatience is how long a restored copy may take until it takes connections.
const copyPatience = 10 * time.Minute

// BringOptions are what the container is told that brings things back.
type BringOptions struct {
	pod.Options
	// Plan is the file with the primary's hosts, as the init Job has it, Port that of the PostgreSQL servers.
	Plan string
	Port uint16
	// Volume is the scratch volume, Copy the folder with the socket of the restored copy.
	Volume, Copy string
}

// Bring brings tables, schemas or a database from the restored copy to the primary, and leaves the result where the
// kubelet finds it, whatever came of it.
func Bring(ctx context.Context, o BringOptions) error {
	b := &bringing{Pod: pod.New(o.Options), options: o}
	err := b.do(ctx)
	b.result.Error = pod.Words(err)
	words := []*string{&b.result.Error}
	for i := range b.result.Objects {
		words = append(words, &b.result.Objects[i].Says)
	}
	return errors.Join(err, pod.Leave(o.Termination, &b.result, words...))
}

// bringing is one run.
type bringing struct {
	pod.Pod
	options  BringOptions
	settings protocol.BringSettings
	plan     initjob.Plan
	result   protocol.BringResult
}

func (b *bringing) do(ctx context.Context) error {
	hold, err := holdCopy(b.options.Copy)
	if err != nil {
		return err
	}
	defer func() { _ = hold.Close() }() // nothing was written
	b.Progress.Step("starts the restored copy")
	stop, err := b.Begin(ctx, naming.IdentityRestore, &b.settings, &b.settings.Operator)
	if err != nil {
		return err
	}
	defer stop()
	if err := pod.ReadSettings(b.options.Plan, &b.plan); err != nil {
		return err
	}
	programs, err := postgres.FindPrograms(ctx, b.settings.Major)
	if err != nil {
		return err
	}
	if err := b.awaitCopy(ctx, programs); err != nil {
		return err
	}
	return b.bring(ctx, programs)
}

// awaitCopy waits until the copy takes connections.
func (b *bringing) awaitCopy(ctx context.Context, programs postgres.Programs) error {
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	for {
		conn, err := restore.ConnectCopy(ctx, programs, b.options.Copy, "postgres")
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the restored copy to start: %w", err)
		}
		pause.For(ctx, copyPoll)
	}
}

func (b *bringing) bring(ctx context.Context, programs postgres.Programs) error {
	config, err := pod.InitTLS(b.Authority, b.plan.Given)
	if err != nil {
		return err
	}
	roots, err := b.writeRoots()
	if err != nil {
		return err
	}
	folder := filepath.Join(b.options.Volume, "bring")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make room for what is brought: %w", err)
	}
	primary := &initjob.Job{Plan: b.plan, Port: b.options.Port, TLS: config}
	s := b.settings
	result, err := Run(ctx, Options{
		Copy: func(ctx context.Context, database string) (*pgx.Conn, error) {
			return restore.ConnectCopy(ctx, programs, b.options.Copy, database)
		},
		Primary: primary.Superuser,
		CopyEnv: restore.CopyEnvironment(programs, b.options.Copy), PrimaryEnv: b.primaryEnvironment(roots),
		Programs: programs, Database: s.Database, Tables: s.Tables, Schemas: s.Schemas, Suffix: s.Suffix,
		Replace: s.Replace, Folder: folder, Log: b.Log, Step: b.Progress.Step,
	})
	for _, o := range result.Objects {
		b.result.Objects = append(b.result.Objects, protocol.BroughtObject(o))
	}
	return err
}

// writeRoots writes by which authorities PostgreSQL's own programs know the primary: ours, and that of a certificate
// of the user.
func (b *bringing) writeRoots() (string, error) {
	trusted, err := b.Own.Trusted()
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.Run, "roots.crt")
	return path, postgres.WriteFile(path, append(append(trusted, '\n'), b.plan.Given...), 0o600)
}

// primaryEnvironment leads PostgreSQL's own programs to the primary (PostgreSQL 17 documentation, 34.15).
func (b *bringing) primaryEnvironment(roots string) []string {
	port := strconv.Itoa(int(cmp.Or(b.options.Port, naming.PortPostgreSQL)))
	return []string{
		"PGHOST=" + strings.Join(b.plan.Hosts, ","), "PGPORT=" + port, "PGTARGETSESSIONATTRS=read-write",
		"PGSSLMODE=verify-full", "PGSSLROOTCERT=" + roots, "PGCONNECT_TIMEOUT=5",
	}
}
