package skiplist_test

import (
	"bytes"
	"fmt"
	"log"
	"math/rand/v2"
	"strings"

	"github.com/b1cc2673/bloom/skiplist"
)

func Example() {
	set, err := skiplist.New[string](skiplist.DefaultP, rand.NewPCG(1, 2))
	if err != nil {
		log.Fatal(err)
	}
	for _, word := range strings.Fields("the quick brown fox jumps over the lazy dog") {
		if !set.Insert(word) {
			fmt.Println("again:", word)
		}
	}
	set.Delete("fox")
	fmt.Println(set.Len(), set.Contains("dog"), set.Contains("fox"))
	for word := range set.All() {
		fmt.Print(word, " ")
	}
	// Output:
	// again: the
	// 7 true false
	// brown dog jumps lazy over quick the
}

// Keys of any type will do, given an order; byte slices have no other.
func ExampleNewFunc() {
	set, err := skiplist.NewFunc(skiplist.DefaultP, rand.NewPCG(1, 2), bytes.Compare)
	if err != nil {
		log.Fatal(err)
	}
	set.Insert([]byte("b"))
	set.Insert([]byte("a"))
	for key := range set.All() {
		fmt.Printf("%s ", key)
	}
	// Output: a b
}

// A range that ends is one that is left.
func ExampleSet_From() {
	set, err := skiplist.New[int](skiplist.DefaultP, rand.NewPCG(1, 2))
	if err != nil {
		log.Fatal(err)
	}
	for n := range 20 {
		set.Insert(n * n)
	}
	for square := range set.From(50) {
		if square >= 200 {
			break
		}
		fmt.Print(square, " ")
	}
	// Output: 64 81 100 121 144 169 196
}

// Deleting while iterating is fine.
func ExampleSet_All() {
	set, err := skiplist.New[int](skiplist.DefaultP, rand.NewPCG(1, 2))
	if err != nil {
		log.Fatal(err)
	}
	for n := 2; n < 50; n++ {
		set.Insert(n)
	}
	for prime := range set.All() {
		for n := 2 * prime; n < 50; n += prime {
			set.Delete(n)
		}
		fmt.Print(prime, " ")
	}
	// Output: 2 3 5 7 11 13 17 19 23 29 31 37 41 43 47
}
