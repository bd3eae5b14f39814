package bloom

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// worked renders the example of one protocol as SPEC.md shows it.
func worked(t *testing.T, cfg Config, item []byte) string {
	t.Helper()
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "%-12s"+format+"\n", append([]any{name}, args...)...)
	}
	s := newScheme(cfg)
	line("protocol", "%v", cfg.Protocol)
	line("m, k", "%d, %d", cfg.Bits, cfg.Hashes)
	if len(cfg.Seed) > 0 {
		line("seed", "%x", cfg.Seed)
	}
	if cfg.Key != nil {
		line("key", "%x", cfg.Key)
	}
	line("item", "%x", item)
	frames, err := Frames(cfg, item)
	if err != nil {
		t.Fatal(err)
	}
	positions, err := ReferencePositions(cfg, item)
	if err != nil {
		t.Fatal(err)
	}
	if s.derive == deriveBlock {
		d, err := DigestOf(cfg, item)
		if err != nil {
			t.Fatal(err)
		}
		line("frame", "%x", frames[0])
		line("digest", "%x", d.Bytes())
		for i, w := range d.words {
			line(fmt.Sprintf("w%d", i), "%016x = %d", w, w)
		}
		blocks := cfg.Bits / blockBits
		line("B", "%d", blocks)
		line("block", "%d", block(d.words, blocks))
		for j := range cfg.Hashes {
			line(fmt.Sprintf("pick %d", j), "%d", pick(d.words, j))
		}
	} else {
		words := allDigests(s, item, cfg.Hashes)
		for i, frame := range frames {
			d := Digest{words: words[i]}.Bytes()
			line(fmt.Sprintf("frame %d", i), "%x", frame)
			line(fmt.Sprintf("digest %d", i), "%x", d[:s.hash.size()])
		}
	}
	line("positions", "%s", strings.Trim(fmt.Sprint(positions), "[]"))
	return out.String()
}

// Every intermediate value that SPEC.md prints is what the code computes, and
// no example in it is left unchecked.
func TestSpecExamples(t *testing.T) {
	data, err := os.ReadFile("SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	spec := string(data)
	examples := []string{
		worked(t, Config{Bits: 1024, Hashes: 8, Seed: []byte("lab")}, []byte("abc")),
		worked(t, Config{Protocol: BLAKE2b, Bits: 1024, Hashes: 3, Key: []byte("0123456789abcdef")}, []byte("abc")),
		worked(t, Config{Protocol: DocMembershipV1, Bits: 16, Hashes: 3, Seed: []byte("lab")}, []byte("doc-41")),
		worked(t, Config{Protocol: ESBloomV1, Bits: 2048, Hashes: 4}, []byte("item:0")),
		worked(t, Config{Protocol: KeyIndexV1, Bits: 64, Hashes: 3}, littleEndian(1)),
	}
	for _, example := range examples {
		if !strings.Contains(spec, "```\n"+example+"```\n") {
			t.Errorf("SPEC.md lacks\n%s", example)
		}
	}
	if n := strings.Count(spec, "\nprotocol    "); n != len(examples) {
		t.Errorf("SPEC.md has %d worked examples, %d are checked", n, len(examples))
	}
	// The limits of section 2.
	for i := range protocols {
		p := &protocols[i]
		span := func(least, most uint64) string {
			switch {
			case least == most:
				return fmt.Sprintf("exactly %d", most)
			case most == math.MaxUint64:
				return fmt.Sprintf("%d to 2^64−1", least)
			case most == math.MaxUint32:
				return fmt.Sprintf("%d to 2^32−1", least)
			case most == 1_000_000 || most == 10_000_000:
				digits := fmt.Sprint(most)
				return fmt.Sprintf("%d–%s,%s,000", least, digits[:len(digits)-6], digits[len(digits)-6:len(digits)-3])
			}
			return fmt.Sprintf("%d–%d", least, most)
		}
		m, seed, key, item := span(p.leastBits, p.mostBits), "none", "none", span(p.leastItem, p.mostItem)
		if p.derive == deriveBlock {
			m = "multiples of 512 from 512 to 2^48"
			if p.leastBits != 512 || p.mostBits != 1<<48 {
				t.Error("m of the v2 protocols")
			}
		}
		if p.mostSeed > 0 {
			seed = fmt.Sprintf("0–%d", p.mostSeed)
		}
		if p.mostKey > 0 {
			key = fmt.Sprintf("none, or %d–%d", p.leastKey, p.mostKey)
		}
		if p.text {
			item += ", UTF-8"
		}
		row := fmt.Sprintf("| %d | `%s` | %s | 1–%d | %s | %s | %s |\n", p.number, p.name, m, p.mostHashes, seed, key, item)
		if !strings.Contains(spec, row) {
			t.Errorf("SPEC.md lacks the limits %s", row)
		}
	}
	// The sizes of section 3.3.
	rows := 0
	for _, text := range strings.Split(spec, "\n") {
		var n, m uint64
		var k int
		var rate float64
		if c, err := fmt.Sscanf(text, "| %d | %g | %d | %d |", &n, &rate, &m, &k); c != 4 || err != nil {
			continue
		}
		rows++
		if c, err := (Config{FPRate: rate}).Resolve(n); err != nil || c.Bits != m || c.Hashes != k {
			t.Errorf("SPEC.md sizes %d records at %g by m = %d, k = %d; it is %d, %d, %v", n, rate, m, k, c.Bits, c.Hashes, err)
		}
	}
	if rows != 6 {
		t.Errorf("SPEC.md has %d sizing rows, want 6", rows)
	}
}
