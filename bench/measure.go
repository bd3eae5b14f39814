package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// A lane is what is timed: it answers all queries and counts the members, or
// what may be members.
type lane struct {
	name  string
	run   func(queries) int
	maybe bool
}

// Times are nanoseconds a query, or seconds, by name, one for each round.
type times map[string][]float64

func (t times) median(name string) float64 { return median(t[name]) }

// ratio is the median of the rounds' ratios.
func (t times) ratio(ours, theirs string) float64 {
	ratios := make([]float64, len(t[ours]))
	for i := range ratios {
		ratios[i] = t[ours][i] / t[theirs][i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

// inTurn times all lanes once a round, after a first round that does not
// count. Every round has queries of its own, the same for all lanes, and
// starts with another lane.
func inTurn(a *asker, m mix, rounds int, lanes []lane) (times, error) {
	t := times{}
	for round := -1; round < rounds; round++ {
		q := a.ask(m)
		for i := range lanes {
			l := lanes[(round+1+i)%len(lanes)]
			runtime.GC()
			start := time.Now()
			found := l.run(q)
			ns := float64(time.Since(start)) / float64(q.len())
			if found != q.members && (!l.maybe || found < q.members) {
				return nil, fmt.Errorf("%s: found %d of %d members", l.name, found, q.members)
			}
			if round >= 0 {
				t[l.name] = append(t[l.name], ns)
			}
		}
	}
	return t, nil
}

// buildsInTurn times builds in seconds, each in memory fresh from the system.
func buildsInTurn(r records, rounds int, contenders []contender) times {
	t := times{}
	for round := range rounds {
		for i := range contenders {
			c := contenders[(round+i)%len(contenders)]
			debug.FreeOSMemory()
			start := time.Now()
			c.build(r, &exact{})
			t[c.name] = append(t[c.name], time.Since(start).Seconds())
		}
	}
	return t
}

// heap returns how many bytes and objects on the heap what build returns keeps
// alive, and how many seconds a collection takes while it does.
func heap[T any](build func() T) (kept T, bytes, objects int64, collection float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept = build()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	var gc []float64
	for range 3 {
		gc = append(gc, seconds(runtime.GC))
	}
	runtime.KeepAlive(kept)
	return kept, int64(after.HeapAlloc - before.HeapAlloc), int64(after.HeapObjects - before.HeapObjects), median(gc)
}

// mallocs counts the allocations of f.
func mallocs(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

func seconds(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

// progress tells who waits what is being measured.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "# "+format+"\n", args...) }
