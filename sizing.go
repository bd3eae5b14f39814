package bloom

import (
	"fmt"
	"math"
	"math/big"
)

// The arithmetic of this file is part of the specification (SPEC.md, section
// 3): what a number of records and a rate resolve to is the same on every
// machine. So it has only + − × ÷ on float64, and every product that meets a
// sum goes through float64(), which keeps Go from fusing the two.

const (
	defaultRate = 0.01
	mostSized   = 1 << 40 // records

	mostBinomial = 1 << 16 // records whose numbers in a block have binomial weights
	ln2          = 0x1.62e42fefa39efp-1
)

// checkRate refuses what is no rate: only normal numbers between 0 and 1
// are, as arithmetic on subnormal ones loses its precision.
func checkRate(p float64) error {
	if !(p >= 0x1p-1022 && p < 1) {
		return fmt.Errorf("%w: false-positive rate %v; it is below 1, and 2.2e-308 at least (0.01 is one per cent)", ErrConfig, p)
	}
	return nil
}

// Resolve returns c with the Bits and Hashes that a snapshot of n distinct
// records would get: what is given stays, what is zero is chosen (SPEC.md,
// section 3). With n = 0 it tells whether a Config is good at all.
//
// For the v2 protocols Bits is the least for which some k keeps the block
// model (see [BlockedFPRate]) at or below FPRate, and Hashes is the k of the
// least modelled rate. As the least is one block of 512 bits, small
// sets get a far lower rate than was asked. For the other protocols the
// classic formulas decide, within the protocol's limits.
//
// Errors: ErrConfig (and ErrKey with it, if it is the key), also where the
// rate would take more bits than the protocol has, or something is to be
// chosen for n above 2^40; ErrTooLarge for more records than the protocol
// admits.
func (c Config) Resolve(n uint64) (Config, error) {
	if err := c.check(); err != nil {
		return Config{}, err
	}
	p := &protocols[c.Protocol]
	if n > p.mostRecords {
		return Config{}, fmt.Errorf("%w: %d records; %s takes at most %d", ErrTooLarge, n, p.name, p.mostRecords)
	}
	if c.Bits != 0 && c.Hashes != 0 {
		return c, nil
	}
	if n > mostSized {
		return Config{}, fmt.Errorf("%w: sizing for %d records; at most %d can be sized for", ErrConfig, n, uint64(mostSized))
	}
	rate := c.FPRate
	if rate == 0 {
		rate = defaultRate
	}
	size := p.sizeClassic
	if p.derive == deriveBlock {
		size = p.sizeBlocked
	}
	m, k, ok := size(n, rate, c.Bits, c.Hashes)
	if !ok {
		return Config{}, fmt.Errorf("%w: a false-positive rate of %v for %d records is out of reach of %s, which takes at most %d bits",
			ErrConfig, rate, n, p.name, p.mostBits)
	}
	c.Bits, c.Hashes = m, k
	return c, nil
}

// sizeClassic chooses what of m and k is zero by the classic formulas.
func (p *protocol) sizeClassic(n uint64, rate float64, m uint64, k int) (uint64, int, bool) {
	if m != 0 {
		return m, min(classicHashes(m, n), p.mostHashes), true
	}
	if k != 0 {
		m, ok := p.bitsForHashes(n, rate, k)
		return m, k, ok
	}
	if n == 0 {
		return p.leastBits, 1, true
	}
	if best := math.Floor(-ln(rate)/ln2 + 0.5); best > float64(p.mostHashes) {
		// With fewer hashes than the formula assumes, it takes more bits. The
		// rate alone decides, so that more records never take fewer.
		m, ok := p.bitsForHashes(n, rate, p.mostHashes)
		return m, p.mostHashes, ok
	}
	m, ok := p.fitBits(classicBits(n, rate))
	return m, min(classicHashes(m, n), p.mostHashes), ok
}

// fitBits raises a computed m to the protocol's least, and reports whether
// the protocol has so many.
func (p *protocol) fitBits(m float64) (uint64, bool) {
	if !(m < 0x1p64) || uint64(m) > p.mostBits {
		return 0, false
	}
	return max(uint64(m), p.leastBits), true
}

// bitsForHashes solves (1 − e^(−kn/m))^k = rate for m.
func (p *protocol) bitsForHashes(n uint64, rate float64, k int) (uint64, bool) {
	root := exp(ln(rate) / float64(k))
	if n == 0 || root >= 1 {
		return p.leastBits, true
	}
	y := -2 * artanh(root/(2-root)) // ln(1 − root), without cancellation
	if root > 0.5 {
		y = ln(1 - root)
	}
	if y == 0 {
		return 0, false
	}
	return p.fitBits(math.Ceil(-(float64(k) * float64(n)) / y))
}

// classicBits is −n·ln p / (ln 2)², rounded up.
func classicBits(n uint64, rate float64) float64 {
	return math.Ceil(-float64(n) * ln(rate) / (ln2 * float64(ln2)))
}

// classicHashes is (m/n)·ln 2 to the nearest whole number, at least 1.
func classicHashes(m, n uint64) int {
	if n == 0 {
		return 1
	}
	k := math.Floor(float64(float64(m)/float64(n)*ln2) + 0.5)
	return int(min(max(k, 1), math.MaxInt32))
}

// sizeBlocked chooses what of m and k is zero by the block model.
func (p *protocol) sizeBlocked(n uint64, rate float64, m uint64, k int) (uint64, int, bool) {
	var model blockModel
	least, most := 1, p.mostHashes
	if k != 0 {
		least, most = k, k
	}
	reached := func(blocks uint64) bool {
		for k := most; k >= least; k-- {
			if model.rate(n, blocks, k) <= rate {
				return true
			}
		}
		return false
	}
	blocks := m / blockBits
	if blocks == 0 {
		low, high := uint64(1), p.mostBits/blockBits
		if n > mostBinomial {
			// Poisson weights can ask for less than binomial ones did: more
			// records must not.
			m, _, ok := p.sizeBlocked(mostBinomial, rate, 0, k)
			if !ok {
				return 0, 0, false
			}
			low = m / blockBits
		}
		if !reached(high) {
			return 0, 0, false
		}
		for low < high {
			if middle := low + (high-low)/2; reached(middle) {
				high = middle
			} else {
				low = middle + 1
			}
		}
		blocks = low
	}
	best, bestRate := least, model.rate(n, blocks, least)
	for k := least + 1; k <= most; k++ {
		if r := model.rate(n, blocks, k); r < bestRate {
			best, bestRate = k, r
		}
	}
	return blocks * blockBits, best, true
}

// A blockModel is the exact model of one 512-bit block, mixed over the number
// of items that a block gets (SPEC.md, section 3.2).
type blockModel struct {
	full [15]struct { // by k
		rates []float64   // of a block with j items
		set   [15]float64 // chance that r given bits are all set in the last of rates
		still bool        // set has stopped changing: all further rates are the last
		names [15]float64 // chance that a query names r distinct bits
	}
}

// block returns the rate of a block that holds j items of k hashes each.
func (b *blockModel) block(k int, j uint64) float64 {
	f := &b.full[k]
	if f.rates == nil {
		f.rates = []float64{0}
		f.set[0], f.names[0] = 1, 1
		for range k {
			for r := k; r >= 1; r-- {
				f.names[r] = float64(f.names[r]*(float64(r)/blockBits)) + float64(f.names[r-1]*(float64(blockBits+1-r)/blockBits))
			}
			f.names[0] = 0
		}
	}
	for j >= uint64(len(f.rates)) && !f.still {
		before := f.set
		// A throw hits one of r given bits, and leaves r-1 to the others, or
		// none of them.
		for range k {
			for r := k; r >= 1; r-- {
				f.set[r] = float64(f.set[r]*(float64(blockBits-r)/blockBits)) + float64(f.set[r-1]*(float64(r)/blockBits))
			}
		}
		rate := 0.0
		for r := 1; r <= k; r++ {
			rate += float64(f.names[r] * f.set[r])
		}
		f.rates = append(f.rates, rate)
		f.still = f.set == before
	}
	return f.rates[min(j, uint64(len(f.rates)-1))]
}

// rate returns the model's false-positive rate for n items in so many blocks.
func (b *blockModel) rate(n, blocks uint64, k int) float64 {
	switch {
	case n == 0:
		return 0
	case n/blocks > 1<<15: // every bit is set, to the last digit of a float64
		return 1
	case blocks == 1:
		return b.block(k, n)
	}
	// The weight of the commonest number of items is 1, the others follow from
	// neighbour to neighbour, binomial or, for many items, Poisson.
	const least = 0x1p-200
	items, others := float64(n), float64(blocks-1)
	mode, most := (n+1)/blocks, n
	up := func(w float64, j uint64) float64 { return w * float64(n-j) / (float64(j+1) * others) }
	down := func(w float64, j uint64) float64 { return w * (float64(j) * others) / float64(n-j+1) }
	if n > mostBinomial {
		mode = n / blocks
		up = func(w float64, j uint64) float64 { return w * items / (float64(j+1) * float64(blocks)) }
		down = func(w float64, j uint64) float64 { return w * (float64(j) * float64(blocks)) / items }
	}
	total, sum := 1.0, b.block(k, mode)
	for w, j := 1.0, mode; j < most; {
		w = up(w, j)
		if j++; w < least {
			break
		}
		total += w
		sum += float64(w * b.block(k, j))
	}
	for w, j := 1.0, mode; j > 0; {
		w = down(w, j)
		if j--; w < least {
			break
		}
		total += w
		sum += float64(w * b.block(k, j))
	}
	return sum / total
}

// checkShape refuses m and k that no filter has.
func checkShape(m uint64, k int) error {
	if m < 1 || k < 1 {
		return fmt.Errorf("%w: m = %d bits and k = %d hashes; both are at least 1", ErrConfig, m, k)
	}
	return nil
}

// ClassicBits returns −n·ln p / (ln 2)² rounded up, the bits that n records
// take for a false-positive rate p if k is the best one; for n = 0, 0. What
// [Config.Resolve] chooses for the v2 protocols is a little more: the price
// of keeping an item's bits in one block.
//
// A rate below 0x1p-1022 (2.2e-308) or not below 1 is ErrConfig, as is a result
// of 2^64 or more.
func ClassicBits(n uint64, rate float64) (uint64, error) {
	if err := checkRate(rate); err != nil {
		return 0, err
	}
	m := classicBits(n, rate)
	if !(m < 0x1p64) {
		return 0, fmt.Errorf("%w: %d records at a false-positive rate of %v take more than 2^64 bits", ErrConfig, n, rate)
	}
	return uint64(m), nil
}

// ClassicHashes returns (m/n)·ln 2 to the nearest whole number and at least
// 1 (and at most 2^31 − 1): the k of the least false-positive rate for n
// records in m bits. For n = 0 every k is as good, and it is 1. m = 0 is
// ErrConfig.
func ClassicHashes(m, n uint64) (int, error) {
	if err := checkShape(m, 1); err != nil {
		return 0, err
	}
	return classicHashes(m, n), nil
}

// ClassicFPRate returns (1 − (1 − 1/m)^(kn))^k, the false-positive rate of n
// records in m bits by k hashes if the k bits of a query were set
// independently of each other (Broder and Mitzenmacher, Network Applications
// of Bloom Filters, section 2.1). The truth of [ExactModel] is a little more.
// For n = 0 it is 0. The v2 protocols follow [BlockedFPRate] instead.
//
// m or k below 1 is ErrConfig.
func ClassicFPRate(m uint64, k int, n uint64) (float64, error) {
	if err := checkShape(m, k); err != nil || n == 0 {
		return 0, err
	}
	if m == 1 {
		return 1, nil
	}
	// −ln(1 − 1/m) = 2·artanh(1/(2m−1)), which does not cancel.
	perThrow := 2 * artanh(1/(2*float64(m)-1))
	return power(oneMinusExp(float64(k)*float64(n)*perThrow), k), nil
}

// ExponentialFPRate returns (1 − e^(−kn/m))^k, what [ClassicFPRate] comes to
// for large m. For n = 0 it is 0. m or k below 1 is ErrConfig.
func ExponentialFPRate(m uint64, k int, n uint64) (float64, error) {
	if err := checkShape(m, k); err != nil || n == 0 {
		return 0, err
	}
	return power(oneMinusExp(float64(k)*float64(n)/float64(m)), k), nil
}

// BlockedFPRate returns the false-positive rate that the v2 protocols have
// on average over filters of n records in m bits by k hashes: the exact model
// of a 512-bit block, mixed over the number of records a block gets (SPEC.md,
// section 3.2). For n = 0 it is 0.
//
// m and k outside the protocols' limits are ErrConfig.
func BlockedFPRate(m uint64, k int, n uint64) (float64, error) {
	p := &protocols[SHA256]
	if err := p.checkBits(m); err != nil {
		return 0, err
	}
	if err := p.checkHashes(k); err != nil {
		return 0, err
	}
	var model blockModel
	return model.rate(n, m/blockBits, k), nil
}

// expectedFPRate is the model that a protocol's filters follow.
func (p *protocol) expectedFPRate(m uint64, k int, n uint64) (rate float64) {
	if p.derive == deriveBlock {
		rate, _ = BlockedFPRate(m, k, n)
	} else {
		rate, _ = ClassicFPRate(m, k, n)
	}
	return rate
}

// ln is the natural logarithm of a normal x: the exponent's part, and the
// series of artanh for the rest, which is near 1.
func ln(x float64) float64 {
	f, e := math.Frexp(x)
	if f < 0x1.6a09e667f3bcdp-1 { // √½
		f, e = 2*f, e-1
	}
	return float64(float64(e)*ln2) + 2*artanh((f-1)/(f+1))
}

// artanh sums s + s³/3 + s⁵/5 + … to s²⁹, enough for |s| <= 1/3.
func artanh(s float64) float64 {
	z := s * s
	t := 1.0 / 29
	for d := 27.0; d >= 1; d -= 2 {
		t = float64(t*z) + 1/d
	}
	return s * t
}

// exp is e^x for x <= 0: a power of two, and the series for the rest.
func exp(x float64) float64 {
	if x < -700 {
		return 0
	}
	a := math.Floor(x/ln2 + 0.5)
	r := x - float64(a*ln2)
	t := 1.0
	for d := 20.0; d >= 1; d-- {
		t = 1 + float64(t*r/d)
	}
	return math.Ldexp(t, int(a))
}

// oneMinusExp is 1 − e^(−y) for y >= 0, without cancellation for small y.
func oneMinusExp(y float64) float64 {
	if y >= 0.5 {
		return 1 - exp(-y)
	}
	t := 1.0
	for d := 20.0; d >= 2; d-- {
		t = 1 - float64(t*y/d)
	}
	return y * t
}

// power is x^k by squaring.
func power(x float64, k int) float64 {
	result := 1.0
	for ; k > 0; k >>= 1 {
		if k&1 == 1 {
			result *= x
		}
		x *= x
	}
	return result
}

// A Model is the exact finite model of a Bloom filter with ideal hash
// functions: every placement of the k·n throws into m bits is as likely.
type Model struct {
	Ways   []*big.Int // Ways[b]: placements leaving b bits set, b = 0 … m; together m^(kn)
	FPRate *big.Rat   // the mean of (b/m)^k over all placements
}

// What ExactModel takes on: operations on 64-bit words, and values returned.
const (
	mostModelWork = 1_000_000_000
	mostModelBits = 1 << 20
)

// ExactModel computes the exact model of n records in m bits by k hashes. A
// throw leaves b set bits as they are with b of m placements, or adds one
// with the other m − b. It answers for (4, 2, 2): Ways 0, 4, 84, 144, 24 and
// 505/1024.
//
// m or k below 1 or n below 0 is ErrConfig. ErrTooLarge where m is above 2^20
// or where the kn·m steps times the 64-bit words of m^(kn) pass 10^9.
func ExactModel(m, k, n int) (Model, error) {
	if m < 1 || k < 1 || n < 0 {
		return Model{}, fmt.Errorf("%w: m = %d bits, k = %d hashes, n = %d records; at least 1, 1 and 0", ErrConfig, m, k, n)
	}
	if n == 0 && m <= mostModelBits {
		k = 1 // whatever it is, nothing is thrown and nothing hit
	}
	throws := float64(k) * float64(n)
	words := func(throws float64) float64 { return math.Floor(throws*math.Log2(float64(m))/64) + 1 }
	if m > mostModelBits || throws*float64(m)*words(throws) > mostModelWork {
		return Model{}, fmt.Errorf("%w: exact model of m = %d bits, k = %d hashes, n = %d records: more than %d bits, or %d steps times words",
			ErrTooLarge, m, k, n, mostModelBits, mostModelWork)
	}
	ways := make([]*big.Int, m+1)
	for b := range ways {
		ways[b] = new(big.Int)
	}
	ways[0].SetUint64(1)
	if n == 0 {
		return Model{ways, new(big.Rat)}, nil
	}
	var stay, factor big.Int
	for throw := 1; throw <= k*n; throw++ {
		for b := min(throw, m); b >= 1; b-- {
			stay.Mul(ways[b], factor.SetUint64(uint64(b)))
			ways[b].Mul(ways[b-1], factor.SetUint64(uint64(m-b+1)))
			ways[b].Add(ways[b], &stay)
		}
		ways[0].SetUint64(0)
	}
	hits, term := new(big.Int), new(big.Int)
	for b, w := range ways {
		if w.Sign() != 0 {
			term.Exp(big.NewInt(int64(b)), big.NewInt(int64(k)), nil)
			hits.Add(hits, term.Mul(term, w))
		}
	}
	all := new(big.Int).Exp(big.NewInt(int64(m)), big.NewInt(int64(k*n+k)), nil)
	return Model{ways, new(big.Rat).SetFrac(hits, all)}, nil
}
