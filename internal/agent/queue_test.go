package agent

import (
	"context"
	"testing"
	"testing/synctest"

	"toban.dev/internal/ha/machine"
)

func TestACommandThatIsEndedIsOverWhenItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []uint64
		x := &queue{
			life: t.Context(),
			do: func(ctx context.Context, _ machine.Command) machine.Done {
				<-ctx.Done()
				return machine.Done{Err: ctx.Err().Error()}
			},
			ended: func(c machine.Command, d machine.Done) {
				if d.ID == c.ID && d.Err != "" {
					ended = append(ended, d.ID)
				}
			},
		}
		if over := x.end(); over != nil {
			t.Error("there is one to end from the first")
		}
		x.begin(machine.Command{ID: 7})
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("it has ended by itself")
		}
		<-x.end()
		if len(ended) != 1 || ended[0] != 7 {
			t.Errorf("ended are %v", ended)
		}
	})
}
