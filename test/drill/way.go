package main

import (
	"context"
	"sync"
	"time"

	"toban.dev/test/outside"
)

// way is how the machine reaches the read-write Service: its address, which is another
// one when the Service has been made anew, and the node by which it is reached.
type way struct {
	mutex  sync.Mutex
	access outside.Access
	node   string
}

func (w *way) get() outside.Access {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.access
}

func (w *way) set(access outside.Access) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.access = access
}

// by makes the node of that name the one by which the Service is reached.
func (w *way) by(ctx context.Context, c cluster, node string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.node = node
	return c.via(ctx, w.access.Host, node)
}

// move leads to a Service that has another address than before.
func (w *way) move(ctx context.Context, c cluster, access outside.Access) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if access.Host == w.access.Host {
		return nil
	}
	unroute(ctx, w.access.Host)
	if err := c.via(ctx, access.Host, w.node); err != nil {
		return err
	}
	w.access = access
	return nil
}

// leave takes by back.
func (w *way) leave(ctx context.Context) {
	if host := w.get().Host; host != "" {
		unroute(ctx, host)
	}
}

// followService looks the Service's address up until ctx ends, as an application finds
// it in the cluster's DNS. What can't be read stays as it was.
func (d *drill) followService(ctx context.Context) {
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, apiTimeout)
		if access, err := d.world.access(once); err == nil && access.Host != "" {
			if err := d.way.move(once, d.cluster, access); err != nil && ctx.Err() == nil {
				d.say("the Service has a new address: %v", err)
			}
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}
