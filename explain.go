package bloom

import (
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/b1cc2673/bloom/internal/mapping"
)

// An Explanation is one lookup, step by step, for people. Printed, it is a
// small table.
type Explanation struct {
	Protocol  Protocol
	Bits      uint64   // m
	Hashes    int      // k
	Keyed     bool     // the digests depend on a secret key
	Frames    [][]byte // what was hashed: one frame, or one for each position
	Digests   [][]byte // what came out, one for each frame
	Positions []uint64 // k, repeats kept
	Set       []bool   // whether the filter has the bit, one for each position
	Result    Result
	Ordinal   uint64 // the record's, if Result.Duplicate
	Reason    string
}

// Explain is a lookup that shows its work. What it decides is what [Snapshot.Lookup]
// decides. Errors: as for Lookup.
func (s *Snapshot) Explain(item []byte) (e Explanation, err error) {
	r, ordinal, err := s.find(item)
	if err != nil {
		return Explanation{}, err
	}
	f := s.filter
	if f.mapping != nil {
		defer runtime.KeepAlive(f.mapping)
		defer recoverFault(mapping.Guard(), &err)
	}
	e = Explanation{
		Protocol:  f.scheme.which,
		Bits:      f.m,
		Hashes:    f.k,
		Keyed:     f.scheme.keyed,
		Frames:    f.scheme.frames(item, f.k),
		Positions: f.scheme.positions(item, f.m, f.k),
		Result:    r,
		Ordinal:   ordinal,
	}
	words := make([][4]uint64, len(e.Frames))
	if f.scheme.block {
		words[0] = f.scheme.digest(item)
	} else {
		f.scheme.digests(item, 0, words)
	}
	for i := range words {
		d := Digest{words: words[i]}.Bytes()
		e.Digests = append(e.Digests, d[:f.scheme.hash.size()])
	}
	zeros := 0
	for _, p := range e.Positions {
		set := hasBit(f.bits, p)
		e.Set = append(e.Set, set)
		if !set {
			zeros++
		}
	}
	switch {
	case !r.MaybePresent:
		e.Reason = fmt.Sprintf("definitely absent: %d of %d positions are zero, and every record has all of its own set", zeros, f.k)
	case r.Duplicate:
		e.Reason = fmt.Sprintf("duplicate: all %d positions are set, and record %d is these very bytes", f.k, ordinal)
	default:
		e.Reason = fmt.Sprintf("false positive: all %d positions are set, by other records; none is these bytes", f.k)
	}
	return e, nil
}

// shorten keeps a line of the table readable when items are long.
func shorten(b []byte) string {
	const most = 40
	if len(b) <= most {
		return hex.EncodeToString(b)
	}
	return fmt.Sprintf("%x…%x (%d bytes)", b[:most/2], b[len(b)-8:], len(b))
}

// String returns the table.
func (e Explanation) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	keyed := ""
	if e.Keyed {
		keyed = ", keyed"
	}
	fmt.Fprintf(w, "protocol\t%v, m = %d, k = %d%s\n", e.Protocol, e.Bits, e.Hashes, keyed)
	for i := range min(len(e.Frames), len(e.Digests)) {
		name := ""
		if len(e.Frames) > 1 {
			name = fmt.Sprintf(" %d", i)
		}
		fmt.Fprintf(w, "frame%s\t%s\n", name, shorten(e.Frames[i]))
		fmt.Fprintf(w, "digest%s\t%x\n", name, e.Digests[i])
	}
	for i, p := range e.Positions[:min(len(e.Positions), len(e.Set))] {
		bit := 0
		if e.Set[i] {
			bit = 1
		}
		fmt.Fprintf(w, "position %d\t%d\tbit %d\n", i, p, bit)
	}
	fmt.Fprintf(w, "decision\t%s\n", e.Reason)
	w.Flush()
	return out.String()
}
