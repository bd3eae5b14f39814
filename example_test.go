package bloom_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/b1cc2673/bloom"
)

func Example() {
	known := []string{"annual report", "minutes", "invoice 17"}
	s, err := bloom.New(bloom.Config{}, slices.Values(known))
	if err != nil {
		log.Fatal(err)
	}
	for _, doc := range []string{"minutes", "Minutes"} {
		r, err := s.LookupString(doc)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %+v\n", doc, r)
	}
	// Output:
	// minutes: {MaybePresent:true ExactChecked:true Duplicate:true}
	// Minutes: {MaybePresent:false ExactChecked:false Duplicate:false}
}

// A sequence cannot return an error, so a source that can fail notes its own,
// and the caller looks at it before the snapshot is trusted.
func ExampleNew_failingSource() {
	lines := bufio.NewScanner(strings.NewReader("a\nb\n" + strings.Repeat("x", 1<<20)))
	s, err := bloom.New(bloom.Config{}, func(yield func([]byte) bool) {
		for lines.Scan() {
			if !yield(lines.Bytes()) { // New copies, so the buffer may be reused
				return
			}
		}
	})
	if err := errors.Join(err, lines.Err()); err != nil {
		fmt.Println("no snapshot:", err)
		return
	}
	fmt.Println(s)
	// Output: no snapshot: bufio.Scanner: token too long
}

// One process builds and saves, others open; a new version takes the place
// of the old one in the file system and in memory while readers go on.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "bloom")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "revoked.bloom")

	publish := func(serials ...string) {
		s, err := bloom.New(bloom.Config{}, slices.Values(serials))
		if err != nil {
			log.Fatal(err)
		}
		if err := s.Save(path); err != nil { // the old file or the new one, never a mixture
			log.Fatal(err)
		}
	}
	var current atomic.Pointer[bloom.Snapshot]
	reload := func() {
		s, err := bloom.Open(path, bloom.OpenOptions{})
		if err != nil {
			log.Fatal(err)
		}
		current.Store(s) // the old one needs no Close: it goes with its last reader
	}

	publish("serial 17")
	reload()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 1000 {
				if r, err := current.Load().LookupString("serial 17"); err != nil || !r.Duplicate {
					log.Fatal("missed a member: ", err)
				}
			}
		})
	}
	publish("serial 17", "serial 18")
	reload()
	readers.Wait()

	r, err := current.Load().LookupString("serial 18")
	fmt.Println(r.Duplicate, err)
	// Output: true <nil>
}

// Records that come from many goroutines, or do not fit in memory.
func ExampleBuilder() {
	folder, err := os.MkdirTemp("", "bloom")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	b, err := bloom.NewBuilder(bloom.Config{}, bloom.BuildOptions{Memory: 256 << 20, Folder: folder})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	var sources sync.WaitGroup
	for source := range 4 {
		sources.Go(func() {
			for i := range 1000 {
				if err := b.AddString(fmt.Sprintf("source %d, record %d", source, i)); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	sources.Wait()
	path := filepath.Join(folder, "all.bloom")
	if err := b.Save(context.Background(), path); err != nil {
		log.Fatal(err)
	}
	s, err := bloom.Open(path, bloom.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Len())
	// Output: 4000
}

// Names of documents, kept beside the snapshot by ordinal.
func ExampleSnapshot_LookupOrdinal() {
	files := map[string]string{"a.txt": "first text", "b.txt": "second text"}
	s, err := bloom.New(bloom.Config{}, func(yield func(string) bool) {
		for _, text := range files {
			if !yield(text) {
				return
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	names := make([]string, s.Len())
	for name, text := range files {
		_, ordinal, err := s.LookupOrdinal([]byte(text))
		if err != nil {
			log.Fatal(err)
		}
		names[ordinal] = name
	}
	r, ordinal, _ := s.LookupOrdinal([]byte("second text"))
	fmt.Println(r.Duplicate, names[ordinal])
	// Output: true b.txt
}

func ExampleSnapshot_LookupBatch() {
	s, err := bloom.New(bloom.Config{}, slices.Values([]string{"a", "b"}))
	if err != nil {
		log.Fatal(err)
	}
	items := [][]byte{[]byte("a"), []byte("x"), []byte("b")}
	results := make([]bloom.Result, len(items))
	if err := s.LookupBatch(items, results); err != nil {
		log.Fatal(err)
	}
	for i, r := range results {
		fmt.Printf("%s %t\n", items[i], r.Duplicate)
	}
	// Output:
	// a true
	// x false
	// b true
}

// The filter alone, before a database that has the last word.
func ExampleFilter_Confirm() {
	database := map[string]bool{"alice": true, "bob": true}
	s, err := bloom.New(bloom.Config{FPRate: 0.001}, func(yield func(string) bool) {
		for user := range database {
			if !yield(user) {
				return
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	filter, err := s.Filter()
	if err != nil {
		log.Fatal(err)
	}
	queries := 0
	for _, user := range []string{"alice", "mallory"} {
		r, err := filter.Confirm(context.Background(), []byte(user), func(ctx context.Context, user []byte) (bool, error) {
			queries++
			return database[string(user)], nil
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user, r.Duplicate)
	}
	fmt.Println("queries:", queries)
	// Output:
	// alice true
	// mallory false
	// queries: 1
}

// One digest answers for many snapshots of one seed.
func ExampleDigestOf() {
	cfg := bloom.Config{Seed: []byte("collection 7")}
	spring, err := bloom.New(cfg, slices.Values([]string{"a", "b"}))
	if err != nil {
		log.Fatal(err)
	}
	autumn, err := bloom.New(cfg, slices.Values([]string{"c"}))
	if err != nil {
		log.Fatal(err)
	}
	item := []byte("c")
	d, err := bloom.DigestOf(cfg, item)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range []*bloom.Snapshot{spring, autumn} {
		r, err := s.LookupDigest(d, item)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Duplicate)
	}
	// Output:
	// false
	// true
}

// With a secret key nobody else can compute positions. A key is random bytes,
// 16 or more, never a passphrase, and a nil one is none: check that it was read.
func ExampleConfig_key() {
	folder, err := os.MkdirTemp("", "bloom")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "tokens.bloom")
	tokens := []string{"token"}
	key := make([]byte, 32)
	rand.Read(key)

	s, err := bloom.New(bloom.Config{Protocol: bloom.BLAKE2b, Key: key}, slices.Values(tokens))
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Save(path); err != nil { // the key is not in the file
		log.Fatal(err)
	}
	s, err = bloom.Open(path, bloom.OpenOptions{Key: key})
	if err != nil {
		log.Fatal(err)
	}

	r, _ := s.LookupString("token")
	fmt.Println(r.Duplicate)
	_, err = bloom.Open(path, bloom.OpenOptions{})
	fmt.Println(errors.Is(err, bloom.ErrKey))
	// Output:
	// true
	// true
}

// Which lines of a stream are new? A snapshot knows the lines of before and does
// not learn: lines that repeat each other within the stream are found by a
// second snapshot, of what the first one does not know.
func Example_stream() {
	known, err := bloom.New(bloom.Config{}, slices.Values([]string{"a", "b"}))
	if err != nil {
		log.Fatal(err)
	}
	lines := [][]byte{[]byte("c"), []byte("a"), []byte("c"), []byte("d")}

	results := make([]bloom.Result, len(lines))
	if err := known.LookupBatch(lines, results); err != nil {
		log.Fatal(err)
	}
	var unknown [][]byte
	for i, r := range results {
		if !r.Duplicate {
			unknown = append(unknown, lines[i])
		}
	}
	repeats, err := bloom.New(bloom.Config{}, slices.Values(unknown))
	if err != nil {
		log.Fatal(err)
	}
	seen := make([]bool, repeats.Len())
	for _, line := range unknown {
		_, ordinal, err := repeats.LookupOrdinal(line)
		if err != nil {
			log.Fatal(err)
		}
		if !seen[ordinal] {
			fmt.Printf("%s is new\n", line)
		}
		seen[ordinal] = true
	}
	// Output:
	// c is new
	// d is new
}

func ExampleConfig_Resolve() {
	for _, rate := range []float64{0.01, 0.001, 0.0001} {
		c, err := bloom.Config{FPRate: rate}.Resolve(1_000_000)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v: %.2f bits a record, k = %d\n", rate, float64(c.Bits)/1e6, c.Hashes)
	}
	// Output:
	// 0.01: 9.92 bits a record, k = 6
	// 0.001: 15.55 bits a record, k = 9
	// 0.0001: 22.03 bits a record, k = 12
}

func ExampleSnapshot_Explain() {
	s, err := bloom.New(bloom.Config{
		Protocol: bloom.DocMembershipV1, Bits: 16, Hashes: 3, Seed: []byte("lab"),
	}, slices.Values([]string{"doc-00", "doc-01", "doc-02", "doc-03"}))
	if err != nil {
		log.Fatal(err)
	}
	e, err := s.Explain([]byte("doc-41"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(e)
	// Output:
	// protocol    doc-membership-v1, m = 16, k = 3
	// frame 0     646f632d6d656d626572736869702d763100001003036c6162000006646f632d3431
	// digest 0    a04de771bdd327144eeaea8bd00128421e987b00ab0364ba2e2482e58fb8fdf6
	// frame 1     646f632d6d656d626572736869702d763100001003036c6162010006646f632d3431
	// digest 1    ca4c5fb10a1dc96ad4db6e4f6971069e980e0cad9f984a0308d709b33cb14f3f
	// frame 2     646f632d6d656d626572736869702d763100001003036c6162020006646f632d3431
	// digest 2    fcfbfb7aa25f16d2f22e3865f3ea9d74c03a154785b746ae61551e8c0c5b523c
	// position 0  6   bit 1
	// position 1  15  bit 1
	// position 2  12  bit 1
	// decision    false positive: all 3 positions are set, by other records; none is these bytes
}

func ExampleSnapshot_Stats() {
	s, err := bloom.New(bloom.Config{
		Protocol: bloom.DocMembershipV1, Bits: 16, Hashes: 3, Seed: []byte("lab"),
	}, slices.Values([]string{"doc-00", "doc-01", "doc-02", "doc-03"}))
	if err != nil {
		log.Fatal(err)
	}
	stats, err := s.Stats()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats)
	// Output: doc-membership-v1 n=4 m=16 k=3 seed=6c6162 keyed=false ones=7 fill=0.4375 fp(realised)=0.08374 fp(expected)=0.1566 filter=2B set=58B
}

// Four bits, two hashes, two records, exactly: the classic formulas are a
// little off for small filters.
func ExampleExactModel() {
	model, err := bloom.ExactModel(4, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	classic, _ := bloom.ClassicFPRate(4, 2, 2)
	exponential, _ := bloom.ExponentialFPRate(4, 2, 2)
	fmt.Println(model.Ways, model.FPRate)
	fmt.Printf("%.6f %.6f\n", classic, exponential)
	// Output:
	// [0 4 84 144 24] 505/1024
	// 0.467300 0.399576
}

// A port of a protocol is debugged from the framed bytes on.
func ExampleFrames() {
	cfg := bloom.Config{Bits: 1024, Hashes: 3, Seed: []byte("lab")}
	frames, err := bloom.Frames(cfg, []byte("abc"))
	if err != nil {
		log.Fatal(err)
	}
	positions, err := bloom.Positions(cfg, []byte("abc"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%x\n%d\n", frames[0], positions)
	// Output:
	// 626c6f6f6d32036c616200000003616263
	// [957 825 946]
}

func ExampleReferencePositions() {
	cfg := bloom.Config{Protocol: bloom.KeyIndexV1, Bits: 64, Hashes: 3}
	item := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	production, err := bloom.Positions(cfg, item)
	if err != nil {
		log.Fatal(err)
	}
	reference, err := bloom.ReferencePositions(cfg, item)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(production, slices.Equal(production, reference))
	// Output: [41 3 22] true
}
