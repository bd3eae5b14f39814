package skiplist

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// mustNew is New, failing the test where New fails.
func mustNew[K cmp.Ordered](t testing.TB, p float64, src rand.Source) *Set[K] {
	t.Helper()
	s, err := New[K](p, src)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// constant is a source that is stuck.
type constant uint64

func (c constant) Uint64() uint64 { return uint64(c) }

// script is a source that returns its numbers in turn.
type script []uint64

func (s *script) Uint64() uint64 {
	x := (*s)[0]
	*s = (*s)[1:]
	return x
}

// check fails the test unless s holds exactly the keys of want and is a skip
// list: every lane is made of all nodes that reach it, in order, and the set's
// level and length are those of its nodes.
func check[K cmp.Ordered](t *testing.T, s *Set[K], want []K) {
	t.Helper()
	same := func(a, b K) bool { return cmp.Compare(a, b) == 0 }
	if got := slices.Collect(s.All()); !slices.EqualFunc(got, want, same) {
		t.Fatalf("All() = %v, want %v", got, want)
	}
	if s.Len() != len(want) {
		t.Fatalf("Len() = %d, want %d", s.Len(), len(want))
	}
	var ends [maxLevel]*node[K]
	for i := range ends {
		ends[i] = &s.head
	}
	level := 0
	for n := s.head.next[0]; n != nil; n = n.next[0] {
		if len(n.next) > maxLevel {
			t.Fatalf("key %v is on %d lanes", n.key, len(n.next))
		}
		level = max(level, len(n.next))
		for i := range n.next {
			if ends[i].next[i] != n {
				t.Fatalf("lane %d leaves out key %v", i+1, n.key)
			}
			ends[i] = n
		}
	}
	for i, end := range ends {
		if end.next[i] != nil {
			t.Fatalf("lane %d goes on behind its last node, of key %v", i+1, end.key)
		}
	}
	if s.level != level {
		t.Fatalf("level is %d, want %d", s.level, level)
	}
}

func TestErrors(t *testing.T) {
	src := seeded(0)
	for _, p := range []float64{0, math.Copysign(0, -1), 1, -0.5, 1.5, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if s, err := New[int](p, src); s != nil || !errors.Is(err, ErrConfig) {
			t.Errorf("New(%v): %v, %v, want an ErrConfig", p, s, err)
		}
	}
	_, noP := New[int](0, src)
	_, noSource := New[int](DefaultP, nil)
	_, noOrder := NewFunc[int](DefaultP, src, nil)
	for _, err := range []error{noP, noSource, noOrder} {
		if !errors.Is(err, ErrConfig) || strings.Count(err.Error(), "skiplist: ") != 1 ||
			!strings.HasPrefix(err.Error(), "skiplist: ") {
			t.Errorf("%v, want an ErrConfig with the package's prefix, once", err)
		}
	}
}

func TestEmpty(t *testing.T) {
	emptied := mustNew[int](t, DefaultP, seeded(0))
	emptied.Insert(1)
	emptied.Delete(1)
	for _, test := range []struct {
		name string
		set  *Set[int]
		made bool
	}{
		{"nil", nil, false},
		{"zero", new(Set[int]), false},
		{"new", mustNew[int](t, DefaultP, seeded(0)), true},
		{"emptied", emptied, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := test.set
			if s.Len() != 0 || s.Contains(0) || s.Delete(0) {
				t.Error("has a key")
			}
			for k := range s.All() {
				t.Errorf("All yields %d", k)
			}
			for k := range s.From(0) {
				t.Errorf("From yields %d", k)
			}
			defer func() {
				message, _ := recover().(string)
				if strings.HasPrefix(message, "skiplist: ") == test.made {
					t.Errorf("Insert panics with %q", message)
				}
			}()
			if !s.Insert(0) || !s.Contains(0) {
				t.Error("Insert did not add 0")
			}
		})
	}
}

func TestDuplicates(t *testing.T) {
	src := make(script, 1) // one draw for one key: of level 1
	src[0] = math.MaxUint64
	s, err := NewFunc(DefaultP, &src, func(a, b string) int {
		return strings.Compare(strings.ToLower(a), strings.ToLower(b))
	})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Insert("Pugh") || s.Insert("PUGH") || s.Insert("Pugh") {
		t.Error("want the first Insert alone to report a new key")
	}
	check(t, s, []string{"Pugh"})
	if !s.Contains("pugh") || !s.Delete("pugh") || s.Delete("Pugh") {
		t.Error("want an equal key to be found, and deleted once")
	}
	check(t, s, nil)
}

func TestNaN(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	s := mustNew[float64](t, DefaultP, seeded(0))
	for _, k := range []float64{1, nan, inf, 0, -inf, nan, math.Copysign(0, -1)} {
		s.Insert(k)
	}
	check(t, s, []float64{nan, -inf, 0, 1, inf})
	if got := slices.Collect(s.From(-inf)); !slices.Equal(got, []float64{-inf, 0, 1, inf}) {
		t.Errorf("From(-Inf) = %v", got)
	}
	if !s.Contains(nan) || !s.Delete(nan) || s.Contains(nan) {
		t.Error("NaN is not found, or not deleted")
	}
	check(t, s, []float64{-inf, 0, 1, inf})
}

func TestChangeWhileIterating(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(s *Set[int]) // at key 20 of 10, 20, 30, 40
		seen   []int
	}{
		{"nothing", func(s *Set[int]) {}, []int{10, 20, 30, 40}},
		{"insert ahead", func(s *Set[int]) { s.Insert(25); s.Insert(50) }, []int{10, 20, 25, 30, 40, 50}},
		{"insert behind", func(s *Set[int]) { s.Insert(5); s.Insert(15) }, []int{10, 20, 30, 40}},
		{"delete behind", func(s *Set[int]) { s.Delete(10) }, []int{10, 20, 30, 40}},
		{"delete here", func(s *Set[int]) { s.Delete(20) }, []int{10, 20, 30, 40}},
		{"delete ahead", func(s *Set[int]) { s.Delete(30) }, []int{10, 20, 40}},
		{"delete here and ahead", func(s *Set[int]) { s.Delete(20); s.Delete(30) }, []int{10, 20, 40}},
		{"delete here, insert ahead", func(s *Set[int]) { s.Delete(20); s.Insert(21) }, []int{10, 20, 21, 30, 40}},
		{"delete and insert here", func(s *Set[int]) { s.Delete(20); s.Insert(20) }, []int{10, 20, 30, 40}},
		{"delete all ahead", func(s *Set[int]) { s.Delete(40); s.Delete(30) }, []int{10, 20}},
		{"delete all", func(s *Set[int]) {
			for k := range s.All() {
				s.Delete(k)
			}
		}, []int{10, 20}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mustNew[int](t, DefaultP, seeded(0))
			for k := 10; k <= 40; k += 10 {
				s.Insert(k)
			}
			var seen []int
			for k := range s.All() {
				seen = append(seen, k)
				if k == 20 {
					test.change(s)
				}
			}
			if !slices.Equal(seen, test.seen) {
				t.Errorf("saw %v, want %v", seen, test.seen)
			}
		})
	}
}

// An iterator looks at the set when it is used, not when it is made.
func TestIteratorsAreReusable(t *testing.T) {
	s := mustNew[int](t, DefaultP, seeded(0))
	all, from := s.All(), s.From(2)
	for n := range 4 {
		s.Insert(n)
		want := []int{0, 1, 2, 3}[:n+1]
		if got := slices.Collect(all); !slices.Equal(got, want) {
			t.Errorf("All() = %v, want %v", got, want)
		}
		if got, want := slices.Collect(from), want[min(2, n+1):]; !slices.Equal(got, want) {
			t.Errorf("From(2) = %v, want %v", got, want)
		}
	}
}

// Whatever p and the source are, the levels are from 1 to maxLevel and the
// answers right.
func TestLevelCap(t *testing.T) {
	for _, test := range []struct {
		name        string
		p           float64
		src         rand.Source
		least, most int
	}{
		{"p near 1", 0.999999, seeded(0), 1, maxLevel},
		{"greatest p", math.Nextafter(1, 0), seeded(0), 1, maxLevel},
		{"least p", math.SmallestNonzeroFloat64, seeded(0), 1, 1},
		{"source stuck at 0", DefaultP, constant(0), maxLevel, maxLevel},
		{"source stuck at its most", DefaultP, constant(math.MaxUint64), 1, 1},
		{"source stuck below p", 0.5, constant(1<<63 - 1), maxLevel, maxLevel},
		{"source stuck at p", 0.5, constant(1 << 63), 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mustNew[int](t, test.p, test.src)
			var want []int
			for _, k := range seeded(1).Perm(500) {
				s.Insert(k)
				want = append(want, len(want))
			}
			check(t, s, want)
			for n := s.head.next[0]; n != nil; n = n.next[0] {
				if len(n.next) < test.least || len(n.next) > test.most {
					t.Fatalf("key %d has level %d", n.key, len(n.next))
				}
			}
			for _, k := range seeded(2).Perm(500) {
				if !s.Contains(k) || !s.Delete(k) || s.Contains(k) {
					t.Fatalf("key %d is not found, or not deleted", k)
				}
			}
			check(t, s, nil)
		})
	}
}

// Under the race detector this shows that reading changes nothing.
func TestConcurrentReads(t *testing.T) {
	s := mustNew[int](t, DefaultP, seeded(0))
	for k := range 100 {
		s.Insert(k)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for k := range s.From(50) {
				if !s.Contains(k) {
					t.Errorf("key %d is not found", k)
				}
			}
			for range s.All() {
			}
		})
	}
	wg.Wait()
}

func BenchmarkInsert(b *testing.B) { // each into a set of up to 16,384 keys
	keys := seeded(0).Perm(1 << 14)
	s := mustNew[int](b, DefaultP, seeded(1))
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if i == len(keys) {
			b.StopTimer()
			s, i = mustNew[int](b, DefaultP, seeded(1)), 0
			b.StartTimer()
		}
		s.Insert(keys[i])
		i++
	}
}

func BenchmarkContains(b *testing.B) { // in a set of 16,384 keys
	keys := seeded(0).Perm(1 << 14)
	s := mustNew[int](b, DefaultP, seeded(1))
	for _, k := range keys {
		s.Insert(k)
	}
	seeded(2).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	i := 0
	for b.Loop() {
		s.Contains(keys[i%len(keys)])
		i++
	}
}
