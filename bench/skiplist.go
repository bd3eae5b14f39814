package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/b1cc2673/bloom/skiplist"
)

// skiplists compares the ordered companion with google/btree, on random ints.
func skiplists(w io.Writer, counts []int, rounds int) error {
	fmt.Fprintf(w, "%s\n\nMedians of %d rounds; × is the time over that of google/btree (degree 32) in the same round.\n\n", environment(), rounds)
	fmt.Fprintln(w, "| ns a key | skiplist | google/btree | × |\n| --- | ---: | ---: | ---: |")
	for _, n := range counts {
		keys := rand.New(rand.NewPCG(1, uint64(n))).Perm(n)
		t := times{}
		for round := range rounds {
			list, err := skiplist.New[int](skiplist.DefaultP, rand.NewPCG(2, uint64(round)))
			if err != nil {
				return err
			}
			tree := btree.NewOrderedG[int](32)
			found := 0
			for _, c := range []struct {
				name string
				do   func(key int)
			}{
				{"insert, skiplist", func(key int) { list.Insert(key) }},
				{"insert, btree", func(key int) { tree.ReplaceOrInsert(key) }},
				{"find, skiplist", func(key int) {
					if list.Contains(key) {
						found++
					}
				}},
				{"find, btree", func(key int) {
					if tree.Has(key) {
						found++
					}
				}},
			} {
				runtime.GC()
				start := time.Now()
				for _, key := range keys {
					c.do(key)
				}
				t[c.name] = append(t[c.name], float64(time.Since(start))/float64(n))
			}
			start := time.Now()
			ours := slices.Collect(list.All())
			t["walk, skiplist"] = append(t["walk, skiplist"], float64(time.Since(start))/float64(n))
			start = time.Now()
			var theirs []int
			tree.Ascend(func(key int) bool { theirs = append(theirs, key); return true })
			t["walk, btree"] = append(t["walk, btree"], float64(time.Since(start))/float64(n))
			if found != 2*n || !slices.Equal(ours, theirs) {
				return errors.New("skip list and B-tree disagree")
			}
		}
		for _, what := range []string{"insert", "find", "walk"} {
			fmt.Fprintf(w, "| %s, n = %d | %.0f | %.0f | %.2f |\n", what, n,
				t.median(what+", skiplist"), t.median(what+", btree"), t.ratio(what+", skiplist", what+", btree"))
		}
	}
	return nil
}
