package virtual

import (
	"context"
	"crypto/tls"
	"slices"
	"testing"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// maxInstances is how many instances there can be.
const maxInstances = 5

// members are the first so many instances.
func members(count int) []protocol.Member {
	var all []protocol.Member
	for i := range count {
		all = append(all, protocol.Member{Name: naming.Instance("db", i), Host: naming.InstanceHost("db", "test", i)})
	}
	return all
}

// operate begins the operator's part: it sends everybody the config, and notes the system identifier once there is one.
func (w *world) operate(authority, operators *pki.Authority) {
	leaf, err := operators.Issue(naming.IdentityOperator, nil, time.Now())
	w.check.must(err)
	pair, err := leaf.TLS()
	w.check.must(err)
	roots, err := pki.Pool(string(authority.CertPEM()))
	w.check.must(err)
	show := func() (tls.Certificate, error) { return pair, nil }
	w.operator = protocol.NewClient(pki.ClientTLS(show, roots, naming.IdentityInstance), naming.PortAgent)
	w.operator.DialBy(w.dialAsOperator)
	for _, i := range w.instances {
		w.clients.Go(func() {
			for pause(w.ctx, w.between("operator"+i.name, 500*time.Millisecond, 1500*time.Millisecond)) == nil {
				if locked(w, func() bool { return i.exists }) {
					w.sync(i)
				}
			}
		})
	}
}

func (w *world) sync(i *instance) {
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	w.mutex.Lock()
	config := w.config.Revise()
	w.mutex.Unlock()
	status, err := w.operator.Sync(ctx, i.name, config)
	if err != nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.config.SystemIdentifier == "" && status.SystemIdentifier != "" {
		w.config.SystemIdentifier = status.SystemIdentifier
		w.log("operator", "notes %s", status.SystemIdentifier)
	}
}

// isMember says that the config names an instance. It is called with the world's mutex.
func (w *world) isMember(name string) bool {
	return slices.ContainsFunc(w.config.Members, func(m protocol.Member) bool { return m.Name == name })
}

// reconcile has as many instances as there are members: it makes those that are missing, and
// dismisses those that are none.
func (w *world) reconcile() {
	for pause(w.ctx, w.between("reconcile", 300*time.Millisecond, 700*time.Millisecond)) == nil {
		for _, i := range w.instances {
			w.mutex.Lock()
			member, exists := w.isMember(i.name), i.exists
			i.exists = exists || member
			w.mutex.Unlock()
			switch {
			case member && !exists:
				i.start()
			case !member && exists:
				w.dismiss(i)
			}
		}
	}
}

// dismiss removes an instance that is no member, once it has no say any more. A primary hands over first.
func (w *world) dismiss(i *instance) {
	w.mutex.Lock()
	p := w.primary()
	if p == nil {
		w.mutex.Unlock()
		return
	}
	record, newest := p.s.hardState.Configuration, w.check.newestRecord()
	counts := slices.ContainsFunc(record.Voters(), func(v ha.Voter) bool { return v.Instance() == i.name })
	w.mutex.Unlock()
	switch {
	case p.s.instance == i:
		ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
		defer cancel()
		// It is asked again.
		_, _ = w.operator.Switchover(ctx, i.name, protocol.Switchover{Reason: "its instance is to be removed"})
	case !counts && record.Next == nil && record.Term >= newest.Term:
		w.remove(i)
	}
}

// remove ends an instance for good, with its volume.
func (w *world) remove(i *instance) {
	w.mutex.Lock()
	i.exists = false
	h := i.host
	w.log(i.name, "is removed")
	w.mutex.Unlock()
	if h != nil {
		h.kill()
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	i.disk, i.files, i.hardState = &disk{}, nil, ha.HardState{}
}

// Members come and go, and the durability changes there and back.
func TestMembersAndDurabilityChange(t *testing.T) {
	run(t, 11, 1, func(w *world) {
		w.formed()
		for n, count := range []int{3, 5, 3, 2, 3, 1, 2, 1, 4} {
			w.mutex.Lock()
			w.config.Members, w.config.Durability = members(count), protocol.DurabilityQuorum
			if n%2 == 1 {
				w.config.Durability = protocol.DurabilityAsync
			}
			w.mutex.Unlock()
			w.formed()
			w.expect("as many vote as there are members", len(w.leader().s.agent.Status().Voters) == count)
		}
	})
}
