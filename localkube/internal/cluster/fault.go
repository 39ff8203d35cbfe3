package cluster

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"toban.dev/localkube/internal/plan"
)

// A Kind is a way in which something can be broken on purpose.
type Kind string

// The kinds of faults.
const (
	Killed         Kind = "killed"          // a node without power
	Cut            Kind = "cut"             // a node without its cable
	CutFromAPI     Kind = "cut-from-api"    // a node that does not reach the API server, nor it the node
	CutFromNode    Kind = "cut-from-node"   // two nodes that don't reach each other
	Frozen         Kind = "frozen"          // a node whose processes stand still
	KubeletStopped Kind = "kubelet-stopped" // a node whose Pods run on unattended
	Stopped        Kind = "stopped"         // a process of the control plane that was killed
)

// A Fault is one thing that is broken on purpose. It is noted before it is
// made, so that whatever happens meanwhile it can be undone.
type Fault struct {
	Kind  Kind      `json:"kind"`
	On    string    `json:"on"` // a node, or a process of the control plane
	From  string    `json:"from,omitempty"`
	Since time.Time `json:"since"`
}

func (f Fault) String() string {
	if f.From != "" {
		return fmt.Sprintf("%s %s %s", f.On, f.Kind, f.From)
	}
	return fmt.Sprintf("%s %s", f.On, f.Kind)
}

// is reports whether two faults are the same break. Being cut off from each
// other has no direction.
func (f Fault) is(other Fault) bool {
	if f.Kind != other.Kind {
		return false
	}
	return f.On == other.On && f.From == other.From ||
		f.Kind == CutFromNode && f.On == other.From && f.From == other.On
}

// concerns reports whether the fault touches the node at all.
func (f Fault) concerns(node string) bool { return f.On == node || f.From == node }

// with returns the faults with one more, unless it is among them.
func with(faults []Fault, added Fault) []Fault {
	if slices.ContainsFunc(faults, added.is) {
		return faults
	}
	return append(slices.Clone(faults), added)
}

// without returns the faults that match does not hold for.
func without(faults []Fault, match func(Fault) bool) []Fault {
	return slices.DeleteFunc(slices.Clone(faults), match)
}

// has reports whether this very kind of fault is on that node or process.
func has(faults []Fault, kind Kind, on string) bool {
	return slices.ContainsFunc(faults, Fault{Kind: kind, On: on}.is)
}

// Faults returns what is broken on purpose.
func Faults() ([]Fault, error) { return readFaults(plan.FaultsFile) }

func readFaults(file string) ([]Fault, error) {
	var faults []Fault
	err := readJSON(file, &faults)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return faults, err
}

func writeFaults(file string, faults []Fault) error {
	if err := writeJSON(file, faults); err != nil {
		return fmt.Errorf("note what is broken: %w", err)
	}
	return nil
}

// inflict notes faults in file and makes them. What could not be made is noted no
// longer, unless it was there before.
func inflict(file string, faults []Fault, do func() error) error {
	before, err := readFaults(file)
	if err != nil {
		return err
	}
	after := before
	for _, f := range faults {
		f.Since = time.Now().UTC().Round(time.Second)
		after = with(after, f)
	}
	if err := writeFaults(file, after); err != nil {
		return err
	}
	if err := do(); err != nil {
		return errors.Join(err, writeFaults(file, before))
	}
	return nil
}

// forget drops the faults that match holds for.
func forget(match func(Fault) bool) error {
	faults, err := Faults()
	if err != nil {
		return err
	}
	return writeFaults(plan.FaultsFile, without(faults, match))
}
