package bloom

import (
	"fmt"
	"math/big"
	"strings"
	"sync"
)

// This file is the executable specification of the positions: slow, obvious,
// and another road than production's. It calls nothing of production and
// nothing of crypto/… or x/crypto; .ci/run compiles it with config.go alone.
// Frames are written as hexadecimal text, hash functions work on plain slices
// of words, reductions go digit by digit.

// ReferencePositions is the reference for [Positions]: the same values, and an
// error where that has one, by a road that shares no code with it. It is many
// times slower.
func ReferencePositions(cfg Config, item []byte) ([]uint64, error) {
	if err := referenceCheck(cfg, item); err != nil {
		return nil, err
	}
	itemHex := fmt.Sprintf("%x", item)
	seedHex := fmt.Sprintf("%x", cfg.Seed)
	var positions []uint64
	switch cfg.Protocol {
	case SHA256, BLAKE2b:
		frame := "626c6f6f6d32" + fmt.Sprintf("%02x", len(cfg.Seed)) + seedHex +
			fmt.Sprintf("%08x", len(item)) + itemHex
		var digest string
		if cfg.Protocol == SHA256 {
			digest = referenceSHA256(frame)
		} else {
			digest = referenceBLAKE2b(frame, 32, cfg.Key, "")
		}
		w0, w1, w2 := digest[0:16], digest[16:32], digest[32:48]
		// The block is the integer part of w0·B / 2^64.
		product := new(big.Int).Mul(referenceNumber(w0), new(big.Int).SetUint64(cfg.Bits/512))
		block := product.Rsh(product, 64).Uint64()
		// A pick is nine binary digits, counted from the right end of its word.
		digits := [2]string{fmt.Sprintf("%064b", referenceNumber(w1)), fmt.Sprintf("%064b", referenceNumber(w2))}
		for j := 0; j < cfg.Hashes; j++ {
			word, end := digits[j/7], 64-9*(j%7)
			pick := referenceRemainder(word[end-9:end], 2, 512)
			positions = append(positions, 512*block+pick)
		}
	case DocMembershipV1:
		for i := 0; i < cfg.Hashes; i++ {
			frame := "646f632d6d656d626572736869702d7631" + "00" + fmt.Sprintf("%04x%02x", cfg.Bits, cfg.Hashes) +
				fmt.Sprintf("%02x", len(cfg.Seed)) + seedHex + fmt.Sprintf("%02x", i) + fmt.Sprintf("%04x", len(item)) + itemHex
			positions = append(positions, referenceRemainder(referenceSHA256(frame), 16, cfg.Bits))
		}
	case ESBloomV1:
		for i := 0; i < cfg.Hashes; i++ {
			frame := fmt.Sprintf("%04x", i) + fmt.Sprintf("%016x", len(item)) + itemHex
			positions = append(positions, referenceRemainder(referenceBLAKE2b(frame, 8, nil, "esbloom-v1"), 16, cfg.Bits))
		}
	case KeyIndexV1:
		for i := 0; i < cfg.Hashes; i++ {
			digest := referenceBLAKE2b(itemHex+fmt.Sprintf("%02x", i), 8, nil, "")
			// Little-endian: the last byte is the highest.
			var reversed string
			for at := 0; at < len(digest); at += 2 {
				reversed = digest[at:at+2] + reversed
			}
			positions = append(positions, referenceRemainder(reversed, 16, cfg.Bits))
		}
	}
	return positions, nil
}

// referenceCheck refuses what is outside the protocol's limits.
func referenceCheck(cfg Config, item []byte) error {
	type limits struct {
		leastM, mostM  uint64
		mostK, mostS   int
		takesKey, text bool
		leastI, mostI  int64
	}
	var l limits
	switch cfg.Protocol {
	case SHA256:
		l = limits{512, 281474976710656, 14, 32, false, false, 0, 4294967295}
	case BLAKE2b:
		l = limits{512, 281474976710656, 14, 32, true, false, 0, 4294967295}
	case DocMembershipV1:
		l = limits{8, 512, 8, 16, false, false, 0, 64}
	case ESBloomV1:
		l = limits{1, 10000000, 16, 0, false, true, 0, 1000000}
	case KeyIndexV1:
		l = limits{1, 18446744073709551615, 256, 0, false, false, 8, 8}
	default:
		return fmt.Errorf("%w: unknown protocol %d", ErrConfig, uint8(cfg.Protocol))
	}
	blocked := cfg.Protocol == SHA256 || cfg.Protocol == BLAKE2b
	switch {
	case cfg.FPRate != 0 && !(cfg.FPRate >= 0x1p-1022 && cfg.FPRate < 1):
		return fmt.Errorf("%w: rate %v", ErrConfig, cfg.FPRate)
	case cfg.Bits < l.leastM || cfg.Bits > l.mostM || blocked && cfg.Bits%512 != 0:
		return fmt.Errorf("%w: m = %d bits", ErrConfig, cfg.Bits)
	case cfg.Hashes < 1 || cfg.Hashes > l.mostK:
		return fmt.Errorf("%w: k = %d hashes", ErrConfig, cfg.Hashes)
	case len(cfg.Seed) > l.mostS:
		return fmt.Errorf("%w: seed of %d bytes", ErrConfig, len(cfg.Seed))
	case cfg.Key != nil && (!l.takesKey || len(cfg.Key) < 16 || len(cfg.Key) > 64):
		return keyErrorf("key of %d bytes", len(cfg.Key))
	case int64(len(item)) < l.leastI || int64(len(item)) > l.mostI:
		return fmt.Errorf("%w: %d bytes", ErrItem, len(item))
	// Decoding replaces what is not UTF-8, so encoding again gives other bytes.
	case l.text && string([]rune(string(item))) != string(item):
		return fmt.Errorf("%w: not UTF-8", ErrItem)
	}
	return nil
}

// referenceNumber reads hexadecimal digits.
func referenceNumber(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 16)
	if !ok {
		panic("bloom: reference: not hexadecimal: " + digits)
	}
	return n
}

// referenceRemainder divides a number, written in digits of a base up to 16,
// by m as one does on paper, and returns what remains.
func referenceRemainder(digits string, base, m uint64) uint64 {
	modulus := new(big.Int).SetUint64(m)
	remainder := new(big.Int)
	for _, digit := range digits {
		remainder.Mul(remainder, new(big.Int).SetUint64(base))
		remainder.Add(remainder, big.NewInt(int64(strings.IndexRune("0123456789abcdef", digit))))
		remainder.Mod(remainder, modulus)
	}
	return remainder.Uint64()
}

// referenceBytes reads pairs of hexadecimal digits.
func referenceBytes(digits string) []byte {
	message := make([]byte, 0, len(digits)/2)
	for at := 0; at < len(digits); at += 2 {
		high := strings.IndexByte("0123456789abcdef", digits[at])
		low := strings.IndexByte("0123456789abcdef", digits[at+1])
		message = append(message, byte(16*high+low))
	}
	return message
}

// referencePrimes returns the first n prime numbers.
func referencePrimes(n int) []int64 {
	var primes []int64
	for candidate := int64(2); len(primes) < n; candidate++ {
		prime := true
		for _, p := range primes {
			prime = prime && candidate%p != 0
		}
		if prime {
			primes = append(primes, candidate)
		}
	}
	return primes
}

// referenceRoot returns the first 64 bits of the fractional part of the
// square (degree 2) or cube (degree 3) root of p. Both hash functions take
// their constants from there (FIPS 180-4, 4.2.2 and 5.3; RFC 7693, 2.6).
func referenceRoot(p int64, degree int) uint64 {
	// The greatest r with r^degree <= p·2^(64·degree), bit by bit.
	target := new(big.Int).Lsh(big.NewInt(p), uint(64*degree))
	root := new(big.Int)
	for bit := 70; bit >= 0; bit-- {
		root.SetBit(root, bit, 1)
		if new(big.Int).Exp(root, big.NewInt(int64(degree)), nil).Cmp(target) > 0 {
			root.SetBit(root, bit, 0)
		}
	}
	return root.And(root, new(big.Int).SetUint64(1<<64-1)).Uint64()
}

// Computed, not copied: a constant mistyped in the same way on both roads
// would agree with itself.
var (
	referenceSHA256Start = sync.OnceValue(func() []uint32 { return referenceSHA256Words(8, 2) })
	referenceSHA256Round = sync.OnceValue(func() []uint32 { return referenceSHA256Words(64, 3) })
	referenceBLAKE2bIV   = sync.OnceValue(referenceBLAKE2bWords)
)

func referenceSHA256Words(n, degree int) []uint32 {
	var words []uint32
	for _, p := range referencePrimes(n) {
		words = append(words, uint32(referenceRoot(p, degree)>>32))
	}
	return words
}

func referenceBLAKE2bWords() []uint64 {
	var words []uint64
	for _, p := range referencePrimes(8) {
		words = append(words, referenceRoot(p, 2))
	}
	return words
}

// referenceSHA256 is SHA-256 after FIPS 180-4, hexadecimal to hexadecimal.
func referenceSHA256(messageHex string) string {
	message := referenceBytes(messageHex)
	// 5.1.1: a one bit, zeros, the length in bits in 8 bytes, to a multiple of 64.
	padded := append(message[:len(message):len(message)], 0x80)
	for len(padded)%64 != 56 {
		padded = append(padded, 0)
	}
	for shift := 56; shift >= 0; shift -= 8 {
		padded = append(padded, byte(uint64(len(message))*8>>shift))
	}
	rotate := func(x uint32, n int) uint32 { return x>>n | x<<(32-n) }
	round := referenceSHA256Round()
	h := append([]uint32(nil), referenceSHA256Start()...)
	for at := 0; at < len(padded); at += 64 {
		// 6.2.2: the message schedule, then 64 rounds.
		w := make([]uint32, 64)
		for t := range w {
			if t < 16 {
				for _, b := range padded[at+4*t : at+4*t+4] {
					w[t] = w[t]<<8 | uint32(b)
				}
				continue
			}
			s0 := rotate(w[t-15], 7) ^ rotate(w[t-15], 18) ^ w[t-15]>>3
			s1 := rotate(w[t-2], 17) ^ rotate(w[t-2], 19) ^ w[t-2]>>10
			w[t] = s1 + w[t-7] + s0 + w[t-16]
		}
		a, b, c, d, e, f, g, hh := h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
		for t := range w {
			sum1 := rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
			t1 := hh + sum1 + (e&f ^ ^e&g) + round[t] + w[t]
			sum0 := rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
			t2 := sum0 + (a&b ^ a&c ^ b&c)
			hh, g, f, e, d, c, b, a = g, f, e, d+t1, c, b, a, t1+t2
		}
		for i, x := range []uint32{a, b, c, d, e, f, g, hh} {
			h[i] += x
		}
	}
	var out strings.Builder
	for _, word := range h {
		fmt.Fprintf(&out, "%08x", word)
	}
	return out.String()
}

// The permutations of RFC 7693, 2.7, a hexadecimal digit an index.
var referenceBLAKE2bSigma = []string{
	"0123456789abcdef",
	"ea489fd61c02b753",
	"b8c052fdae367194",
	"7931dcbe265a40f8",
	"905724afe1bc683d",
	"2c6a0b834d75fe19",
	"c51fed4a0763928b",
	"db7ec13950f4862a",
	"6fe9b308c2d714a5",
	"a2847615fb9e3cd0",
}

// referenceBLAKE2b is BLAKE2b after RFC 7693, hexadecimal to hexadecimal,
// with a digest of so many bytes, a key (nil: none) and a personalisation
// (BLAKE2 specification, 2.8: the last 16 bytes of the parameter block).
func referenceBLAKE2b(messageHex string, size int, key []byte, personal string) string {
	message := referenceBytes(messageHex)
	// 3.3: the key, padded to a block, comes before the message.
	if len(key) > 0 {
		block := make([]byte, 128)
		copy(block, key)
		message = append(block, message...)
	}
	parameters := make([]byte, 64)
	parameters[0], parameters[1], parameters[2], parameters[3] = byte(size), byte(len(key)), 1, 1
	copy(parameters[48:], personal)
	word := func(b []byte, i int) (w uint64) {
		for at := 7; at >= 0; at-- {
			w = w<<8 | uint64(b[8*i+at])
		}
		return w
	}
	iv := referenceBLAKE2bIV()
	h := make([]uint64, 8)
	for i := range h {
		h[i] = iv[i] ^ word(parameters, i)
	}
	for at := 0; at == 0 || at < len(message); at += 128 {
		end, final := at+128, false
		if end >= len(message) {
			end, final = len(message), true
		}
		block := make([]byte, 128)
		copy(block, message[at:end])
		// 3.2: sixteen words of state, twelve rounds of eight mixings.
		v := append(append([]uint64(nil), h...), iv...)
		v[12] ^= uint64(end) // messages of 2^64 bytes and more are not reached
		if final {
			v[14] = ^v[14]
		}
		for round := 0; round < 12; round++ {
			sigma := referenceBLAKE2bSigma[round%10]
			for i, lanes := range []string{"048c", "159d", "26ae", "37bf", "05af", "16bc", "278d", "349e"} {
				index := func(s string, i int) int { return strings.IndexByte("0123456789abcdef", s[i]) }
				x, y := word(block, index(sigma, 2*i)), word(block, index(sigma, 2*i+1))
				a, b, c, d := &v[index(lanes, 0)], &v[index(lanes, 1)], &v[index(lanes, 2)], &v[index(lanes, 3)]
				rotate := func(w uint64, n int) uint64 { return w>>n | w<<(64-n) }
				*a += *b + x
				*d = rotate(*d^*a, 32)
				*c += *d
				*b = rotate(*b^*c, 24)
				*a += *b + y
				*d = rotate(*d^*a, 16)
				*c += *d
				*b = rotate(*b^*c, 63)
			}
		}
		for i := range h {
			h[i] ^= v[i] ^ v[i+8]
		}
	}
	var out strings.Builder
	for i := 0; i < size; i++ {
		fmt.Fprintf(&out, "%02x", byte(h[i/8]>>(8*(i%8))))
	}
	return out.String()
}
