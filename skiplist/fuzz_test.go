package skiplist

import (
	"math"
	"slices"
	"testing"
)

// A pair is a set beside a sorted slice that has to stay equal to it.
type pair struct {
	t     *testing.T
	set   *Set[byte]
	model []byte
}

// change inserts or deletes key in both.
func (p *pair) change(insert bool, key byte) {
	i, found := slices.BinarySearch(p.model, key)
	if insert {
		if p.set.Insert(key) == found {
			p.t.Fatalf("Insert(%d) = %t", key, !found)
		}
		if !found {
			p.model = slices.Insert(p.model, i, key)
		}
	} else {
		if p.set.Delete(key) != found {
			p.t.Fatalf("Delete(%d) = %t", key, !found)
		}
		if found {
			p.model = slices.Delete(p.model, i, i+1)
		}
	}
	check(p.t, p.set, p.model)
}

// walk iterates over both from key on. At each key it makes the next change of
// ops, if there is one left, and it returns the rest of ops.
func (p *pair) walk(key byte, ops []byte) []byte {
	i, _ := slices.BinarySearch(p.model, key)
	for got := range p.set.From(key) {
		if i == len(p.model) || p.model[i] != got {
			p.t.Fatalf("From yields %d, want the key at %d of %v", got, i, p.model)
		}
		if len(ops) >= 2 {
			p.change(ops[0]%2 == 0, ops[1])
			ops = ops[2:]
		}
		var found bool
		if i, found = slices.BinarySearch(p.model, got); found {
			i++
		}
	}
	if i != len(p.model) {
		p.t.Fatalf("From stops at index %d of %v", i, p.model)
	}
	return ops
}

// FuzzSet does what ops says, two bytes an operation, to a set and to a sorted
// slice, and compares the two after each.
func FuzzSet(f *testing.F) {
	const insert, remove, contains, from, walk = 0, 1, 2, 3, 4
	f.Add(0.25, uint64(0), []byte{})
	f.Add(0.0, uint64(0), []byte{insert, 1})
	f.Add(math.NaN(), uint64(0), []byte{insert, 1})
	f.Add(0.25, uint64(1), []byte{remove, 7, contains, 7, from, 0, walk, 0, insert, 7, insert, 7, contains, 7, remove, 7, remove, 7})
	f.Add(0.5, uint64(2), []byte{insert, 0, insert, 255, insert, 128, from, 1, from, 128, from, 129, contains, 129, remove, 255, from, 200})
	f.Add(0.999999, uint64(3), []byte{insert, 3, insert, 2, insert, 1, remove, 2, insert, 2, remove, 1, remove, 2, remove, 3})
	// A walk that deletes the key it stands at and the one after, and inserts
	// one ahead, one behind and one where it stands.
	f.Add(0.25, uint64(4), []byte{
		insert, 10, insert, 20, insert, 30, insert, 40, insert, 50,
		walk, 0, remove, 10, remove, 30, insert, 45, insert, 5, remove, 50, insert, 50,
		walk, 0, remove, 5, insert, 5,
	})
	rng := seeded(5)
	long := make([]byte, 4000)
	for i := range long {
		long[i] = byte(rng.Uint32())
		if i%2 == 1 {
			long[i] %= 64 // so that keys meet
		}
	}
	f.Add(0.5, uint64(6), long)
	f.Add(0.25, uint64(7), long)

	f.Fuzz(func(t *testing.T, p float64, seed uint64, ops []byte) {
		set, err := New[byte](p, seeded(seed))
		if valid := p > 0 && p < 1; valid != (err == nil) {
			t.Fatalf("New(%v): %v", p, err)
		}
		if err != nil {
			return
		}
		both := &pair{t, set, nil}
		for len(ops) >= 2 {
			op, key := ops[0], ops[1]
			ops = ops[2:]
			switch op % 5 {
			case insert, remove:
				both.change(op%5 == insert, key)
			case contains:
				if _, found := slices.BinarySearch(both.model, key); set.Contains(key) != found {
					t.Fatalf("Contains(%d) = %t", key, !found)
				}
			case from:
				both.walk(key, nil)
			case walk:
				ops = both.walk(key, ops)
			}
		}
	})
}
