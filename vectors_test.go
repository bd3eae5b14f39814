package bloom

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The vectors were made by testdata/vectors.py, which shares no code with
// this package; its head says what each list holds.
type vectors struct {
	About  string
	Counts struct{ Positions, Snapshots, Shards, Rates, Sizing, Refused int }

	Positions []struct {
		vectorConfig
		Item      vectorItem
		Frames    []hexBytes
		Digests   []hexBytes
		Positions []decimal
	}
	Snapshots []struct {
		vectorConfig
		Records []hexBytes
		Packed  hexBytes
		Ones    uint64
		Queries []struct {
			Item                    hexBytes
			Maybe, Exact, Duplicate bool
		}
	}
	Shards []struct{ W3, Shards, Shard decimal }
	Rates  []struct {
		M    decimal
		K    int
		N    decimal
		Rate hexFloat
	}
	Sizing []struct {
		Protocol    Protocol
		N           decimal
		Rate        hexFloat
		HashesAsked int `json:"hashes_asked"`
		M           *decimal
		K           *int
		Refused     bool
	}
	Refused []struct {
		Why      string
		Protocol string
		M        decimal
		K        int
		Seed     hexBytes
		Key      *hexBytes
		Item     vectorItem
	}
}

type vectorConfig struct {
	Protocol Protocol
	M        decimal
	K        int
	Seed     hexBytes
	Key      *hexBytes
}

func (v vectorConfig) config() Config {
	c := Config{Protocol: v.Protocol, Bits: uint64(v.M), Hashes: v.K, Seed: v.Seed}
	if v.Key != nil {
		c.Key = *v.Key
	}
	return c
}

type vectorItem struct {
	Hex    *hexBytes
	Repeat hexBytes
	Count  int
}

func (v vectorItem) bytes() []byte {
	if v.Hex != nil {
		return *v.Hex
	}
	return bytes.Repeat(v.Repeat, v.Count)
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h = make([]byte, len(text)/2)
	_, err = hex.Decode(*h, text)
	return err
}

type decimal uint64

func (d *decimal) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	*d = decimal(n)
	return err
}

type hexFloat float64

func (f *hexFloat) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	*f = hexFloat(x)
	return err
}

// readVectors fails on an unknown field and on a list whose length is not
// the one counted by the program that made it, so that no list is silently
// empty or skipped.
func readVectors(t *testing.T) *vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	v := new(vectors)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		list      string
		got, want int
	}{
		{"positions", len(v.Positions), v.Counts.Positions},
		{"snapshots", len(v.Snapshots), v.Counts.Snapshots},
		{"shards", len(v.Shards), v.Counts.Shards},
		{"rates", len(v.Rates), v.Counts.Rates},
		{"sizing", len(v.Sizing), v.Counts.Sizing},
		{"refused", len(v.Refused), v.Counts.Refused},
	} {
		if c.got != c.want || c.got == 0 {
			t.Fatalf("vectors.json: %d %s, counted %d", c.got, c.list, c.want)
		}
	}
	return v
}

func TestVectorPositions(t *testing.T) {
	for i, v := range readVectors(t).Positions {
		item := v.Item.bytes()
		var want []uint64
		for _, p := range v.Positions {
			want = append(want, uint64(p))
		}
		got, err := Positions(v.config(), item)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d: %v: positions %d, %v, want %d", i, v.config(), got, err, want)
		}
		if len(item) <= 4096 || !testing.Short() { // the reference is slow
			got, err := ReferencePositions(v.config(), item)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d: %v: reference positions %d, %v, want %d", i, v.config(), got, err, want)
			}
		}
		frames, err := Frames(v.config(), item)
		if err != nil {
			t.Errorf("%d: %v: %v", i, v.config(), err)
		}
		if v.Frames != nil && !slices.EqualFunc(frames, v.Frames, func(a []byte, b hexBytes) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%d: %v: frames %x, want %x", i, v.config(), frames, v.Frames)
		}
		s := newScheme(v.config())
		words := allDigests(s, item, v.K)
		for j, want := range v.Digests {
			got := Digest{words: words[j]}.Bytes()
			if !bytes.Equal(got[:s.hash.size()], want) {
				t.Errorf("%d: %v: digest %d is %x, want %x", i, v.config(), j, got, want)
			}
		}
		if s.derive == deriveBlock {
			d, err := DigestOf(v.config(), item)
			if b := d.Bytes(); err != nil || !bytes.Equal(b[:], v.Digests[0]) {
				t.Errorf("%d: %v: DigestOf %x, %v, want %x", i, v.config(), b, err, v.Digests[0])
			}
		}
	}
}

// allDigests is what is hashed for an item: one digest, or k.
func allDigests(s *scheme, item []byte, k int) [][4]uint64 {
	if s.derive == deriveBlock {
		return [][4]uint64{s.digest(item)}
	}
	words := make([][4]uint64, k)
	s.digests(item, 0, words)
	return words
}

func TestVectorSnapshots(t *testing.T) {
	for i, v := range readVectors(t).Snapshots {
		s, err := New(v.config(), slices.Values(v.Records))
		if err != nil {
			t.Errorf("%d: %v: %v", i, v.config(), err)
			continue
		}
		if got := s.PackedBits(); !bytes.Equal(got, v.Packed) {
			t.Errorf("%d: %v: packed bits %x, want %x", i, v.config(), got, v.Packed)
		}
		if stats, err := s.Stats(); err != nil || stats.Ones != v.Ones {
			t.Errorf("%d: %v: %d bits set, %v, want %d", i, v.config(), stats.Ones, err, v.Ones)
		}
		for _, q := range v.Queries {
			got, err := s.Lookup(q.Item)
			if want := (Result{q.Maybe, q.Exact, q.Duplicate}); err != nil || got != want {
				t.Errorf("%d: %v: %x: %+v, %v, want %+v", i, v.config(), q.Item, got, err, want)
			}
		}
	}
}

func TestVectorShards(t *testing.T) {
	for _, v := range readVectors(t).Shards {
		got, err := Digest{words: [4]uint64{3: uint64(v.W3)}}.Shard(uint64(v.Shards))
		if err != nil || got != uint64(v.Shard) {
			t.Errorf("w3 = %d of %d shards: %d, %v, want %d", v.W3, v.Shards, got, err, v.Shard)
		}
	}
	for _, n := range []uint64{0, 1<<32 + 1} {
		if _, err := (Digest{}).Shard(n); !errors.Is(err, ErrConfig) {
			t.Errorf("%d shards are not refused", n)
		}
	}
}

// Rates and sizes are equal to the last bit on every machine.
func TestVectorRates(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Rates {
		got, err := BlockedFPRate(uint64(v.M), v.K, uint64(v.N))
		if err != nil || got != float64(v.Rate) {
			t.Errorf("m = %d, k = %d, n = %d: %x, %v, want %x", v.M, v.K, v.N, got, err, float64(v.Rate))
		}
	}
}

func TestVectorSizing(t *testing.T) {
	for _, v := range readVectors(t).Sizing {
		cfg := Config{Protocol: v.Protocol, FPRate: float64(v.Rate), Hashes: v.HashesAsked}
		got, err := cfg.Resolve(uint64(v.N))
		if v.Refused {
			if !errors.Is(err, ErrConfig) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v for %d records is not refused", cfg, v.N)
			}
			continue
		}
		if err != nil || got.Bits != uint64(*v.M) || got.Hashes != *v.K {
			t.Errorf("%v for %d records: m = %d, k = %d, %v, want %d, %d", cfg, v.N, got.Bits, got.Hashes, err, *v.M, *v.K)
		}
	}
}

func TestVectorRefused(t *testing.T) {
	for _, v := range readVectors(t).Refused {
		cfg := Config{Bits: uint64(v.M), Hashes: v.K, Seed: v.Seed}
		if v.Key != nil {
			cfg.Key = *v.Key
		}
		if err := cfg.Protocol.UnmarshalText([]byte(v.Protocol)); err != nil {
			if !strings.Contains(v.Why, "protocol") {
				t.Errorf("%s: %q: %v", v.Why, v.Protocol, err)
			}
			continue
		}
		for _, road := range []func(Config, []byte) ([]uint64, error){Positions, ReferencePositions} {
			p, err := road(cfg, v.Item.bytes())
			if !errors.Is(err, ErrConfig) && !errors.Is(err, ErrItem) || p != nil {
				t.Errorf("%s: %v: positions %d, %v", v.Why, cfg, p, err)
			}
		}
	}
}
