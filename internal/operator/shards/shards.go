// Package shards says which databases an operator looks after where several share them, and lets none act while one
// that counts the shards differently may act too (docs/scale.md, "Shards"). It must not know what is done with a
// database.
package shards

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"toban.dev/internal/naming"
)

// Shard is one of several operators that share the databases. The zero value is the only one.
type Shard struct {
	// Number is which one, from 0; Count is how many there are.
	Number, Count int
}

// Most is how many shards there may be: the operator's Role names a lease for each.
const Most = 16

// Check says what is wrong with a shard.
func (s Shard) Check() error {
	switch {
	case s.Count < 1 || s.Count > Most:
		return fmt.Errorf("there can be 1 to %d shards, and not %d", Most, s.Count)
	case s.Number < 0 || s.Number >= s.Count:
		return fmt.Errorf("of %d shards there is no number %d: they are counted from 0", s.Count, s.Number)
	}
	return nil
}

// Has says that a database, or a MyApp, is of this shard. What belongs to a database goes by the database's name.
func (s Shard) Has(namespace, name string) bool {
	return s.Count <= 1 || numberOf(namespace, name, s.Count) == s.Number
}

// numberOf is the number of the shard of a database (S1). It must be the same in all releases: shards are not updated
// at the same moment.
func numberOf(namespace, name string, count int) int {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(count)) //nolint:gosec // less than count
}

// Share is this shard's share of a number that all of them have together.
func (s Shard) Share(total int) int {
	if s.Count <= 1 {
		return total
	}
	share := total / s.Count
	if s.Number < total%s.Count {
		share++
	}
	return share
}

// Lease is the name of the shard's lease.
func (s Shard) Lease() string { return naming.OperatorLease(s.Number) }

// String is the shard in words.
func (s Shard) String() string { return fmt.Sprintf("%d of %d", s.Number, max(s.Count, 1)) }
