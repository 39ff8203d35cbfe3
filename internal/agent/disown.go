package agent

import "context"

// disown stops a server at once that takes writes without having been elected. What it has written is nobody's: that its data has forked is on
// disk before anything is done with it.
func (a *Agent) disown(ctx context.Context) error {
	if err := a.fence(ctx); err != nil {
		return err
	}
	if err := a.server.MarkForked(); err != nil {
		return err
	}
	a.watch.unelected, a.watch.rewindFailed = false, false
	a.watch.known, a.watch.end = false, 0
	a.look()
	return nil
}
