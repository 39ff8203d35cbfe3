package running

import (
	"encoding/json"
	"fmt"
	"os"

	"toban.dev/internal/postgres"
)

// candidate is a configuration that the server may be run with.
type candidate struct {
	Revision   string            `json:"revision"`
	Parameters map[string]string `json:"parameters"`
	HBA        []string          `json:"hba"`
}

// LastKnownGood is the file with what the server last ran with: it is what remains when a new
// configuration turns out to be unusable.
type LastKnownGood string

func (f LastKnownGood) load() (candidate, bool) {
	var c candidate
	text, err := os.ReadFile(string(f))
	if err != nil {
		return c, false
	}
	return c, json.Unmarshal(text, &c) == nil
}

func (f LastKnownGood) store(c candidate) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode the good configuration: %w", err)
	}
	return postgres.WriteFile(string(f), text, 0o600)
}

// forget removes it: nothing is to come back to but PostgreSQL's defaults.
func (f LastKnownGood) forget() error {
	if err := os.Remove(string(f)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("forget the good configuration: %w", err)
	}
	return nil
}
