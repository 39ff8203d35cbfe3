package work

import (
	"encoding/json"
	"fmt"
	"os"

	"toban.dev/internal/work/initjob"
)

// maxTermination is what the kubelet keeps of a termination message (bytes).
const maxTermination = 4096

// leave writes a result for the kubelet, with its words short enough that the JSON stays whole.
func leave(path string, result any, words ...*string) error {
	shorten(words, 1200) // characters of up to six bytes in JSON
	fit(result, maxTermination, once(func() { shorten(words, 250) }), once(func() { shorten(words, 100) }))
	return write(path, result)
}

func write(path string, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // the kubelet reads it
		return fmt.Errorf("leave the result: %w", err)
	}
	return nil
}

// fit makes a result as short as the room that it has (bytes), by steps in their order. A step is taken again until the
// result fits, or it can do no more.
func fit(result any, room int, steps ...func() (shorter bool)) {
	for _, step := range steps {
		for more := true; more && !fits(result, room); {
			more = step()
		}
	}
}

func fits(result any, room int) bool {
	text, err := json.Marshal(result)
	return err != nil || len(text) <= room
}

// once is a step that is taken once.
func once(do func()) func() bool {
	done := false
	return func() bool {
		if done {
			return false
		}
		done = true
		do()
		return true
	}
}

// drop is the step that leaves out the last one of a list, as long as more than so many are in it.
func drop[T any](list *[]T, least int) func() bool {
	return func() bool {
		if len(*list) <= least {
			return false
		}
		*list = (*list)[:len(*list)-1]
		return true
	}
}

func shorten(words []*string, most int) {
	for _, text := range words {
		if runes := []rune(*text); len(runes) > most {
			*text = string(runes[:most]) + "…"
		}
	}
}

// writeInit leaves the result of an init Job, whose message is as long as there is room for.
func writeInit(path string, result initjob.Result) error {
	const room = maxTermination - 256 // for the JSON around it
	fit(&result, maxTermination, func() bool {
		runes := []rune(result.Message)
		if len(runes) > 0 {
			result.Message = string(runes[:min(len(runes)*3/4, room)]) + "…"
		}
		return len(runes) > 0
	})
	return write(path, result)
}
