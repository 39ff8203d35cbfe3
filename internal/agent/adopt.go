package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
)

// folderState is where an agent keeps what outlives its data, in the volume.
const folderState = "toban"

// Adopt puts a data directory, which lies on the same volume, in the place of an instance's data, and makes
// the instance the leader of a new term, in which it is the only voter. The start says where the WAL of that
// term begins. It may be interrupted anywhere and be called again. Neither a server nor an agent may run.
func Adopt(volume, instance, restored string, begins ha.Start) error {
	server := &postgres.Server{Volume: volume}
	if err := os.MkdirAll(filepath.Join(volume, folderState), 0o700); err != nil {
		return fmt.Errorf("make a place for the instance's memory: %w", err)
	}
	m, err := openMemory(instance, filepath.Join(volume, folderState), server.Data())
	if err != nil {
		return err
	}
	begins.Term = m.current.Ballot.Term + 1
	if err := moveIn(server, restored, begins); err != nil {
		return fmt.Errorf("adopt the restored data: %w", err)
	}
	if err := m.reloadLineage(); err != nil {
		return err
	}
	lineage := m.current.Lineage
	if len(lineage) == 0 {
		return errors.New("adopt the restored data: nobody knows whose WAL it has")
	}
	_, err = m.Change(func(m *ha.Memory) bool {
		leadAlone(m, instance, lineage[len(lineage)-1].Term)
		return true
	})
	return err
}

// moveIn notes the lineage with the data and gives that its place. Where it has it already, nothing is left to do.
func moveIn(server *postgres.Server, restored string, begins ha.Start) error {
	if _, err := os.Stat(restored); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	text, err := json.Marshal([]ha.Start{begins})
	if err != nil {
		return err
	}
	if err := postgres.WriteFile(filepath.Join(restored, lineageFile), text, 0o600); err != nil {
		return err
	}
	return server.MoveIn(restored)
}

// leadAlone makes an instance the leader of a term, and its only voter.
func leadAlone(m *ha.Memory, instance string, term uint64) {
	m.Ballot, m.Won = ha.Ballot{Term: term, Leader: instance}, term
	m.Record = ha.Record{Term: term, Version: 1, Now: ha.Quorum{Voters: []ha.Voter{m.Voter}, Acknowledgements: 1}}
}
