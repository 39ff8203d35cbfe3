package pod

import (
	"encoding/json"
	"fmt"
	"os"
)

// MaxTermination is what the kubelet keeps of a termination message (bytes).
const MaxTermination = 4096

// Leave writes a result for the kubelet, with its words short enough that the JSON stays whole.
func Leave(path string, result any, words ...*string) error {
	shorten(words, 1200) // characters of up to six bytes in JSON
	Fit(result, MaxTermination, Once(func() { shorten(words, 250) }), Once(func() { shorten(words, 100) }))
	return Write(path, result)
}

// Write writes a result that is short enough for the kubelet.
func Write(path string, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // the kubelet reads it
		return fmt.Errorf("leave the result: %w", err)
	}
	return nil
}

// Fit makes a result as short as the room that it has (bytes), by steps in their order. A step is taken again until the
// result fits, or it can do no more.
func Fit(result any, room int, steps ...func() (shorter bool)) {
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

// Once is a step that is taken once.
func Once(do func()) func() bool {
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

// Drop is the step that leaves out the last one of a list, as long as more than so many are in it.
func Drop[T any](list *[]T, least int) func() bool {
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

// First are the first characters of a text.
func First(text string, most int) string {
	shorten([]*string{&text}, most)
	return text
}

// Words are those of an error, for a result; "" for none.
func Words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
