package main

import (
	"context"
	"fmt"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

const (
	namespace = outside.Namespace("toban-bench-upgrade")
	name      = "bench"
	patience  = 10 * time.Minute
)

const manifest = `apiVersion: toban.dev/v1
kind: SampleDB
metadata: {name: bench}
spec:
  version: %d
  instances: %d
  storage: {size: %dGi}
  backup: {none: true}
  upgrade: {method: Link, backup: None}
`

// onCluster upgrades a SampleDB of its own.
func onCluster(ctx context.Context, o options) (m measured, err error) {
	n := namespace
	if _, err := n.Kubectl(ctx, "create", "namespace", string(n)); err != nil {
		return m, err
	}
	defer func() {
		_, gone := n.Kubectl(context.WithoutCancel(ctx), "delete", "namespace", string(n))
		if err == nil {
			err = gone
		}
	}()
	if err := n.Apply(ctx, fmt.Sprintf(manifest, o.from, o.instances, 3*o.gigabytes+2)); err != nil {
		return m, err
	}
	if err := reaches(ctx, v1.ConditionReady, v1.ReasonReady); err != nil {
		return m, err
	}
	access, err := n.Access(ctx, name, naming.ReadWriteService(name))
	if err != nil {
		return m, err
	}
	err = outside.Until(ctx, patience, func(ctx context.Context) error { return access.Do(ctx, "SELECT 1") })
	if err != nil {
		return m, err
	}
	if err := fill(ctx, access, o.gigabytes); err != nil {
		return m, err
	}
	return watch(ctx, access, func(ctx context.Context) error {
		_, err := n.Kubectl(ctx, "patch", "sampledb", name, "--type=merge", "-p",
			fmt.Sprintf(`{"spec":{"version":%d}}`, o.to))
		if err != nil {
			return err
		}
		return reaches(ctx, v1.ConditionUpgraded, v1.ReasonUpgraded)
	})
}

func reaches(ctx context.Context, condition, reason string) error {
	return outside.Until(ctx, patience, func(ctx context.Context) error {
		db, err := namespace.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		return outside.Condition(db, condition, "True", reason)
	})
}
