package bloom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"testing"
)

func TestProtocolText(t *testing.T) {
	names := []string{"sha256-v2", "blake2b-v2", "doc-membership-v1", "esbloom-v1", "key-index-v1"}
	numbers := map[uint8]bool{}
	for i, name := range names {
		p := Protocol(i)
		text, err := p.MarshalText()
		if err != nil || string(text) != name || p.String() != name {
			t.Errorf("%d: %q, %v, %q", i, text, err, p)
		}
		var back Protocol = 99
		if err := back.UnmarshalText(text); err != nil || back != p {
			t.Errorf("%q: %v, %v", text, back, err)
		}
		// Pinned: files hold these numbers.
		if protocols[i].number != uint8(i)+1 || numbers[protocols[i].number] {
			t.Errorf("%s has number %d", name, protocols[i].number)
		}
		numbers[protocols[i].number] = true
	}
	if len(protocols) != len(names) {
		t.Errorf("%d protocols", len(protocols))
	}
	for _, bad := range []string{"", "sha256", "SHA256-V2", "sha256-v2 ", "sha256-v3", "Protocol(0)"} {
		p := BLAKE2b
		if err := p.UnmarshalText([]byte(bad)); !errors.Is(err, ErrConfig) || p != BLAKE2b {
			t.Errorf("%q: %v, %v", bad, p, err)
		}
	}
	if _, err := Protocol(5).MarshalText(); !errors.Is(err, ErrConfig) || Protocol(5).String() != "Protocol(5)" {
		t.Errorf("%v, %v", err, Protocol(5))
	}
}

// repeat is n bytes, valid as UTF-8.
func repeat(n int) []byte { return bytes.Repeat([]byte("x"), n) }

// usual is a configuration and an item that each protocol admits.
func usual(p Protocol) (Config, []byte) {
	switch p {
	case DocMembershipV1:
		return Config{Protocol: p, Bits: 100, Hashes: 3}, []byte("item")
	case ESBloomV1:
		return Config{Protocol: p, Bits: 1000, Hashes: 3}, []byte("item")
	case KeyIndexV1:
		return Config{Protocol: p, Bits: 1000, Hashes: 3}, []byte("8 bytes.")
	}
	return Config{Protocol: p, Bits: 1024, Hashes: 3}, []byte("item")
}

// Every limit from below, at and above, through Positions and the reference;
// each refusal of the right kind, with one prefix, and naming the value.
func TestLimits(t *testing.T) {
	type limits struct {
		bits, badBits   []uint64
		hashes          int
		seed            int
		keys            bool
		items, badItems []int
	}
	for p, l := range map[Protocol]limits{
		SHA256:          {[]uint64{512, 1024, 1 << 31, 1 << 48}, []uint64{1, 511, 513, 1000, 1<<48 - 1, 1<<48 + 512, math.MaxUint64}, 14, 32, false, []int{0, 1, 100000}, nil},
		BLAKE2b:         {[]uint64{512, 1024, 1 << 31, 1 << 48}, []uint64{1, 511, 513, 1000, 1<<48 - 1, 1<<48 + 512, math.MaxUint64}, 14, 32, true, []int{0, 1, 100000}, nil},
		DocMembershipV1: {[]uint64{8, 9, 512}, []uint64{1, 7, 513, 1 << 16, math.MaxUint64}, 8, 16, false, []int{0, 1, 64}, []int{65, 1000}},
		ESBloomV1:       {[]uint64{1, 10_000_000}, []uint64{10_000_001, math.MaxUint64}, 16, 0, false, []int{0, 1_000_000}, []int{1_000_001}},
		KeyIndexV1:      {[]uint64{1, 1 << 32, math.MaxUint64}, nil, 256, 0, false, []int{8}, []int{0, 7, 9, 16}},
	} {
		try := func(change func(c *Config, item *[]byte), kinds ...error) {
			t.Helper()
			cfg, item := usual(p)
			change(&cfg, &item)
			got, err := Positions(cfg, item)
			var want []uint64
			var wantErr error
			if len(item) <= 1000 { // the reference is slow
				want, wantErr = ReferencePositions(cfg, item)
			} else {
				want, wantErr = got, err
			}
			if len(kinds) == 0 {
				if err != nil || wantErr != nil || !slices.Equal(got, want) || len(got) != cfg.Hashes {
					t.Errorf("%v, item of %d bytes: %d, %v; reference %d, %v", cfg, len(item), got, err, want, wantErr)
				}
				return
			}
			for _, kind := range kinds {
				if !errors.Is(err, kind) || !errors.Is(wantErr, kind) || got != nil || want != nil {
					t.Errorf("%v, item of %d bytes: %v; reference %v; want %v", cfg, len(item), err, wantErr, kind)
				}
			}
			if err == nil || !strings.ContainsAny(err.Error(), "0123456789") && !strings.Contains(err.Error(), "takes no") &&
				!strings.Contains(err.Error(), "UTF-8") && !strings.Contains(err.Error(), "Inf") {
				t.Errorf("error %q names no value", err)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), "bloom: ") || strings.Count(err.Error(), "bloom: ") != 1) {
				t.Errorf("error %q", err)
			}
		}
		bits := func(m uint64) func(*Config, *[]byte) { return func(c *Config, _ *[]byte) { c.Bits = m } }
		hashes := func(k int) func(*Config, *[]byte) { return func(c *Config, _ *[]byte) { c.Hashes = k } }
		seed := func(n int) func(*Config, *[]byte) { return func(c *Config, _ *[]byte) { c.Seed = repeat(n) } }
		key := func(n int) func(*Config, *[]byte) { return func(c *Config, _ *[]byte) { c.Key = repeat(n) } }
		length := func(n int) func(*Config, *[]byte) { return func(_ *Config, i *[]byte) { *i = repeat(n) } }
		rate := func(r float64) func(*Config, *[]byte) { return func(c *Config, _ *[]byte) { c.FPRate = r } }

		for _, m := range l.bits {
			try(bits(m))
		}
		for _, m := range append(l.badBits, 0) {
			try(bits(m), ErrConfig)
		}
		for _, k := range []int{1, 2, l.hashes} {
			try(hashes(k))
		}
		for _, k := range []int{0, -1, math.MinInt, l.hashes + 1, math.MaxInt} {
			try(hashes(k), ErrConfig)
		}
		for n := range l.seed + 1 {
			try(seed(n))
		}
		for _, n := range []int{l.seed + 1, 256, 1000} {
			try(seed(n), ErrConfig)
		}
		for _, n := range []int{0, 1, 15, 16, 32, 64, 65, 300} {
			if l.keys && n >= 16 && n <= 64 {
				try(key(n))
			} else {
				try(key(n), ErrConfig, ErrKey)
			}
		}
		for _, n := range l.items {
			try(length(n))
		}
		for _, n := range l.badItems {
			try(length(n), ErrItem)
		}
		for _, r := range []float64{-1, 1, 2, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, -5e-324} {
			try(rate(r), ErrConfig)
		}
		for _, r := range []float64{0, math.Copysign(0, -1), 0.5, 1e-9} {
			try(rate(r))
		}
		invalid := func(_ *Config, i *[]byte) { *i = []byte("\xed\xa0\x80") }
		switch p {
		case ESBloomV1, KeyIndexV1:
			try(invalid, ErrItem)
		default:
			try(invalid)
		}
	}
	for _, p := range []Protocol{5, 255} {
		_, err := Positions(Config{Protocol: p, Bits: 512, Hashes: 1}, nil)
		_, errReference := ReferencePositions(Config{Protocol: p, Bits: 512, Hashes: 1}, nil)
		if !errors.Is(err, ErrConfig) || !errors.Is(errReference, ErrConfig) {
			t.Errorf("protocol %d: %v, %v", p, err, errReference)
		}
	}
}

// What an error says that a limit is.
func TestLimitsAreNamed(t *testing.T) {
	try := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for p, c := range map[Protocol]struct{ seed, item string }{
		SHA256: {"takes at most 32", ""}, BLAKE2b: {"takes at most 32", ""}, DocMembershipV1: {"takes at most 16", "takes at most 64"},
		ESBloomV1: {"takes no seed", "takes at most 1000000"}, KeyIndexV1: {"takes no seed", "takes exactly 8"},
	} {
		cfg, item := usual(p)
		if c.item != "" {
			_, err := Positions(cfg, repeat(1_000_001))
			try(err, c.item)
		}
		cfg.Seed = repeat(33)
		_, err := Positions(cfg, item)
		try(err, c.seed)
	}
	for _, n := range []uint64{0, 1<<32 + 1} {
		_, err := Digest{}.Shard(n)
		try(err, "1 to 4294967296")
	}
}

// One digest answers for filters of every size, and only for those that were
// made with its protocol, seed and key.
func TestDigestOnceAskMany(t *testing.T) {
	key := repeat(16)
	var families [][]*Snapshot
	configs := []Config{{}, {Seed: []byte("s")}, {Protocol: BLAKE2b}, {Protocol: BLAKE2b, Key: key}, {Protocol: BLAKE2b, Seed: []byte("s"), Key: key}}
	for _, cfg := range configs {
		var family []*Snapshot
		for _, bits := range []uint64{0, 512, 512 * 1000} {
			cfg.Bits = bits
			family = append(family, mustNew(t, cfg, "a", "b", "c"))
		}
		families = append(families, family)
	}
	for i, cfg := range configs {
		for _, item := range []string{"a", "c", "d", ""} {
			d, err := DigestOf(cfg, []byte(item))
			if err != nil {
				t.Fatal(err)
			}
			for j, family := range families {
				for _, s := range family {
					f, _ := s.Filter()
					maybe, err := f.MaybePresentDigest(d)
					r, err2 := s.LookupDigest(d, []byte(item))
					if i != j {
						if !errors.Is(err, ErrItem) || !errors.Is(err2, ErrItem) {
							t.Errorf("%v answers for a digest under %v: %v, %v", s, cfg, err, err2)
						}
						continue
					}
					if want := lookup(t, s, []byte(item)); err != nil || err2 != nil || r != want || maybe != want.MaybePresent {
						t.Errorf("%v: %q by digest %+v, %t, %v, %v; want %+v", s, item, r, maybe, err, err2, want)
					}
					if own, err := s.Digest([]byte(item)); err != nil || own != d {
						t.Errorf("%v: digest %x, %v, want %x", s, own, err, d)
					}
				}
			}
		}
	}
	// The digest of another item, with the tag of a record of its bucket by
	// chance: the bytes decide, in memory as behind a file, and nothing is
	// called corrupt that is not.
	s := mustNew(t, Config{Bits: 512, Hashes: 1}, eightBytes(8)...)
	path := saved(t, s)
	for way, open := range snapshotWays {
		got, err := open(path, asFile(t, s), OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i := range 5000 {
			d, err := s.Digest(fmt.Appendf(nil, "x%d", i))
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range eightBytes(8) {
				want, err1 := s.LookupDigest(d, item)
				r, err2 := got.LookupDigest(d, item)
				if r != want || err1 != nil || err2 != nil {
					t.Fatalf("%s: %q by another digest: %+v, %v; in memory %+v, %v", way, item, r, err2, want, err1)
				}
				if r.Duplicate {
					found++
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no other digest has a record's tag", way)
		}
	}
	if _, err := families[0][0].LookupDigest(Digest{}, nil); !errors.Is(err, ErrItem) {
		t.Errorf("zero digest: %v", err)
	}
	for _, p := range []Protocol{DocMembershipV1, ESBloomV1, KeyIndexV1} {
		cfg, item := usual(p)
		if _, err := DigestOf(cfg, item); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v", p, err)
		}
		s := mustNew(t, cfg, item)
		if _, err := s.Digest(item); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v", p, err)
		}
		if _, err := s.LookupDigest(Digest{}, item); !errors.Is(err, ErrItem) {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// Spare capacity behind a query is the caller's.
func TestQueryIsNotWrittenTo(t *testing.T) {
	for p := range Protocol(len(protocols)) {
		cfg, item := usual(p)
		backing := append(slices.Clone(item), repeat(100)...)
		query := backing[:len(item)]
		s := mustNew(t, cfg, item)
		lookup(t, s, query)
		Positions(cfg, query)
		ReferencePositions(cfg, query)
		Frames(cfg, query)
		s.Explain(query)
		if !bytes.Equal(backing, append(slices.Clone(item), repeat(100)...)) {
			t.Errorf("%v wrote to %q", p, backing)
		}
	}
}

// Items of 2^32 bytes are refused by their length, before they are hashed.
func TestLongestItem(t *testing.T) {
	if testing.Short() || math.MaxInt == math.MaxInt32 {
		t.Skip("takes an item of 4 GiB of address space")
	}
	length := uint64(math.MaxUint32) + 1
	item := make([]byte, length) // never touched
	for _, p := range []Protocol{SHA256, BLAKE2b} {
		cfg, _ := usual(p)
		if _, err := Positions(cfg, item); !errors.Is(err, ErrItem) {
			t.Errorf("%v: %v", p, err)
		}
		if _, err := ReferencePositions(cfg, item); !errors.Is(err, ErrItem) {
			t.Errorf("%v: %v", p, err)
		}
		s := mustNew(t, cfg, "item")
		if _, err := s.Lookup(item); !errors.Is(err, ErrItem) {
			t.Errorf("%v: Lookup: %v", p, err)
		}
		if _, err := s.MaybePresent(item); !errors.Is(err, ErrItem) {
			t.Errorf("%v: MaybePresent: %v", p, err)
		}
	}
}

func TestConfigThroughJSON(t *testing.T) {
	in := Config{Protocol: BLAKE2b, Bits: 1 << 40, Hashes: 7, FPRate: 0.25, Seed: []byte("s")}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Config
	if err := json.Unmarshal(text, &out); err != nil || out.String() != in.String() {
		t.Errorf("%s: %v, %v", text, out, err)
	}
	// A key does not travel, and its absence is noticed.
	in.Key = repeat(32)
	text, _ = json.Marshal(in)
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if _, err := Positions(out, nil); !errors.Is(err, ErrKey) {
		t.Errorf("%s: %v", text, err)
	}
}

// Digests at their edges, and m around 2^31, 2^32, 2^40 and its most: every
// position is below m, and the first and the last are reached.
func TestArithmeticEdges(t *testing.T) {
	ones := ^uint64(0)
	edges := []uint64{0, 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, ones - 1, ones}
	var sizes []uint64
	for _, at := range []uint64{1 << 31, 1 << 32, 1 << 40} {
		sizes = append(sizes, at-512, at, at+512)
	}
	for _, m := range append(sizes, 512, 1024, 1<<48-512, 1<<48) {
		least, most := ones, uint64(0)
		for _, w0 := range edges {
			for _, w1 := range edges {
				w := [4]uint64{w0, w1, ^w1, 0}
				for j := range 14 {
					p := blockBits*block(w, m/blockBits) + pick(w, j)
					// floor(w0·B / 2^64) by another road.
					product := new(big.Int).Mul(new(big.Int).SetUint64(w0), new(big.Int).SetUint64(m/blockBits))
					if want := product.Rsh(product, 64).Uint64(); p/blockBits != want || p >= m {
						t.Fatalf("m = %d, w0 = %x: position %d, block %d", m, w0, p, want)
					}
					least, most = min(least, p), max(most, p)
				}
			}
		}
		if least != 0 || most != m-1 {
			t.Errorf("m = %d: positions from %d to %d", m, least, most)
		}
		// Reductions of the other protocols.
		for _, p := range []Protocol{DocMembershipV1, KeyIndexV1} {
			s := newScheme(Config{Protocol: p, Bits: 8, Hashes: 1})
			for _, w0 := range edges {
				w := [4]uint64{w0, ^w0, w0, ones}
				number := new(big.Int)
				for i := range s.hash.size() / 8 {
					number.Lsh(number, 64).Or(number, new(big.Int).SetUint64(w[i]))
				}
				if p == KeyIndexV1 {
					number.SetUint64(bits.ReverseBytes64(w0))
				}
				for _, m := range []uint64{m, 1, ones, 1 << 63} {
					if got, want := s.position(w, m), new(big.Int).Mod(number, new(big.Int).SetUint64(m)).Uint64(); got != want {
						t.Fatalf("%v, m = %d: position %d, want %d", p, m, got, want)
					}
				}
			}
		}
	}
}

// A million digests spread evenly over blocks, picks and buckets: chi-square
// on a fixed seed, each within five deviations of its mean.
func TestUniformity(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	const blocks, buckets = 1000, 777
	var inBlock [blocks]int
	var inBucket [buckets]int
	var picks [14][blockBits]int
	set := frozenSet{buckets: buckets}
	s := newScheme(Config{Seed: []byte("uniform")})
	for i := range n {
		w := s.digest(fmt.Append(nil, i))
		inBlock[block(w, blocks)]++
		inBucket[set.bucket(w)]++
		for j := range picks {
			picks[j][pick(w, j)]++
		}
	}
	check := func(name string, counts []int) {
		t.Helper()
		expected := float64(n) / float64(len(counts))
		chi := 0.0
		for _, c := range counts {
			chi += (float64(c) - expected) * (float64(c) - expected) / expected
		}
		freedom := float64(len(counts) - 1)
		if deviations := (chi - freedom) / math.Sqrt(2*freedom); math.Abs(deviations) > 5 {
			t.Errorf("%s: chi-square is %.1f deviations off", name, deviations)
		}
	}
	check("blocks", inBlock[:])
	check("buckets", inBucket[:])
	for j := range picks {
		check(fmt.Sprint("pick ", j), picks[j][:])
	}
}
