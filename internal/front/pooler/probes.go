package pooler

import (
	"context"
	"errors"

	"toban.dev/internal/agent/serve"
	"toban.dev/internal/front/route"
	"toban.dev/internal/protocol"
)

// serve answers the kubelet and Prometheus until ctx ends. What fails of that is said in the log, and the kubelet sees
// it.
func (p *Pooler) serve(ctx context.Context) {
	listen := p.options.Listen
	if listen == everywhere {
		listen = ""
	}
	probes := &serve.Probes{Listen: listen, ListenAt: protocol.Listen, Alive: p.alive, Ready: p.ready}
	metrics := &serve.Metrics{
		Listen: listen, ListenAt: protocol.Listen, Log: p.options.Log,
		Handler: (&Metrics{State: p.State, Ask: p.console.quick, Log: p.options.Log}).handler(),
	}
	operator := &operator{
		state: p.State, ask: p.console.quick, certificate: p.options.Certificate, authority: p.files.operator,
	}
	answers := func(ctx context.Context) error { return operator.serve(ctx, listen) }
	for _, serve := range []func(context.Context) error{probes.Serve, metrics.Serve, answers} {
		go func() {
			if err := serve(ctx); err != nil && ctx.Err() == nil {
				p.options.Log.Error("nobody is answered any more", "error", err.Error())
			}
		}()
	}
}

// alive says that PgBouncer answers.
func (p *Pooler) alive(ctx context.Context) error {
	_, err := p.console.quick(ctx, "SHOW VERSION")
	return err
}

// ready says that the pooler has had a route, that an instance knows of an election, or that the database sleeps. While
// no instance leads a pooler has to take clients and to hold them, also one that starts meanwhile.
func (p *Pooler) ready(context.Context) error {
	now := p.State()
	if !now.Asleep && now.Route == (route.Route{}) && len(now.Servers) == 0 && !p.instances.begun() {
		return errors.New("no instance has said yet that one was elected")
	}
	return nil
}
