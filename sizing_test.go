package bloom

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

var badRates = []float64{-1, 1, 2, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324}

func TestBadRates(t *testing.T) {
	for _, r := range badRates {
		for p := range Protocol(len(protocols)) {
			for _, bits := range []uint64{0, 512} { // refused where Bits decides, too
				cfg := Config{Protocol: p, Bits: bits, FPRate: r}
				if _, err := New(cfg, func(func([]byte) bool) {}); !errors.Is(err, ErrConfig) {
					t.Errorf("New(%v): %v", cfg, err)
				}
				if _, err := cfg.Resolve(100); !errors.Is(err, ErrConfig) {
					t.Errorf("Resolve(%v): %v", cfg, err)
				}
			}
		}
	}
	for _, r := range append(badRates, 0, math.Copysign(0, -1)) {
		if _, err := ClassicBits(100, r); !errors.Is(err, ErrConfig) {
			t.Errorf("ClassicBits(100, %v): %v", r, err)
		}
	}
}

func TestFormulas(t *testing.T) {
	if m, err := ClassicBits(1000, 0.01); err != nil || m != 9586 {
		t.Errorf("%d, %v", m, err)
	}
	if m, err := ClassicBits(0, 0.01); err != nil || m != 0 {
		t.Errorf("%d, %v", m, err)
	}
	if _, err := ClassicBits(math.MaxUint64, 0.01); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if k, err := ClassicHashes(9586, 1000); err != nil || k != 7 {
		t.Errorf("%d, %v", k, err)
	}
	for _, n := range []uint64{0, math.MaxUint64} {
		if k, err := ClassicHashes(1000, n); err != nil || k != 1 {
			t.Errorf("%d, %v", k, err)
		}
	}
	if _, err := ClassicHashes(0, 1); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	for _, f := range []func(uint64, int, uint64) (float64, error){ClassicFPRate, ExponentialFPRate} {
		for _, c := range []struct {
			m uint64
			k int
			n uint64
		}{{1, 1, 1}, {1, 5, 100}, {100, 5, 1 << 40}, {8, 1, math.MaxUint64}} {
			if p, err := f(c.m, c.k, c.n); err != nil || p < 0.6 || p > 1 {
				t.Errorf("%+v: %v, %v", c, p, err)
			}
		}
		if p, err := f(100, 3, 0); err != nil || p != 0 {
			t.Errorf("%v, %v", p, err)
		}
		if p, err := f(math.MaxUint64, 2, 1); err != nil || p < 1.17e-38 || p > 1.18e-38 {
			t.Errorf("%v, %v", p, err)
		}
		if _, err := f(0, 1, 1); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
		if _, err := f(1, 0, 1); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
	}
	for _, bad := range []struct {
		m uint64
		k int
	}{{0, 1}, {513, 1}, {512, 0}, {512, 15}} {
		if _, err := BlockedFPRate(bad.m, bad.k, 1); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// The elementary functions that sizing has for itself, against package math.
func TestElementaryFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	near := func(what string, x, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 4e-15*math.Abs(want) {
			t.Errorf("%s(%v) = %v, want %v", what, x, got, want)
		}
	}
	for range 20000 {
		x := math.Ldexp(1+rng.Float64(), rng.IntN(600)-600)
		near("ln", x, ln(x), math.Log(x))
		near("oneMinusExp", x, oneMinusExp(x), -math.Expm1(-x))
		y := -600 * rng.Float64() * rng.Float64()
		if got, want := exp(y), math.Exp(y); math.Abs(got-want) > 2e-13*want {
			t.Errorf("exp(%v) = %v, want %v", y, got, want)
		}
		k, base := rng.IntN(30), rng.Float64()
		if got, want := power(base, k), math.Pow(base, float64(k)); math.Abs(got-want) > 1e-13*want {
			t.Errorf("power(%v, %d) = %v, want %v", base, k, got, want)
		}
	}
	// Where a branch is taken is part of the specification, to the last bit.
	for _, c := range []struct{ x, got, want float64 }{
		{0x1.6a09e667f3bcdp-1, ln(0x1.6a09e667f3bcdp-1), -0x1.62e42fefa39eep-02},
		{-700, exp(-700) / math.Exp(-700), 1},
	} {
		if math.Abs(c.got-c.want) > 1e-12 || c.want != 1 && c.got != c.want {
			t.Errorf("at %v: %x, want %x", c.x, c.got, c.want)
		}
	}
	p := &protocols[KeyIndexV1]
	if m, ok := p.bitsForHashes(6005849613, 0.5, 1); !ok || m != 8664609454 {
		t.Errorf("a root of ½: %d bits, %t", m, ok)
	}
	if exp(0) != 1 || exp(-1000) != 0 || power(0.5, 10) != 0x1p-10 {
		t.Error(exp(0), exp(-1000), power(0.5, 10))
	}
}

// A computed number of bits at the limits of every protocol.
func TestFitBits(t *testing.T) {
	for i := range protocols {
		p := &protocols[i]
		for _, c := range []struct {
			m    float64
			want uint64 // 0: refused
		}{
			{0, p.leastBits}, {float64(p.leastBits), p.leastBits}, {float64(p.leastBits) + 1, p.leastBits + 1},
			{float64(p.mostBits), p.mostBits}, {float64(p.mostBits) + 1, 0}, {0x1p64, 0}, {math.Inf(1), 0}, {math.NaN(), 0},
		} {
			if p.mostBits == math.MaxUint64 && c.want == p.mostBits {
				c.want = 0 // as a float64 it is one more
			}
			if m, ok := p.fitBits(c.m); m != c.want || ok != (c.want != 0) {
				t.Errorf("%s: %v is fitted as %d, %t, want %d", p.name, c.m, m, ok, c.want)
			}
		}
	}
	const n, rate = 18446744073709549567, 0x1.3cac717aa98c8p-01 // takes 2^64 bits, to the bit
	if m := classicBits(n, rate); m != 0x1p64 {
		t.Fatalf("%x", m)
	}
	if m, err := ClassicBits(n, rate); !errors.Is(err, ErrConfig) {
		t.Errorf("%d, %v", m, err)
	}
	if m, err := ClassicBits(n-2048, rate); err != nil || m != math.MaxUint64-2047 {
		t.Errorf("%d, %v", m, err)
	}
}

// Where the best k is about the most that the protocol has, the bits are still
// enough for the rate.
func TestMostHashesKeepTheRate(t *testing.T) {
	for _, p := range []Protocol{DocMembershipV1, ESBloomV1} {
		most := protocols[p].mostHashes
		for tenths := 10*most - 10; tenths <= 10*most+20; tenths++ {
			rate := math.Exp2(-float64(tenths) / 10)
			c, err := Config{Protocol: p, FPRate: rate}.Resolve(20)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := ExponentialFPRate(c.Bits, c.Hashes, 20); got > 1.003*rate || tenths >= 10*most+5 && (got > rate || c.Hashes != most) {
				t.Errorf("%v: m = %d, k = %d: rate %v", c, c.Bits, c.Hashes, got)
			}
		}
	}
}

// What the exact model takes on and what it does not.
func TestExactModelLimits(t *testing.T) {
	for _, c := range [][3]int{{1 << 20, 1, 0}, {2, 64 * (1<<22 - 1), 0}, {1, 1000, 1000}} {
		m, err := ExactModel(c[0], c[1], c[2])
		if err != nil || len(m.Ways) != c[0]+1 {
			t.Errorf("%d: %d ways, %v", c, len(m.Ways), err)
		}
	}
	for _, c := range [][3]int{{1<<20 + 1, 1, 0}, {2, 178_900, 1}, {1, 1_000_001, 1000}, {1 << 20, 1000, 1}} {
		if _, err := ExactModel(c[0], c[1], c[2]); !isOnly(err, ErrTooLarge) {
			t.Fatalf("%d: %v", c, err)
		}
	}
}

// A block is the exact model with 512 bits.
func TestBlockModelIsExactModel(t *testing.T) {
	var model blockModel
	for _, c := range [][2]int{{1, 1}, {1, 7}, {3, 2}, {6, 10}, {14, 5}, {6, 52}} {
		exact, err := ExactModel(blockBits, c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		want, _ := exact.FPRate.Float64()
		if got := model.block(c[0], uint64(c[1])); math.Abs(got-want) > 1e-14*want {
			t.Errorf("k %d, %d items: %v, want %v", c[0], c[1], got, want)
		}
	}
	// And two blocks, mixed with exact binomial weights.
	const n, k = 20, 4
	sum := new(big.Rat)
	for j := range n + 1 {
		m, _ := ExactModel(blockBits, k, j)
		weight := new(big.Rat).SetFrac(new(big.Int).Binomial(n, int64(j)), big.NewInt(1<<n))
		sum.Add(sum, weight.Mul(weight, m.FPRate))
	}
	want, _ := sum.Float64()
	if got := model.rate(n, 2, k); math.Abs(got-want) > 1e-14*want {
		t.Errorf("two blocks: %v, want %v", got, want)
	}
}

// More records, or a lower rate, never take fewer bits.
func TestSizingIsMonotone(t *testing.T) {
	t.Parallel()
	numbers := []uint64{0, 1, 2, 3, 63, 64, 65, 100, 1000, 65534, 65535, 65536, 65537, 65538, 1 << 20, 1<<20 + 1, 1e9, 1e9 + 1, 1<<40 - 1, 1 << 40}
	if !testing.Short() {
		for n := uint64(4); n < 130; n++ {
			numbers = append(numbers, n)
		}
		for n := uint64(65400); n < 65700; n += 30 {
			numbers = append(numbers, n)
		}
	}
	numbers = append(numbers, 100085, 100086, 1000019, 1000020)
	slices.Sort(numbers)
	// Among them some where the v2 model goes from one kind of weights to the
	// other, and where k meets its limit: they were wrong once.
	rates := []float64{0.9999, 0.99, 0.8646688468054464, 0.7076433687050756, 0.651130792772989, 0.5, 0.3, 0.1, 0.02, 0.01, 0.0099, 1e-3, 1e-4, 1.0789593326684802e-05, 1e-6, 1e-9, 1e-12, 1e-20, 1e-300}
	for _, p := range []Protocol{SHA256, DocMembershipV1, ESBloomV1, KeyIndexV1} { // BLAKE2b is sized as SHA256
		for _, k := range []int{0, 1, 7} {
			last := make([]uint64, len(numbers))
			for _, rate := range rates {
				lastBits := uint64(0)
				for i, n := range numbers {
					c, err := Config{Protocol: p, Hashes: k, FPRate: rate}.Resolve(n)
					bits := c.Bits
					if err != nil {
						if !errors.Is(err, ErrConfig) && !errors.Is(err, ErrTooLarge) {
							t.Errorf("%v: %v", p, err)
						}
						bits = math.MaxUint64
					}
					if bits < lastBits || bits < last[i] {
						t.Errorf("%v, k %d, rate %v, n %d: %d bits; %d for fewer records, %d for a higher rate", p, k, rate, n, bits, lastBits, last[i])
					}
					lastBits, last[i] = bits, bits
				}
			}
		}
	}
	if _, err := (Config{}).Resolve(1<<40 + 1); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if c, err := (Config{Bits: 512, Hashes: 3}).Resolve(math.MaxUint64); err != nil || c.Bits != 512 || c.Hashes != 3 {
		t.Error(c, err)
	}
}

// numbered yields n 24-byte records of one generator.
func numbered(prefix string, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := range n {
			if !yield(fmt.Appendf(nil, "%-12s%012d", prefix, i)) {
				return
			}
		}
	}
}

// Measured false-positive rates are within 5 % of the model.
func TestMeasuredRates(t *testing.T) {
	if testing.Short() {
		t.Skip("asks millions of queries")
	}
	const n = 100_000
	for _, c := range []struct {
		bits    uint64
		k       int
		queries int
	}{{8, 5, 500_000}, {10, 6, 1_000_000}, {12, 7, 2_000_000}, {16, 9, 6_000_000}} {
		t.Run(fmt.Sprint(c.bits), func(t *testing.T) {
			t.Parallel()
			s, err := New(Config{Bits: c.bits * n / 512 * 512, Hashes: c.k}, numbered("member", n))
			if err != nil {
				t.Fatal(err)
			}
			positive := 0
			item := make([]byte, 24)
			for i := range c.queries {
				if maybe, _ := s.MaybePresent(fmt.Appendf(item[:0], "%-12s%012d", "absent", i)); maybe {
					positive++
				}
			}
			measured := float64(positive) / float64(c.queries)
			stats, _ := s.Stats()
			t.Logf("measured %.4g, model %.4g, realised %.4g", measured, stats.ExpectedFPRate, stats.RealisedFPRate)
			if math.Abs(measured/stats.ExpectedFPRate-1) > 0.05 {
				t.Errorf("measured %v, model %v", measured, stats.ExpectedFPRate)
			}
		})
	}
}

// The mean realised rate over many seeds is the model, for small filters.
func TestMeanRealisedRate(t *testing.T) {
	t.Parallel()
	seeds := 2000
	if testing.Short() {
		seeds = 100
	}
	for _, n := range []int{1, 2, 5, 10, 64, 100} {
		for _, k := range []int{0, 1, 2, 6} {
			var sum, squares, model float64
			for seed := range seeds {
				s, err := New(Config{Hashes: k, Seed: fmt.Append(nil, seed)}, numbered("member", n))
				if err != nil {
					t.Fatal(err)
				}
				stats, _ := s.Stats()
				sum += stats.RealisedFPRate
				squares += stats.RealisedFPRate * stats.RealisedFPRate
				model = stats.ExpectedFPRate
			}
			mean := sum / float64(seeds)
			spread := math.Sqrt(max(0, squares/float64(seeds)-mean*mean) / float64(seeds))
			// Large enough to measure is where two of a hundred are four
			// times the spread of the mean.
			t.Logf("n %d, k %d: mean %.4g, model %.4g, spread %.1g", n, k, mean, model, spread)
			if limit := max(0.02*model, 4*spread); math.Abs(mean-model) > limit {
				t.Errorf("n %d, k %d: mean realised rate %v, model %v", n, k, mean, model)
			}
		}
	}
}
