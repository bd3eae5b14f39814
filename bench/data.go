package main

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
)

// Records are n distinct members of size bytes, a multiple of 8. They are made
// when asked for, so that no memory is theirs.
type records struct{ size, n int }

// put writes item i: a member below n, an absent item from n on.
func put(item []byte, i uint64) {
	// SplitMix64. Its first word is a permutation of i, so items are distinct.
	for at := 0; at < len(item); at += 8 {
		i += 0x9e3779b97f4a7c15
		z := (i ^ i>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(item[at:], z^z>>31)
	}
}

// all yields the members, each in the same memory.
func (r records) all() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		item := make([]byte, r.size)
		for i := range r.n {
			put(item, uint64(i))
			if !yield(item) {
				return
			}
		}
	}
}

// A mix is how many of two queries are for members.
type mix int

const (
	misses mix = iota
	halves
	hits
)

// Queries lie one behind the other, so that reading them costs all contenders
// the same.
type queries struct {
	arena   []byte
	size    int
	members int
}

func (q queries) len() int          { return len(q.arena) / q.size }
func (q queries) item(i int) []byte { return q.arena[i*q.size : (i+1)*q.size] }

// An asker makes queries: members in shuffled order, each once before one
// comes again, and absent items, none twice.
type asker struct {
	records
	order          []uint32
	member, absent int
	random         *rand.Rand
	arena          []byte
}

func newAsker(r records, count int) *asker {
	a := &asker{records: r, random: rand.New(rand.NewPCG(1, 2)), arena: make([]byte, count*r.size)}
	a.order = make([]uint32, r.n)
	for i := range a.order {
		a.order[i] = uint32(i)
	}
	a.random.Shuffle(r.n, func(i, j int) { a.order[i], a.order[j] = a.order[j], a.order[i] })
	return a
}

// ask makes the next queries, in the memory of the last ones.
func (a *asker) ask(m mix) queries {
	q := queries{arena: a.arena, size: a.size}
	for i := range q.len() {
		item := q.item(i)
		if a.random.IntN(2) < int(m) {
			put(item, uint64(a.order[a.member%a.n]))
			a.member++
			q.members++
		} else {
			put(item, uint64(a.n+a.absent))
			a.absent++
		}
	}
	return q
}
