package bloom

import (
	"encoding/hex"
	"fmt"
	"log/slog"
)

// Stats describes a snapshot or a filter. It is a value: it prints as one
// line, logs as a group and encodes as JSON, and holds no secret.
type Stats struct {
	Protocol       Protocol `json:"protocol"`
	Keyed          bool     `json:"keyed"`            // built with a secret key
	Seed           string   `json:"seed"`             // the public label, in hexadecimal
	Records        uint64   `json:"records"`          // n, distinct
	Bits           uint64   `json:"bits"`             // m
	Hashes         int      `json:"hashes"`           // k
	Ones           uint64   `json:"ones"`             // bits set
	Fill           float64  `json:"fill"`             // Ones / Bits
	RealisedFPRate float64  `json:"realised_fp_rate"` // of this filter, for items chosen independently of it
	ExpectedFPRate float64  `json:"expected_fp_rate"` // by the model, for n records, m, k
	FilterBytes    uint64   `json:"filter_bytes"`
	SetBytes       uint64   `json:"set_bytes"` // records, heads and index; 0 for a filter alone
}

// Stats counts the filter's bits and computes its rates: the realised one is
// (ones/m)^k, for the v2 protocols the mean over blocks of (ones/512)^k; the
// expected one is [BlockedFPRate] for the v2 protocols, which is the mean over
// all filters of that shape, and [ClassicFPRate] for the others, which is a
// little below it. It reads the whole filter. Errors: ErrClosed.
func (f *Filter) Stats() (Stats, error) {
	if err := f.open(); err != nil {
		return Stats{}, err
	}
	ones, blocks, err := f.ones()
	if err != nil {
		return Stats{}, err
	}
	s := Stats{
		Protocol:       f.scheme.which,
		Keyed:          f.scheme.keyed,
		Seed:           hex.EncodeToString(f.scheme.seed),
		Records:        f.n,
		Bits:           f.m,
		Hashes:         f.k,
		Ones:           ones,
		Fill:           float64(ones) / float64(f.m),
		ExpectedFPRate: f.scheme.expectedFPRate(f.m, f.k, f.n),
		FilterBytes:    uint64(len(f.bits)),
	}
	if !f.scheme.block {
		s.RealisedFPRate = power(s.Fill, f.k)
		return s, nil
	}
	sum := 0.0
	for ones, count := range blocks {
		sum += float64(float64(count) * power(float64(ones)/blockBits, f.k))
	}
	s.RealisedFPRate = sum / float64(f.m/blockBits)
	return s, nil
}

// Stats is [Filter.Stats] with the size of the frozen set.
func (s *Snapshot) Stats() (Stats, error) {
	if err := s.open(); err != nil {
		return Stats{}, err
	}
	stats, err := s.filter.Stats()
	stats.SetBytes = uint64(len(s.set.index)) + s.set.size
	return stats, err
}

// String returns all of s in one line.
func (s Stats) String() string {
	return fmt.Sprintf("%v n=%d m=%d k=%d seed=%s keyed=%t ones=%d fill=%.4f fp(realised)=%.4g fp(expected)=%.4g filter=%dB set=%dB",
		s.Protocol, s.Records, s.Bits, s.Hashes, s.Seed, s.Keyed, s.Ones, s.Fill,
		s.RealisedFPRate, s.ExpectedFPRate, s.FilterBytes, s.SetBytes)
}

// LogValue implements [slog.LogValuer].
func (s Stats) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("protocol", s.Protocol.String()),
		slog.Bool("keyed", s.Keyed),
		slog.String("seed", s.Seed),
		slog.Uint64("records", s.Records),
		slog.Uint64("bits", s.Bits),
		slog.Int("hashes", s.Hashes),
		slog.Uint64("ones", s.Ones),
		slog.Float64("fill", s.Fill),
		slog.Float64("realised_fp_rate", s.RealisedFPRate),
		slog.Float64("expected_fp_rate", s.ExpectedFPRate),
		slog.Uint64("filter_bytes", s.FilterBytes),
		slog.Uint64("set_bytes", s.SetBytes))
}

// A filter and a snapshot print as their shape, without a look at the bits
// and without what the key left in memory.

func (f *Filter) describe(kind string) string {
	if f.open() != nil {
		return "bloom." + kind + "(not open)"
	}
	return fmt.Sprintf("bloom.%s(%s n=%d m=%d k=%d)", kind, f.scheme.name, f.n, f.m, f.k)
}

// String names the protocol, n, m and k.
func (f *Filter) String() string { return f.describe("Filter") }

// Format prints String's text under every verb.
func (f Filter) Format(w fmt.State, verb rune) { fmt.Fprint(w, f.String()) }

// LogValue implements [slog.LogValuer].
func (f *Filter) LogValue() slog.Value { return slog.StringValue(f.String()) }

// String names the protocol, n, m and k.
func (s *Snapshot) String() string {
	if s == nil {
		return (*Filter)(nil).describe("Snapshot")
	}
	return s.filter.describe("Snapshot")
}

// Format prints String's text under every verb.
func (s Snapshot) Format(w fmt.State, verb rune) { fmt.Fprint(w, s.String()) }

// LogValue implements [slog.LogValuer].
func (s *Snapshot) LogValue() slog.Value { return slog.StringValue(s.String()) }
