package skiplist

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A counter counts the comparisons of searches as the paper does. The set
// calls compare for all of them but those with the end of a lane, so these are
// added, and without retracing the search: it comes to the end of just those
// lanes whose last key is less than the one sought, once on each. If lane 1 is
// one of them, the final test for equality is with the end, too.
type counter struct {
	set   *Set[int]
	calls int
	last  []int // the last key of each lane, once all keys are in
}

func newCounter(t *testing.T, p float64, src rand.Source, keys ...int) *counter {
	t.Helper()
	c := new(counter)
	var err error
	c.set, err = NewFunc(p, src, func(a, b int) int {
		c.calls++
		return cmp.Compare(a, b)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !c.set.Insert(key) {
			t.Fatalf("key %d was there", key)
		}
	}
	c.last = make([]int, c.set.level)
	for key, level := range c.levels() {
		for i := range level {
			c.last[i] = key
		}
	}
	return c
}

// levels yields each key with its level.
func (c *counter) levels() iter.Seq2[int, int] {
	return func(yield func(key, level int) bool) {
		for n := c.set.head.next[0]; n != nil && yield(n.key, len(n.next)); n = n.next[0] {
		}
	}
}

// contains returns the answer of the set, the number of calls of compare and
// the number of comparisons with ends.
func (c *counter) contains(key int) (found bool, calls, ends int) {
	c.calls = 0
	found = c.set.Contains(key)
	for _, last := range c.last {
		if last < key {
			ends++
		}
	}
	if c.last[0] < key {
		ends++
	}
	return found, c.calls, ends
}

// TestCounting compares with counts made by hand, on a list like that of the
// paper's figure 3:
//
//	lane 4    6
//	lane 3    6                       25
//	lane 2    6    9     17           25
//	lane 1  3 6 7  9 12  17  19  21   25  26
func TestCounting(t *testing.T) {
	const up, stop = 0, math.MaxUint64
	c := newCounter(t, 0.5, &script{
		stop, up, up, up, stop, stop, up, stop, stop, up, stop, stop, stop, up, up, stop, stop,
	}, 3, 6, 7, 9, 12, 17, 19, 21, 25, 26)
	if want := []int{26, 25, 25, 6}; !slices.Equal(c.last, want) {
		t.Fatalf("last keys %v, want %v", c.last, want)
	}
	for _, test := range []struct {
		key         int
		found       bool
		calls, ends int
	}{
		{3, true, 5, 0},   // 6 | 6 | 6 | 3 | = 3
		{12, true, 6, 1},  // 6, end | 25 | 9, 17 | 12 | = 12
		{20, false, 8, 1}, // 6, end | 25 | 9, 17, 25 | 19, 21 | = 21
		{26, true, 4, 3},  // 6, end | 25, end | end | 26 | = 26
		{27, false, 3, 5}, // 6, end | 25, end | end | 26, end | = end
	} {
		found, calls, ends := c.contains(test.key)
		if found != test.found || calls != test.calls || ends != test.ends {
			t.Errorf("search for %d: %t after %d calls and %d ends, want %t, %d, %d",
				test.key, found, calls, ends, test.found, test.calls, test.ends)
		}
	}
}

// A study is what one p and n came to over all lists.
type study struct {
	mean, stdev float64    // comparisons a search
	low, high   float64    // least and greatest mean of a list
	pointers    float64    // pointers a key
	top         float64    // mean level of a list
	share       [3]float64 // of the keys of level 2, 3, 4 or more
}

// measure makes ten lists, of seeds 0 to 9, each with keys, levels and 5,000
// searches of its own.
func measure(t *testing.T, p float64, n int) study {
	const lists, searches = 10, 5000
	st := study{low: math.Inf(1)}
	var sum, squares float64
	for seed := range uint64(lists) {
		rng := seeded(seed)
		keys := rng.Perm(10 * n)[:n]
		c := newCounter(t, p, rng, keys...)
		var listSum float64
		for range searches {
			found, calls, ends := c.contains(keys[rng.IntN(n)])
			if !found {
				t.Fatal("a key is not found")
			}
			listSum += float64(calls + ends)
			squares += float64(calls+ends) * float64(calls+ends)
		}
		sum += listSum
		st.low = min(st.low, listSum/searches)
		st.high = max(st.high, listSum/searches)
		st.top += float64(c.set.level) / lists
		for _, level := range c.levels() {
			st.pointers += float64(level) / float64(lists*n)
			for i := range st.share {
				if level >= i+2 {
					st.share[i] += 1 / float64(lists*n)
				}
			}
		}
	}
	st.mean = sum / (lists * searches)
	st.stdev = math.Sqrt(squares/(lists*searches) - st.mean*st.mean)
	return st
}

// TestCost measures what the package comment promises.
func TestCost(t *testing.T) {
	within := func(what string, got, low, high float64) {
		t.Helper()
		if !(low <= got && got <= high) {
			t.Errorf("%s: %.4f, want %.4f to %.4f", what, got, low, high)
		}
	}
	const small, middle, large = 1 << 8, 1 << 11, 1 << 14
	var atLarge []study
	for _, p := range []float64{0.5, 0.25} {
		studies := make(map[int]study)
		for _, n := range []int{small, middle, large} {
			st := measure(t, p, n)
			studies[n] = st
			depth := math.Log(float64(n)) / math.Log(1/p)
			bound := depth/p + 1/(1-p) + 1
			t.Logf("p=%v n=%d: mean comparisons %.2f (bound %.2f, by list %.2f-%.2f), standard deviation %.2f"+
				" | pointers a key %.3f (%.3f) | mean top level %.1f (L(n)+1/(1-p) = %.1f)",
				p, n, st.mean, bound, st.low, st.high, st.stdev, st.pointers, 1/(1-p), st.top, depth+1/(1-p))
			within("mean comparisons", st.mean, 0.8*bound, bound)
			within("pointers a key", st.pointers, 0.97/(1-p), 1.03/(1-p))
			within("mean top level", st.top, 0, depth+1/(1-p)+1)
		}
		st := studies[large]
		slope := (st.mean - studies[small].mean) / math.Log2(large/small)
		t.Logf("p=%v n=%d: share of keys of level 2/3/4 or more %.4f/%.4f %.4f/%.4f %.4f/%.4f",
			p, large, st.share[0], p, st.share[1], p*p, st.share[2], p*p*p)
		t.Logf("p=%v: %.2f more comparisons for each doubling of n", p, slope)
		for i, want := range []float64{p, p * p, p * p * p} {
			within("share of a level", st.share[i], 0.95*want, 1.05*want)
		}
		within("comparisons for each doubling", slope, 1.5, 2.5)
		atLarge = append(atLarge, st)
	}
	half, quarter := atLarge[0], atLarge[1]
	within("comparisons, 1/4 against 1/2", quarter.mean/half.mean, 0.85, 1.15)
	within("pointers, 1/4 against 1/2", quarter.pointers/half.pointers, 0, 0.7)
	if quarter.stdev <= half.stdev {
		t.Errorf("standard deviation %.2f for p=1/4, want more than the %.2f for p=1/2", quarter.stdev, half.stdev)
	}
}
