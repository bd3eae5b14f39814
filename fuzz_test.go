package bloom

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzSnapshot: a snapshot equals a Go map under any records and queries, for
// every protocol: what is not admitted is refused by New and by lookups alike,
// and everything that can be asked agrees with everything else. The input is
// cut into records and queries at its zero bytes.
func FuzzSnapshot(f *testing.F) {
	seeds := []string{"a\x00b\x00c", "", "\x00", "a\x00a\x00b", "12345678\x0087654321\x0012345678\x00", "\xff\x00é\x00e\u0301"}
	for p := range protocols {
		for _, s := range seeds {
			f.Add(uint8(p), uint64(0), 0, []byte(s), []byte(s+"\x00x"))
		}
	}
	f.Fuzz(func(t *testing.T, p uint8, m uint64, k int, records, queries []byte) {
		cfg := Config{Protocol: Protocol(p % uint8(len(protocols))), Bits: m % (1 << 24), Hashes: k}
		row := &protocols[cfg.Protocol]
		known := map[string]bool{}
		admitted := true
		var in [][]byte
		for _, r := range bytes.Split(records, []byte{0}) {
			known[string(r)] = true
			in = append(in, r)
			admitted = admitted && row.checkItem(r) == nil
		}
		s, err := New(cfg, slices.Values(in))
		if !admitted || uint64(len(in)) > row.mostRecords || cfg.check() != nil {
			if err == nil {
				t.Fatalf("%v of %q is not refused", cfg, in)
			}
			return
		}
		if err != nil {
			return // a rate out of reach
		}
		if s.Len() != uint64(len(known)) {
			t.Fatalf("%d records of %d", s.Len(), len(known))
		}
		back, err := Read(bytes.NewReader(asFile(t, s)), OpenOptions{})
		if err != nil || !bytes.Equal(asFile(t, back), asFile(t, s)) {
			t.Fatalf("read back: %v", err)
		}
		for _, q := range append(bytes.Split(queries, []byte{0}), in...) {
			r, err := s.Lookup(q)
			if (err == nil) != (row.checkItem(q) == nil) {
				t.Fatalf("%q: %v", q, err)
			}
			if err != nil {
				continue
			}
			if r.Duplicate != known[string(q)] || lookup(t, s, q) != r {
				t.Fatalf("%q: %+v, a record: %t", q, r, known[string(q)])
			}
		}
	})
}
