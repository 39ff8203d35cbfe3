package shards

import (
	"fmt"
	"testing"
)

// Each database is of exactly one shard, and the shards are about as large as each other.
func TestEachDatabaseIsOfOneShard(t *testing.T) {
	const databases = 10000
	for count := 1; count <= Most; count++ {
		sizes := make([]int, count)
		for i := range databases {
			has := 0
			for number := range count {
				if (Shard{number, count}).Has("shop", fmt.Sprintf("db-%d", i)) {
					sizes[number]++
					has++
				}
			}
			if has != 1 {
				t.Fatalf("db-%d is of %d shards out of %d", i, has, count)
			}
		}
		for number, size := range sizes {
			if fair := databases / count; size < fair*8/10 || size > fair*12/10 {
				t.Errorf("shard %d of %d has %d databases, and its share is %d", number, count, size, fair)
			}
		}
	}
}

// Shards of several releases run together, so these never change.
func TestTheShardOfADatabaseNeverChanges(t *testing.T) {
	for key, want := range map[[2]string][3]int{
		{"shop", "orders"}:  {0, 2, 14},
		{"shop", "orders2"}: {1, 2, 1},
		{"till", "orders"}:  {1, 1, 13},
	} {
		for i, count := range []int{2, 3, 16} {
			if got := numberOf(key[0], key[1], count); got != want[i] {
				t.Errorf("of %d shards %v is of number %d, and was of %d", count, key, got, want[i])
			}
		}
	}
	if !(Shard{}).Has("shop", "orders") {
		t.Error("an operator alone does not have all databases")
	}
}

func TestSharesAddUp(t *testing.T) {
	for _, total := range []int{0, 1, 7, 20} {
		for count := 1; count <= Most; count++ {
			sum := 0
			for number := range count {
				sum += (Shard{number, count}).Share(total)
			}
			if sum != total {
				t.Errorf("the shares of %d shards in %d are %d", count, total, sum)
			}
		}
	}
	if (Shard{}).Share(20) != 20 {
		t.Error("an operator alone has not all")
	}
}

func TestAShardThatCantBeIsRefused(t *testing.T) {
	for _, s := range []Shard{{0, 0}, {0, -1}, {0, Most + 1}, {-1, 2}, {2, 2}} {
		if s.Check() == nil {
			t.Errorf("%v is taken", s)
		}
	}
	for _, s := range []Shard{{0, 1}, {1, 2}, {Most - 1, Most}} {
		if err := s.Check(); err != nil {
			t.Errorf("%v is refused: %v", s, err)
		}
	}
}
