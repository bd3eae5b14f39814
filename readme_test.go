package bloom

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The Go code in the README is that of an Example, whose output the go tool
// checks; the comments that show output are the Example's Output.
func TestReadmeCode(t *testing.T) {
	readme, examples := readFile(t, "README.md"), readFile(t, "example_test.go")
	unindent := strings.NewReplacer("\t", "", "// Output:\n", "")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) == 0 {
		t.Fatal("README.md has no Go code")
	}
	for _, block := range blocks {
		if !strings.Contains(unindent.Replace(examples), unindent.Replace(block[1])) {
			t.Errorf("no Example has this code of README.md:\n%s", block[1])
		}
	}
}

// The figures in the README are those that the code gives.
func TestReadmeFigures(t *testing.T) {
	readme := strings.Join(strings.Fields(readFile(t, "README.md")), " ")
	const n = 100_000 * 512 // so that bits a record are exact
	for _, c := range []struct {
		bits uint64
		k    int
		text string
	}{{10, 6, "%.3g %% for 10 bits a record (k = 6)"}, {16, 9, "%.3g %% for 16 (k = 9)"}, {24, 12, "%.3g %% for 24 (k = 12)"}} {
		p, err := BlockedFPRate(c.bits*n, c.k, n)
		if want := fmt.Sprintf(c.text, 100*p); err != nil || !strings.Contains(readme, want) {
			t.Errorf("README.md does not say %q, %v", want, err)
		}
	}
	for _, c := range []struct {
		rate float64
		text string
	}{{0.01, "%.2g %% at a rate of 1 %%"}, {0.001, "%.2g %% at 0.1 %%"}, {0.0001, "%.2g %% at 0.01 %%"}, {1e-6, "%.2g %% at 1e-6"}} {
		sized, err := Config{FPRate: c.rate}.Resolve(n)
		classic, _ := ClassicBits(n, c.rate)
		if want := fmt.Sprintf(c.text, 100*(float64(sized.Bits)/float64(classic)-1)); err != nil || !strings.Contains(readme, want) {
			t.Errorf("README.md does not say %q, %v", want, err)
		}
	}
	s, err := New(Config{}, numbered("", 100_000))
	if err != nil {
		t.Fatal(err)
	}
	stats, _ := s.Stats()
	above := float64(stats.FilterBytes+stats.SetBytes)/100_000 - 24
	if want := fmt.Sprintf("%.2f bytes a record above", above); !strings.Contains(readme, want) || above > 6 {
		t.Errorf("README.md does not say %q", want)
	}
}

// The ratios in the README are those that bench recorded, and so are the
// figures that docs/peers.svg is drawn from.
func TestReadmeRatios(t *testing.T) {
	readme, results := readFile(t, "README.md"), readFile(t, "bench/RESULTS.md")
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (.+) \| (.+) \| (\d\.\d\d) \|$`).FindAllStringSubmatch(readme, -1) {
		rows++
		recorded := regexp.MustCompile("(?m)^" + regexp.QuoteMeta("| "+row[1]+" | "+row[2]+" | ") + `[^|]+ \| [^|]+ \| ` + regexp.QuoteMeta(row[3]) + ` \|`)
		if !recorded.MatchString(results) {
			t.Errorf("bench/RESULTS.md has no %q against %q of %s", row[1], row[2], row[3])
		}
	}
	if rows != 8 {
		t.Errorf("README.md has %d ratios, want 8", rows)
	}

	// Ranges, over the tables: rows by name, a miss's time and × and a hit's.
	least, most := map[string]float64{}, map[string]float64{}
	note := func(what string, x float64) {
		if l, ok := least[what]; !ok || x < l {
			least[what] = x
		}
		most[what] = max(most[what], x)
	}
	var size, where string
	ours := 0.0
	row := regexp.MustCompile(`^\| (.+?) \| (\d+) \| ([\d.]+) \| \d+ \| ([\d.]+) \|`)
	for line := range strings.Lines(results) {
		if m := regexp.MustCompile(`^### \d+ records of (\d+) bytes, (.*)\n`).FindStringSubmatch(line); m != nil {
			size, where = m[1], m[2]
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number := func(i int) float64 { x, _ := strconv.ParseFloat(m[i], 64); return x }
		switch name := m[1]; {
		case where == "on disk" && strings.HasPrefix(name, "this library"):
			note("disk miss", number(3))
			note("disk hit", number(4))
		case name == "this library":
			if ours = number(2); size == "200" {
				note("long miss", number(3))
			}
		case strings.Contains(name, "+ map") && name != "bits-and-blooms + map":
			note("xxhash", number(2)/ours)
		}
	}
	words := strings.Join(strings.Fields(readme), " ")
	for what, text := range map[string]string{
		"long miss": "a miss takes %.1f to %.1f times as long as with bits-and-blooms",
		"xxhash":    "answer misses in %.2f to %.2f of the time",
		"disk miss": "a miss takes %.2f to %.2f times what pebble",
		"disk hit":  "a hit %.2f to %.2f times",
	} {
		if want := fmt.Sprintf(text, least[what], most[what]); !strings.Contains(words, want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}
