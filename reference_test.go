package bloom

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/crypto/blake2b"
)

// The reference's own hash functions against those it must not use.
func TestReferenceHashes(t *testing.T) {
	message := make([]byte, 300)
	for i := range message {
		message[i] = byte(i * i)
	}
	for n := range message {
		text := hex.EncodeToString(message[:n])
		if got, want := referenceSHA256(text), fmt.Sprintf("%x", sha256.Sum256(message[:n])); got != want {
			t.Fatalf("SHA-256 of %d bytes: %s, want %s", n, got, want)
		}
		for _, key := range [][]byte{nil, message[:16], message[:64]} {
			h, err := blake2b.New256(key)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(message[:n])
			if got, want := referenceBLAKE2b(text, 32, key, ""), fmt.Sprintf("%x", h.Sum(nil)); got != want {
				t.Fatalf("BLAKE2b of %d bytes, key of %d: %s, want %s", n, len(key), got, want)
			}
		}
	}
	if got := referenceSHA256("616263"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("SHA-256 of abc: %s", got) // FIPS 180-4's own example
	}
	if got := referenceBLAKE2b("616263", 8, nil, "esbloom-v1"); got != "cb872d0fe75d278c" {
		t.Errorf("personalised BLAKE2b-64 of abc: %s", got)
	}
}

// randomCase draws a configuration and an item, mostly short ones, that the
// protocol admits, every limit among them.
func randomCase(rng *rand.Rand, p Protocol) (Config, []byte) {
	row := &protocols[p]
	edge := func(least, most uint64) uint64 {
		switch rng.IntN(8) {
		case 0:
			return least
		case 1:
			return most
		case 2:
			if most-least < 1<<63 {
				return least + rng.Uint64N(most-least+1)
			}
			return max(least, rng.Uint64())
		}
		return min(most, least+rng.Uint64N(1<<(1+rng.IntN(40))))
	}
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	cfg := Config{Protocol: p, Bits: edge(row.leastBits, row.mostBits), Hashes: int(edge(1, min(uint64(row.mostHashes), 40)))}
	if rng.IntN(50) == 0 {
		cfg.Hashes = row.mostHashes
	}
	if row.derive == deriveBlock {
		cfg.Bits -= cfg.Bits % blockBits
	}
	cfg.Seed = random(int(edge(0, uint64(row.mostSeed))))
	if row.mostKey > 0 && rng.IntN(2) == 0 {
		cfg.Key = random(int(edge(uint64(row.leastKey), uint64(row.mostKey))))
	}
	length := rng.IntN(70)
	if rng.IntN(10) == 0 {
		length = rng.IntN(700)
	}
	length = int(max(row.leastItem, min(row.mostItem, uint64(length))))
	item := random(length)
	if row.text {
		runes := []rune{}
		for range length {
			runes = append(runes, []rune("aé中😀\x00\u0301")[rng.IntN(6)])
		}
		item = []byte(string(runes))
	}
	return cfg, item
}

// Production agrees with the reference on random configurations and items:
// 2,000 of each protocol, or BLOOM_CASES.
func TestReferenceAgrees(t *testing.T) {
	cases := 2000
	if testing.Short() {
		cases = 200
	}
	if s := os.Getenv("BLOOM_CASES"); s != "" {
		var err error
		if cases, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for p := range Protocol(len(protocols)) {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(p), 7))
			for range cases {
				cfg, item := randomCase(rng, p)
				got, err := Positions(cfg, item)
				want, errReference := ReferencePositions(cfg, item)
				if err != nil || errReference != nil || !slices.Equal(got, want) {
					t.Fatalf("%v, item %x: %d, %v; reference %d, %v", cfg, item, got, err, want, errReference)
				}
			}
		})
	}
}

// FuzzPositions: any configuration and any item give the same positions, or
// the same kind of error, on both roads.
func FuzzPositions(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for p := range Protocol(len(protocols)) {
		for range 20 {
			cfg, item := randomCase(rng, p)
			f.Add(uint8(p), cfg.Bits, cfg.Hashes, cfg.FPRate, cfg.Seed, cfg.Key, cfg.Key != nil, item)
		}
	}
	// Two faults at once, of which one is the key's.
	f.Add(uint8(SHA256), uint64(512), 0, 0.0, []byte{}, []byte{}, true, []byte("0"))
	f.Add(uint8(BLAKE2b), uint64(0), 1, 2.0, []byte{}, []byte{}, true, []byte("0"))
	f.Fuzz(func(t *testing.T, p uint8, m uint64, k int, rate float64, seed, key []byte, keyed bool, item []byte) {
		cfg := Config{Protocol: Protocol(p), Bits: m, Hashes: k, FPRate: rate, Seed: seed}
		if keyed {
			cfg.Key = append([]byte{}, key...)
		}
		got, err := Positions(cfg, item)
		want, errReference := ReferencePositions(cfg, item)
		if !slices.Equal(got, want) || (err == nil) != (errReference == nil) {
			t.Fatalf("%v: %d, %v; reference %d, %v", cfg, got, err, want, errReference)
		}
		for _, kind := range []error{ErrConfig, ErrItem, ErrKey} {
			if errors.Is(err, kind) != errors.Is(errReference, kind) {
				t.Fatalf("%v: %v; reference %v", cfg, err, errReference)
			}
		}
		for _, p := range got {
			if p >= m {
				t.Fatalf("%v: position %d", cfg, p)
			}
		}
	})
}
