package main

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// access to one register: a row that is read and overwritten as a whole.
type operation struct {
	client     int
	key        int
	write      bool
	value      int64 // what was written, each value once; or what was read, 0 for nothing
	start, end time.Duration
	outcome    Outcome
}

// registers is the history of the registers.
type registers struct {
	mutex      sync.Mutex
	next       int64
	operations []operation
}

func (r *registers) value() int64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.next++
	return r.next
}

func (r *registers) note(o operation) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.operations = append(r.operations, o)
}

// model is a register for each key, which has nothing in it at first.
var model = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int][]porcupine.Operation{}
		for _, o := range all {
			key := input(o.Input).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return int64(0) },
	Step: func(state, in, out any) (bool, any) {
		if o := input(in); o.write {
			return true, o.value
		}
		return out == state, state
	},
}

func input(in any) operation {
	o, _ := in.(operation) // no other is put in
	return o
}

// forever is when an operation has returned whose end nobody knows: after all others.
const forever = math.MaxInt64

// checkable is the history as porcupine takes it. What failed has not happened, and
// a read whose end is unknown says nothing. An unknown write stays open for ever,
// and is left out where its value was never read: nothing can tell whether it is
// there, and each of them would double the search.
func checkable(all []operation) []porcupine.Operation {
	read := map[int64]bool{}
	for _, o := range all {
		if !o.write && o.outcome == Acked {
			read[o.value] = true
		}
	}
	var history []porcupine.Operation
	for _, o := range all {
		end := int64(o.end)
		switch {
		case o.outcome == Failed, o.outcome == Unknown && (!o.write || !read[o.value]):
			continue
		case o.outcome == Unknown:
			end = forever
		}
		history = append(history, porcupine.Operation{
			ClientId: o.client, Input: o, Output: o.value, Call: int64(o.start), Return: end,
		})
	}
	return history
}

// linearizable says Ok, Illegal, or Unknown when the time was over before.
func linearizable(all []operation, timeout time.Duration) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	return porcupine.CheckOperationsVerbose(model, checkable(all), timeout)
}

func (r *registers) all() []operation {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.operations)
}
