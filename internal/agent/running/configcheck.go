package running

import (
	"errors"
	"sync"

	"toban.dev/internal/postgres"
)

// configCheck asks PostgreSQL aside whether it takes a configuration. On a busy machine the answer takes longer than
// the server may take to show that it serves, and the monitor must not wait for it. The zero value is ready for use.
type configCheck struct {
	mutex    sync.Mutex
	revision string
	done     bool
	err      error
}

// outcome is what the check of a revision has said. Where nothing is known yet, a check is begun, unless one is
// under way. A check that got no answer from PostgreSQL is forgotten: no answer is no refusal. What is to be
// done after a check is then.
func (c *configCheck) outcome(revision string, check func() error, then func()) (known bool, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.revision != revision {
		c.revision, c.done, c.err = revision, false, nil
		go func() {
			c.run(revision, check)
			then()
		}()
	}
	return c.done, c.err
}

func (c *configCheck) run(revision string, check func() error) {
	err := check()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.revision != revision {
		return // another one is wanted meanwhile
	}
	var rejected *postgres.RejectedError
	if err != nil && !errors.As(err, &rejected) {
		c.revision = ""
		return
	}
	c.done, c.err = true, err
}
