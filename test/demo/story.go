package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// name is the database's, as in the example.
const name = "example-database"

const patience = 5 * time.Minute

// demo is the story so far.
type demo struct {
	options
	user   outside.Namespace
	screen screen
	access outside.Access
	writer *outside.Writer
	report report
}

// create applies the example and waits until it takes writes and all of its
// instances stream.
func (d *demo) create(ctx context.Context) error {
	manifest, err := os.ReadFile(d.manifest)
	if err != nil {
		return fmt.Errorf("read the example: %w", err)
	}
	there, err := d.user.Exists(ctx, "sampledb/"+name)
	if err != nil {
		return err
	}
	d.screen.chapter("A database")
	d.screen.output("kubectl apply -f "+d.manifest, string(manifest))
	began := time.Now()
	if err := d.user.Apply(ctx, string(manifest)); err != nil {
		return err
	}
	wrote := d.firstWrite(ctx, began)
	if err := d.watch(ctx, began); err != nil {
		return errors.Join(err, <-wrote)
	}
	streaming := time.Since(began)
	if err := <-wrote; err != nil {
		return err
	}
	if there {
		// Then these are no times of a start.
		d.screen.line("It was there already.")
		d.report.stages = d.report.stages[:len(d.report.stages)-1]
		return nil
	}
	d.report.stages = append(d.report.stages, stage{"applied → all instances ready", streaming})
	return nil
}

// firstWrite tries to write until it succeeds, and notes when that was.
func (d *demo) firstWrite(ctx context.Context, began time.Time) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := outside.Until(ctx, patience, func(ctx context.Context) error {
			if d.access.Host == "" {
				access, err := d.user.Access(ctx, name, naming.ReadWriteService(name))
				if err != nil {
					return err
				}
				d.access = access
			}
			return d.access.Do(ctx,
				"CREATE TABLE IF NOT EXISTS first_write (at timestamptz); INSERT INTO first_write VALUES (now())")
		})
		if err != nil {
			err = fmt.Errorf("write into %s: %w", name, err)
		}
		d.report.stages = append(d.report.stages, stage{"applied → first write", time.Since(began)})
		done <- err
	}()
	return done
}

// watch tells each change of the status until the SampleDB is ready.
func (d *demo) watch(ctx context.Context, began time.Time) error {
	said := ""
	return outside.Until(ctx, patience, func(ctx context.Context) error {
		db, err := d.user.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		if now := summary(db); now != said {
			said = now
			d.screen.line("%6.1f s  %s", time.Since(began).Seconds(), now)
		}
		return outside.Condition(db, v1.ConditionReady, "True", "")
	})
}

// summary is the status in a line.
func summary(db v1.SampleDB) string {
	text := fmt.Sprintf("%-11s %s ready", db.Status.Phase, db.Status.Ready)
	var parts []string
	for _, i := range db.Status.InstanceStatuses {
		what := i.Role
		switch {
		case i.Ready:
		case i.Reason != "":
			what = strings.TrimSpace(what + " " + i.Reason)
		case what == "":
			what = "starting"
		}
		parts = append(parts, strings.TrimPrefix(i.Name, db.Name+"-")+": "+what)
	}
	if len(parts) > 0 {
		text += "   " + strings.Join(parts, ", ")
	}
	return text
}

// show prints what kubectl has to say.
func (d *demo) show(ctx context.Context) error {
	for _, command := range [][]string{
		{"get", "SampleDB"},
		{"get", "pods,services,pvc", "-l", naming.LabelSampleDB + "=" + name},
	} {
		text, err := d.user.Kubectl(ctx, command...)
		if err != nil {
			return err
		}
		fmt.Fprintln(d.screen.out)
		d.screen.output("kubectl "+strings.Join(command, " "), text)
	}
	return nil
}

// fill loads pgbench's tables through the Service.
func (d *demo) fill(ctx context.Context) error {
	d.screen.chapter("Rows, through the Service %s (%s)", naming.ReadWriteService(name), d.access.Host)
	began := time.Now()
	scale := fmt.Sprintf("--scale=%d", d.scale)
	if _, err := outside.Pgbench(ctx, d.access, "--initialize", "--quiet", scale); err != nil {
		return err
	}
	d.report.filled = time.Since(began)
	var err error
	d.report.before, err = d.rows(ctx)
	d.report.rows = d.report.before.accounts
	d.screen.line("pgbench filled its tables with %s rows in %s", group(d.report.rows), seconds(d.report.filled))
	return err
}

// disturb puts the database under load, deletes the primary's Pod in the middle
// of it, and waits until all is well again.
func (d *demo) disturb(ctx context.Context) error {
	d.screen.chapter("Load, and the primary's Pod is deleted")
	writer, err := outside.StartWriter(ctx, d.access)
	if err != nil {
		return err
	}
	d.writer = writer
	defer writer.Stop()
	loading, stop := context.WithCancel(ctx)
	defer stop()
	finished := make(chan outside.Bench, 1)
	go func() { finished <- outside.PgbenchAgain(loading, d.access, d.load/4, "--client=4", "--jobs=2") }()

	if err := wait(ctx, d.load/4); err != nil {
		return err
	}
	deleted, err := d.deletePrimary(ctx)
	if err != nil {
		return err
	}
	if err := d.watch(ctx, deleted); err != nil {
		return err
	}
	d.report.back = time.Since(deleted)
	if err := wait(ctx, d.load-d.load/4-d.report.back); err != nil {
		return err
	}
	stop()
	b := <-finished
	d.report.transactions, d.report.tps = b.Transactions, b.TPS
	return nil
}

// deletePrimary deletes the Pod of the primary and waits until there is another
// one of its name, so that what comes after is the return and not the leaving.
func (d *demo) deletePrimary(ctx context.Context) (time.Time, error) {
	db, err := d.user.SampleDB(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	primary := db.Status.Primary
	if primary == "" {
		return time.Time{}, errors.New("the status names no primary")
	}
	old, err := d.user.Kubectl(ctx, "get", "pod", primary, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return time.Time{}, err
	}
	d.report.deleted = primary
	d.screen.line("%s", d.screen.paint("2", "$ kubectl delete pod "+primary))
	deleted := time.Now()
	if _, err := d.user.Kubectl(ctx, "delete", "pod", primary, "--wait=false"); err != nil {
		return deleted, err
	}
	return deleted, outside.Until(ctx, patience, func(ctx context.Context) error {
		now, err := d.user.Kubectl(ctx, "get", "pod", primary, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
		if err == nil && (now == "" || now == old) {
			err = fmt.Errorf("the Pod %s has not come back", primary)
		}
		return err
	})
}

// count compares the rows that are there with those that were acknowledged.
func (d *demo) count(ctx context.Context) error {
	d.report.outage, d.report.acknowledged = d.writer.Outage(), d.writer.Acknowledged()
	lost, err := d.writer.Lost(ctx)
	if err != nil {
		return err
	}
	d.report.lost = len(lost)
	d.report.after, err = d.rows(ctx)
	if short := d.report.transactions - (d.report.after.history - d.report.before.history); short > 0 {
		// What pgbench was told is committed counts as much as what the writer was told.
		d.report.lost += int(short)
	}
	return err
}

func (d *demo) rows(ctx context.Context) (counts, error) {
	conn, err := d.access.Connect(ctx)
	if err != nil {
		return counts{}, err
	}
	defer conn.Close(ctx)
	var c counts
	err = conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM pgbench_accounts), (SELECT count(*) FROM pgbench_history)").
		Scan(&c.accounts, &c.history)
	if err != nil {
		return c, fmt.Errorf("count the rows: %w", err)
	}
	return c, nil
}

// wait lets the load go on for a time.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
