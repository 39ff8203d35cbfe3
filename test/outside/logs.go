package outside

import (
	"bytes"
	"context"
	"os/exec"
	"sync"
	"time"
)

// Logs are those of Pods, from their beginning on, also of those that take their place: what a Pod has said goes with
// it.
type Logs struct {
	stop context.CancelFunc
	wait sync.WaitGroup
	pods []*podLog
}

// podLog is what the Pods of one name have said. One that is read from its beginning again says it twice.
type podLog struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write is for kubectl.
func (l *podLog) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(text)
}

// FollowLogs follows the logs of Pods until Stop.
func (n Namespace) FollowLogs(ctx context.Context, pods ...string) *Logs {
	ctx, stop := context.WithCancel(ctx)
	all := &Logs{stop: stop}
	for _, pod := range pods {
		log := &podLog{}
		all.pods = append(all.pods, log)
		all.wait.Go(func() {
			for ctx.Err() == nil {
				command := exec.CommandContext(ctx, "kubectl", "--namespace", string(n), "logs", "--follow", pod)
				command.Stdout = log
				_ = command.Run()              // the Pod may be on its way out, or not there yet
				_, _ = log.Write([]byte("\n")) // the next one begins a line
				select {
				case <-ctx.Done():
				case <-time.After(Poll):
				}
			}
		})
	}
	return all
}

// Texts are the logs so far, one for each name.
func (l *Logs) Texts() (all []string) {
	for _, log := range l.pods {
		log.mutex.Lock()
		all = append(all, log.text.String())
		log.mutex.Unlock()
	}
	return all
}

// Stop ends it.
func (l *Logs) Stop() {
	l.stop()
	l.wait.Wait()
}
