package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/b1cc2673/bloom"
)

// ratios prints what the library is held to and how it stands, for n records
// of 24 bytes.
func ratios(w io.Writer, n, rounds, count int) error {
	r := records{size: 24, n: n}
	progress("heap")
	s, bytes, objects, _ := heap(func() *bloom.Snapshot { return newSnapshot(r) })
	runtime.KeepAlive(s)
	s = nil

	progress("builds")
	builds := buildsInTurn(r, rounds, []contender{named(nameOurs), named(nameBits)})

	progress("lookups")
	known := &exact{}
	bare := buildMap(r, known)
	known.full = true
	s = newSnapshot(r)
	ours, bits, blocked := snapshotLookups(s), buildBits(r, known), buildBlocked(r, known)
	const test, maybe, lookup, batch = "Test", "MaybePresent", "Lookup", "LookupBatch"
	ask := newAsker(r, count)
	miss, err := inTurn(ask, misses, rounds, []lane{
		{test, bits.maybe, true}, {maybe, ours.maybe, true},
		{nameBits, bits.single, false}, {lookup, ours.single, false},
		{nameBlocked, blocked.single, false}, {batch, ours.batch, false},
	})
	if err != nil {
		return err
	}
	hit, err := inTurn(ask, hits, rounds, []lane{
		{nameBits, bits.single, false}, {lookup, ours.single, false},
		{nameMap, bare.single, false}, {batch, ours.batch, false},
	})
	if err != nil {
		return err
	}
	q := ask.ask(halves)
	allocations := mallocs(func() {
		ours.maybe(q)
		ours.single(q)
		ours.batch(q)
	})

	fmt.Fprintf(w, "%s\n\n24-byte records, n = %d, %d queries a round; medians of %d rounds.\n\n", environment(), n, count, rounds)
	fmt.Fprintln(w, "| | against | ours | theirs | ratio | at most | |\n| --- | --- | --- | --- | --- | --- | --- |")
	row := func(what, against, unit string, t times, ours, theirs string, limit float64) {
		ratio := t.ratio(ours, theirs)
		fmt.Fprintf(w, "| %s | %s | %.3g %s | %.3g %s | %.2f | %.2f | %s |\n", what, against,
			t.median(ours), unit, t.median(theirs), unit, ratio, limit, verdict(ratio, limit))
	}
	row("`MaybePresent`, miss", "bits-and-blooms `Test`", "ns", miss, maybe, test, 0.95)
	row("`Lookup`, miss", nameBits, "ns", miss, lookup, nameBits, 0.80)
	row("`Lookup`, hit", nameBits, "ns", hit, lookup, nameBits, 0.70)
	row("`LookupBatch` of 256, miss", nameBits, "ns", miss, batch, nameBits, 0.40)
	row("`LookupBatch` of 256, miss", nameBlocked, "ns", miss, batch, nameBlocked, 0.80)
	row("`LookupBatch` of 256, hit", nameBits, "ns", hit, batch, nameBits, 0.16)
	row("`LookupBatch` of 256, hit", "bare map", "ns", hit, batch, nameMap, 0.50)
	row("`New`", "filling "+nameBits, "s", builds, nameOurs, nameBits, 0.40)
	over := float64(bytes)/float64(n) - float64(r.size)
	fmt.Fprintf(w, "| live heap after `New`, over the raw record bytes | | %.2f bytes a record | | | 6 | %s |\n", over, verdict(over, 6))
	fmt.Fprintf(w, "| heap objects after `New` | | %d | | | | |\n", objects)
	each := float64(allocations) / float64(3*count)
	fmt.Fprintf(w, "| allocations per lookup | | %.6f (%d in %d) | | | 0 | %s |\n", each, allocations, 3*count, verdict(each, 1e-5))
	return nil
}

func verdict(value, limit float64) string {
	if value <= limit {
		return "ok"
	}
	return "**over**"
}
