package main

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// deleteAndUndelete deletes the database as one would by mistake, and brings it back. The rows are counted again, and
// the password that an application knows must be good still.
func (d *demo) deleteAndUndelete(ctx context.Context) error {
	d.screen.chapter("The database is deleted, and brought back")
	began := time.Now()
	text, err := d.user.Kubectl(ctx, "delete", "sampledb", name)
	if err != nil {
		return err
	}
	d.report.removed = time.Since(began)
	d.screen.output("kubectl delete sampledb "+name, text)

	began = time.Now()
	if text, err = d.user.Toban(ctx, "undelete", name); err != nil {
		return err
	}
	d.screen.output("kubectl toban undelete "+name, text)
	if err := d.reconnect(ctx); err != nil {
		return err
	}
	d.report.undeleted = time.Since(began)
	return d.countAgain(ctx)
}

// reconnect goes on as the application would that has the former password: at the Service's new address.
func (d *demo) reconnect(ctx context.Context) error {
	return outside.Until(ctx, patience, func(ctx context.Context) error {
		access, err := d.user.Access(ctx, name, naming.ReadWriteService(name))
		if err != nil {
			return err
		}
		if access.Password != d.access.Password {
			return fmt.Errorf("%s has another password than before", name)
		}
		d.access = access
		d.writer.Use(access)
		return access.Do(ctx, "INSERT INTO first_write VALUES (now())")
	})
}

// countAgain compares the rows that have come back with those that were there.
func (d *demo) countAgain(ctx context.Context) error {
	lost, err := d.writer.Lost(ctx)
	if err != nil {
		return err
	}
	d.report.lost = max(d.report.lost, len(lost))
	if d.report.returned, err = d.rows(ctx); err != nil {
		return err
	}
	if d.report.returned != d.report.after {
		return fmt.Errorf("%d accounts and %d transactions have come back, of %d and %d",
			d.report.returned.accounts, d.report.returned.history, d.report.after.accounts, d.report.after.history)
	}
	return nil
}
