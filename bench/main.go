// Bench compares package bloom with what people use today.
//
// Usage:
//
//	go run . ratios [-n 4000000] [-rounds 9]
//	go run . table [-quick] [-rounds 7]
//	go run . skiplist [-rounds 5]
//
// Ratios measures what the library is held to: ours over theirs, each with its
// limit. Table prints the wide comparison in Markdown, skiplist that of the
// skip list with google/btree. All measure all
// contenders in turn, in one process, round after round, and show medians: on
// a shared machine times drift, and their ratios much less.
//
// "X + map" asks filter X first and confirms a maybe by a
// map[string]struct{}, so that every contender gives the same exact answer,
// and that is checked. Filters are sized for one false positive in a hundred,
// but for the binary fuse filter, whose eight bits have one in 256. Maps are
// made with room for all records. At its largest, with ten million records of
// 200 bytes, table is estimated to take 10 GB of memory.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	// No collection but those asked for between timed sections, unless memory
	// would run out.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(14 << 30)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(args []string, w io.Writer) error {
	if len(args) == 0 {
		return errors.New("usage: bench ratios | table | skiplist [flags]")
	}
	flags := flag.NewFlagSet("bench "+args[0], flag.ExitOnError)
	var measure func() error
	switch args[0] {
	case "ratios":
		n := flags.Int("n", 4e6, "number of records")
		rounds := flags.Int("rounds", 9, "number of rounds")
		measure = func() error { return ratios(w, *n, *rounds, 1<<20) }
	case "table":
		quick := flags.Bool("quick", false, "fewer rounds and queries, at most a million records")
		rounds := flags.Int("rounds", 7, "number of rounds")
		measure = func() error {
			if *quick {
				return table(w, scope{sizes: []int{24, 200}, counts: []int{1e5, 1e6}, disk: []int{1e6}, rounds: 3, queries: 1 << 18})
			}
			return table(w, scope{sizes: []int{24, 200}, counts: []int{1e5, 1e6, 1e7}, disk: []int{1e6, 1e7}, rounds: *rounds, queries: 1 << 20})
		}
	case "skiplist":
		rounds := flags.Int("rounds", 5, "number of rounds")
		measure = func() error { return skiplists(w, []int{1 << 14, 1 << 20}, *rounds) }
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
	flags.Parse(args[1:])
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return measure()
}

// environment says on what the numbers were measured, in one line.
func environment() string {
	peers := []string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "github.com/bits-and-blooms/bloom/v3", "github.com/cespare/xxhash/v2",
				"github.com/FastFilter/xorfilter", "github.com/parquet-go/parquet-go",
				"github.com/cockroachdb/pebble/v2", "go.etcd.io/bbolt", "github.com/google/btree":
				peers = append(peers, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
			}
		}
	}
	return fmt.Sprintf("%s, %d cores; %s %s/%s; %s; %s.", processor(), runtime.NumCPU(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(peers, ", "), time.Now().Format(time.DateOnly))
}

// processor is the processor's name, where Linux tells it.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if name, value, _ := strings.Cut(in.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
