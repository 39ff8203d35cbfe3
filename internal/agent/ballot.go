package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
)

// ballotFile keeps an instance's ballot on its volume. It outlives the data
// directory, because a term must never be forgotten.
type ballotFile string

// Load reads the ballot; an absent one is term 0.
func (f ballotFile) Load() (ha.Ballot, error) {
	var ballot ha.Ballot
	text, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return ballot, nil
	}
	if err != nil {
		return ballot, fmt.Errorf("read the ballot: %w", err)
	}
	if err := json.Unmarshal(text, &ballot); err != nil {
		return ballot, fmt.Errorf("understand the ballot in %s: %w", f, err)
	}
	return ballot, nil
}

// Store writes the ballot and returns when it is on disk.
func (f ballotFile) Store(ballot ha.Ballot) error {
	text, err := json.Marshal(ballot)
	if err != nil {
		return fmt.Errorf("encode the ballot: %w", err)
	}
	return postgres.WriteFile(string(f), text, 0o600)
}
