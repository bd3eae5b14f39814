package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/b1cc2673/bloom"
)

// A scope says how much is measured.
type scope struct {
	sizes, counts []int // of records, in memory
	disk          []int // counts of 24-byte records on disk
	rounds        int
	queries       int
}

func table(w io.Writer, s scope) error {
	fmt.Fprintf(w, "%s\n\nMedians of %d rounds of %d queries; × is the time over that of %s in the same round.\n",
		environment(), s.rounds, s.queries, nameBits)
	for _, size := range s.sizes {
		for _, n := range s.counts {
			if err := inMemory(w, records{size, n}, s); err != nil {
				return err
			}
		}
	}
	for _, n := range s.disk {
		if err := onDisk(w, records{24, n}, s); err != nil {
			return err
		}
	}
	return nil
}

func inMemory(w io.Writer, r records, s scope) error {
	fmt.Fprintf(w, "\n### %d records of %d bytes, in memory\n\n", r.n, r.size)
	if err := inMemoryLookups(w, r, s); err != nil {
		return err
	}
	fmt.Fprintln(w)
	// Nothing of the lookups lives any more: each contender is alone.
	return builds(w, r, s)
}

func inMemoryLookups(w io.Writer, r records, s scope) error {
	progress("%d × %d: lookups", r.n, r.size)
	known := &exact{}
	bare := buildMap(r, known)
	known.full = true
	var lanes, maybes []lane
	for _, c := range contenders {
		l := bare
		if c.name != nameMap {
			l = c.build(r, known)
		}
		lanes = append(lanes, lane{c.name, l.single, false})
		if l.batch != nil {
			lanes = append(lanes, lane{c.name + ", batches of 256", l.batch, false})
		}
		if l.maybe != nil {
			maybes = append(maybes, lane{c.name, l.maybe, true})
		}
	}
	ask := newAsker(r, s.queries)
	if err := answers(w, ask, s.rounds, []mix{misses, hits, halves}, lanes, nameBits); err != nil {
		return err
	}
	fmt.Fprint(w, "\nMeasured false positives: ")
	q := ask.ask(misses)
	for i, l := range maybes {
		if i > 0 {
			fmt.Fprint(w, ", ")
		}
		fmt.Fprintf(w, "%s %.2f %%", l.name, 100*float64(l.run(q))/float64(q.len()))
	}
	fmt.Fprintln(w, ".")
	return nil
}

// answers measures all lanes under all mixes and prints a table of them,
// relative to the lane named base.
func answers(w io.Writer, ask *asker, rounds int, mixes []mix, lanes []lane, base string) error {
	var all []times
	fmt.Fprint(w, "| ns a lookup |")
	for _, m := range mixes {
		t, err := inTurn(ask, m, rounds, lanes)
		if err != nil {
			return err
		}
		all = append(all, t)
		fmt.Fprintf(w, " %s | × |", [...]string{"miss", "half and half", "hit"}[m])
	}
	fmt.Fprint(w, "\n| --- |")
	for range mixes {
		fmt.Fprint(w, " ---: | ---: |")
	}
	fmt.Fprintln(w)
	for _, l := range lanes {
		fmt.Fprintf(w, "| %s |", l.name)
		for _, t := range all {
			fmt.Fprintf(w, " %.0f | %.2f |", t.median(l.name), t.ratio(l.name, base))
		}
		fmt.Fprintln(w)
	}
	return nil
}

// builds prints what building costs and what it leaves.
func builds(w io.Writer, r records, s scope) error {
	progress("%d × %d: builds", r.n, r.size)
	rounds := min(s.rounds, 3) // a build is long enough to even out noise
	t := buildsInTurn(r, rounds, contenders)
	fmt.Fprintln(w, "| | build s | × | heap bytes a record | objects a record | GC ms |\n| --- | ---: | ---: | ---: | ---: | ---: |")
	for _, c := range contenders {
		kept, bytes, objects, gc := heap(func() lookups { return c.build(r, &exact{}) })
		runtime.KeepAlive(kept)
		fmt.Fprintf(w, "| %s | %.3f | %.2f | %.1f | %.4f | %.2f |\n", c.name, t.median(c.name), t.ratio(c.name, nameBits),
			float64(bytes)/float64(r.n), float64(objects)/float64(r.n), 1e3*gc)
	}

	folder, path, err := tempSnapshot(r)
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	runtime.GC()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	opened := times{}
	for range s.rounds {
		for name, o := range map[string]bloom.OpenOptions{"Open": {}, "Mapped": {Mapped: true}} {
			opened[name] = append(opened[name], seconds(func() {
				f, err := bloom.Open(path, o)
				must(err)
				must(f.Close())
			}))
		}
	}
	fmt.Fprintf(w, "\nThis library's file: %.2f bytes a record; `Open` takes %.3g ms, with `Mapped` %.3g ms.\n",
		float64(info.Size())/float64(r.n), 1e3*opened.median("Open"), 1e3*opened.median("Mapped"))
	return nil
}
