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
	shorten(words, 1200) // characters of up to six bytes in JSON, of which a termination message has 4096
	text, err := json.Marshal(result)
	if err == nil && len(text) > maxTermination {
		shorten(words, 250)
		text, err = json.Marshal(result)
	}
	if err == nil && len(text) > maxTermination {
		shorten(words, 100)
		text, err = json.Marshal(result)
	}
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // the kubelet reads it
		return fmt.Errorf("leave the result: %w", err)
	}
	return nil
}

func shorten(words []*string, most int) {
	for _, text := range words {
		if runes := []rune(*text); len(runes) > most {
			*text = string(runes[:most]) + "…"
		}
	}
}

// writeResult keeps the message short enough for the kubelet to leave the JSON whole.
func writeResult(path string, result initjob.Result) error {
	const room = maxTermination - 256 // for the JSON around it
	text, err := json.Marshal(result)
	for err == nil && len(text) > maxTermination {
		runes := []rune(result.Message)
		if len(runes) == 0 {
			break
		}
		result.Message = string(runes[:min(len(runes)*3/4, room)]) + "…"
		text, err = json.Marshal(result)
	}
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // the kubelet reads it
		return fmt.Errorf("leave the result: %w", err)
	}
	return nil
}
