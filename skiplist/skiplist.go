// Package skiplist provides an ordered set kept in a skip list, after William
// Pugh, "Skip Lists: A Probabilistic Alternative to Balanced Trees",
// Communications of the ACM 33(6), June 1990.
//
// A skip list is a sorted linked list with express lanes. Every key is on
// lane 1; a key on lane i is on lane i+1 as well with probability p. A search
// starts on the top lane, follows it as long as the next key is smaller than
// the one sought, then goes one lane down. Nothing is ever rebalanced: chance,
// not the order of insertion, gives the list its shape, so answers are always
// right and only the time they take is random.
//
// # Cost
//
// With L(n) = log n / log 1/p, a search among n keys is expected to make at
// most
//
//	L(n)/p + 1/(1-p) + 1
//
// comparisons, about 2 log2 n for p = 1/2 and for p = 1/4, and a key is
// expected to need 1/(1-p) pointers: 2 and 1.33. (In Go it needs a slice header
// besides, and two allocations.) These are expectations over the throws of a
// coin. A single list may be slower, in the extreme as slow as a linked list,
// and single searches spread around the list's mean, more so for p = 1/4.
//
// There are at most 32 lanes. That serves p^-32 keys: 2^64 for p = 1/4, 2^32
// for p = 1/2, but 29 for p = 0.9. With more keys than that a set can be slower
// than the bound, never wrong.
//
// Comparisons are counted as the paper does: one for each test whether the
// next key is smaller and one for the final test for equality, the end of a
// lane being a key greater than all others. The compare function is called
// for all of them but those with an end.
package skiplist

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
)

// DefaultP is the paper's advice for p: searches cost what they do for 1/2,
// with a third fewer pointers. The paper prefers 1/2 only where the spread of
// running times matters most.
const DefaultP = 0.25

// maxLevel is the number of lanes at most.
const maxLevel = 32

// ErrConfig is what every error of [New] and [NewFunc] wraps.
var ErrConfig = errors.New("skiplist: invalid configuration")

// A Set is an ordered set of keys. Make one with [New] or [NewFunc].
//
// A nil *Set and the zero Set have no order and no random source. Like a nil
// map they are empty: everything works on them but Insert, which panics.
//
// A Set may be read from several goroutines at once, if its compare function
// may be, but not while it is changed: Insert and Delete need it for
// themselves. It must not be copied.
type Set[K any] struct {
	compare func(a, b K) int
	src     rand.Source
	climb   uint64  // p·2^64
	head    node[K] // before all keys, on every lane; its own key is unused
	level   int     // of the highest node, 0 if there is none
	len     int
}

// A node's level, len(next), is kept from callers. The expected costs hold for
// whatever is inserted and deleted without knowing the levels. Whoever knows
// them can force the worst case by deleting every key whose level is not 1:
// that leaves a plain linked list.
type node[K any] struct {
	key  K
	next []*node[K] // by lane, nil where a lane ends; all nil once deleted
}

// New returns an empty Set in the order of [cmp.Compare], in which a NaN
// equals every other NaN and is less than all else, and -0 equals +0.
// Otherwise it is like [NewFunc].
func New[K cmp.Ordered](p float64, src rand.Source) (*Set[K], error) {
	return NewFunc(p, src, cmp.Compare[K])
}

// NewFunc returns an empty Set in the order of compare, which is negative if
// a < b, positive if a > b and 0 if the two are the same key. It must be a
// strict weak ordering, as for [slices.SortFunc], and must not change its mind
// about keys in the set.
//
// A key is on one more lane with probability p: [DefaultP] unless there is a
// reason. The coins are thrown with src, for example a *[rand.PCG] or a
// *[rand.Rand]. Whoever can predict the draws can choose keys that make a set
// slow, so where keys come from strangers, src has to be one that they cannot
// predict: a [rand.ChaCha8] with a random seed.
//
// The error wraps [ErrConfig] if p is not between 0 and 1, both excluded, or
// if src or compare is nil.
func NewFunc[K any](p float64, src rand.Source, compare func(a, b K) int) (*Set[K], error) {
	switch {
	case !(p > 0 && p < 1): // so written, NaN is refused too
		return nil, fmt.Errorf("%w: p is %v, outside (0,1)", ErrConfig, p)
	case src == nil:
		return nil, fmt.Errorf("%w: no random source", ErrConfig)
	case compare == nil:
		return nil, fmt.Errorf("%w: no compare function", ErrConfig)
	}
	return &Set[K]{
		compare: compare,
		src:     src,
		climb:   uint64(p * (1 << 64)), // in range: p is at most 1 - 2^-53
		head:    node[K]{next: make([]*node[K], maxLevel)},
	}, nil
}

// Len returns the number of keys in the set, in constant time.
func (s *Set[K]) Len() int {
	if s == nil {
		return 0
	}
	return s.len
}

// Contains reports whether key is in the set. It costs one search.
func (s *Set[K]) Contains(key K) bool {
	return s.holds(s.search(key, nil), key)
}

// Insert adds key to the set and reports whether it was new. If the set has an
// equal key, it keeps that one and takes nothing from the source.
// Insert costs one search and, for a new key, 1/(1-p) expected draws.
// It panics if the set was not made by [New] or [NewFunc].
func (s *Set[K]) Insert(key K) bool {
	if s == nil || s.src == nil {
		panic("skiplist: Insert into a Set not made by New or NewFunc")
	}
	var before [maxLevel]*node[K]
	if s.holds(s.search(key, &before), key) {
		return false
	}
	n := &node[K]{key, make([]*node[K], s.randomLevel())}
	for ; s.level < len(n.next); s.level++ {
		before[s.level] = &s.head
	}
	for i := range n.next {
		n.next[i], before[i].next[i] = before[i].next[i], n
	}
	s.len++
	return true
}

// Delete removes key from the set and reports whether it was there.
// It costs one search.
func (s *Set[K]) Delete(key K) bool {
	var before [maxLevel]*node[K]
	n := s.search(key, &before)
	if !s.holds(n, key) {
		return false
	}
	for i, next := range n.next {
		before[i].next[i] = next
	}
	n.next = nil // for an iteration that stands here
	for s.level > 0 && s.head.next[s.level-1] == nil {
		s.level--
	}
	s.len--
	return true
}

// All returns an iterator over the keys in ascending order. A key costs one
// step and no comparison.
//
// The body of the loop may change the set. Each key yielded is the least that
// is then in the set and greater than the one before: a key inserted ahead of
// the iteration is seen and one deleted there is not, changes behind it make
// no difference, and no key comes twice. To go on from a key that was deleted
// costs one search.
//
// The iterator may be used many times. Each time it starts anew.
func (s *Set[K]) All() iter.Seq[K] {
	return func(yield func(K) bool) {
		if s.Len() > 0 {
			s.walk(s.head.next[0], yield)
		}
	}
}

// From returns an iterator over the keys not less than key, in ascending
// order. Each use of it costs one search to start with; otherwise it is like
// [Set.All]. For a range with an end, break at the first key beyond.
func (s *Set[K]) From(key K) iter.Seq[K] {
	return func(yield func(K) bool) {
		s.walk(s.search(key, nil), yield)
	}
}

// walk yields the key of n and all that follow.
func (s *Set[K]) walk(n *node[K], yield func(K) bool) {
	for n != nil && yield(n.key) {
		if n.next != nil {
			n = n.next[0]
			continue
		}
		// n was deleted under way, and maybe its key inserted again.
		key := n.key
		if n = s.search(key, nil); s.holds(n, key) {
			n = n.next[0]
		}
	}
}

// search returns the first node whose key is not less than key, nil if there
// is none. If before is not nil, it sets before[i], for each lane in use, to
// the last node on it whose key is less.
//
// It makes the comparisons of the paper and no fewer, although one with the
// node just met on the lane above could be saved: the bound, which the tests
// measure, is for these.
func (s *Set[K]) search(key K, before *[maxLevel]*node[K]) *node[K] {
	if s.Len() == 0 {
		return nil
	}
	n := &s.head
	for i := s.level - 1; i >= 0; i-- {
		for next := n.next[i]; next != nil && s.compare(next.key, key) < 0; next = n.next[i] {
			n = next
		}
		if before != nil {
			before[i] = n
		}
	}
	return n.next[0]
}

// holds reports whether n, found by a search for key, has that key.
func (s *Set[K]) holds(n *node[K], key K) bool {
	return n != nil && s.compare(n.key, key) == 0
}

// randomLevel throws the coins for a new node. Comparing whole numbers, it
// gives the same levels for the same draws on every machine.
func (s *Set[K]) randomLevel() int {
	level := 1
	for level < maxLevel && s.src.Uint64() < s.climb {
		level++
	}
	return level
}
