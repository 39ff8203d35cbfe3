package major

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// state is what a run notes on the volume for one after it.
type state struct {
	ID string `json:"id"`
	// To is the major version of the new data.
	To int `json:"to"`
	// Recovered says that the old server has replayed its WAL, Method the method that pg_upgrade was started with, ""
	// for not yet.
	Recovered bool   `json:"recovered,omitempty"`
	Method    string `json:"method,omitempty"`
}

func stateFile(volume string) string { return filepath.Join(volume, "upgrade.json") }

func readState(volume string) (state, error) {
	var s state
	text, err := os.ReadFile(stateFile(volume))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("see how far an upgrade has come: %w", err)
	}
	return s, nil
}

// noteState notes how far this one has come.
func (u *upgrade) noteState(method string) error {
	text, err := json.Marshal(state{ID: u.ID, To: u.New.Major, Recovered: u.result.Recovered, Method: method})
	if err != nil {
		return fmt.Errorf("note how far the upgrade has come: %w", err)
	}
	return postgres.WriteFile(stateFile(u.Volume), text, 0o600)
}

// swapped says that an upgrade which destroys the old data has begun to.
func (u *upgrade) swapped(s state) (bool, error) {
	if s.Method != protocol.MethodSwap {
		return false, nil
	}
	_, err := os.Stat(disabled(u.old.data))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("see whether the old data is whole: %w", err)
	}
	return true, nil
}
