package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

const (
	namespace = outside.Namespace("toban-bench-upgrade")
	name      = "bench"
	patience  = 30 * time.Minute
)

const manifest = `apiVersion: toban.dev/v1
kind: SampleDB
metadata: {name: bench}
spec:
  version: %d
  instances: %d
  storage: {size: %dGi}
  %s
`

// inPlace upgrades a SampleDB of its own.
func inPlace(ctx context.Context, o options) ([]measured, error) {
	spec := []string{"backup: {none: true}", "upgrade: {method: Link, backup: None}"}
	return onCluster(ctx, o, spec, change{do: func(ctx context.Context) error {
		if err := o.raise(ctx); err != nil {
			return err
		}
		return reaches(ctx, v1.ConditionUpgraded, v1.ReasonUpgraded)
	}})
}

// raise asks for the new major version.
func (o options) raise(ctx context.Context) error {
	_, err := namespace.Kubectl(ctx, "patch", "sampledb", name, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"version":%d}}`, o.to))
	return err
}

// onCluster makes and fills a SampleDB with more lines of spec, and changes it while a writer writes.
func onCluster(ctx context.Context, o options, spec []string, changes ...change) (all []measured, err error) {
	n := namespace
	if _, err := n.Kubectl(ctx, "create", "namespace", string(n)); err != nil {
		return nil, err
	}
	defer func() {
		_, gone := n.Kubectl(context.WithoutCancel(ctx), "delete", "namespace", string(n))
		if err == nil {
			err = gone
		}
	}()
	if err := n.Apply(ctx, fmt.Sprintf(manifest, o.from, o.instances, 3*o.gigabytes+2,
		strings.Join(spec, "\n  "))); err != nil {
		return nil, err
	}
	if err := reaches(ctx, v1.ConditionReady, v1.ReasonReady); err != nil {
		return nil, err
	}
	access, err := n.Access(ctx, name, naming.ReadWriteService(name))
	if err != nil {
		return nil, err
	}
	err = outside.Until(ctx, patience, func(ctx context.Context) error { return access.Do(ctx, "SELECT 1") })
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, access, o.gigabytes); err != nil {
		return nil, err
	}
	return watch(ctx, access, changes...)
}

func reaches(ctx context.Context, condition, reason string) error {
	return becomes(ctx, func(db v1.SampleDB) error { return outside.Condition(db, condition, "True", reason) })
}

// becomes waits until there is nothing to complain of in the SampleDB.
func becomes(ctx context.Context, look func(v1.SampleDB) error) error {
	return outside.Until(ctx, patience, func(ctx context.Context) error {
		db, err := namespace.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		return look(db)
	})
}
