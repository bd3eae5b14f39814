// Generate makes the pictures of the README. Run it in this folder by
//
//	go generate
//
// lookup.svg is a lookup that takes place here; rates.svg has rates that are
// measured here. peers.svg shows what was measured elsewhere: the tables of
// bench/RESULTS.md, as "go run . table" of that folder prints them.
package main

//go:generate go run generate.go

import (
	"encoding/binary"
	"errors"
	"fmt"
	"html"
	"log"
	"math"
	"math/bits"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/b1cc2673/bloom"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("generate: ")
	for _, p := range pictures {
		text, err := p.draw()
		if err == nil {
			err = os.WriteFile(p.name, []byte(text), 0o644)
		}
		if err != nil {
			log.Fatalf("%s: %v", p.name, err)
		}
	}
}

var pictures = []struct {
	name string
	draw func() (string, error)
}{{"lookup.svg", lookup}, {"rates.svg", rates}, {"peers.svg", peers}}

const width = 760

const style = `<style>
svg { --ink: #1f2328; --dim: #59636e; --line: #afb8c1; --cell: #d0d7de; --ours: #0969da; --other: #bc4c00; --yes: #1a7f37 }
@media (prefers-color-scheme: dark) {
svg { --ink: #f0f6fc; --dim: #9da7b1; --line: #59636e; --cell: #3d444d; --ours: #58a6ff; --other: #f0883e; --yes: #3fb950 }
}
text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.dim { font-size: 12px; fill: var(--dim) }
.small { font-size: 11px }
.bold { font-weight: 600 }
.middle { text-anchor: middle }
.end { text-anchor: end }
.box { fill: none; stroke: var(--line) }
.grid { fill: none; stroke: var(--cell) }
.wire { fill: none; stroke: var(--dim); stroke-width: 1.3 }
.tip { fill: var(--dim) }
.bar { fill: var(--line) }
.ours { fill: var(--ours) }
.other { fill: var(--other) }
.chosen { fill: var(--ours); fill-opacity: .2; stroke: var(--ours) }
.beam { fill: var(--ours); fill-opacity: .1 }
.final { fill: none; stroke: var(--yes); stroke-width: 1.6 }
.curve { fill: none; stroke-width: 1.8 }
.curve.ours { fill: none; stroke: var(--ours) }
.curve.other { fill: none; stroke: var(--other); stroke-dasharray: 6 3 }
</style>
`

// A picture is the inside of an SVG file. Classes are those of style.
type picture struct{ strings.Builder }

func (p *picture) file(height float64, title string) string {
	title = html.EscapeString(title)
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %s\" width=\"%[1]d\" height=\"%[2]s\" role=\"img\" aria-label=\"%[3]s\">\n<title>%[3]s</title>\n",
		width, number(height), title) + style + p.String() + "</svg>\n"
}

// number has at most one digit behind the point.
func number(x float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
}

func numbers(format string, x ...float64) string {
	text := make([]any, len(x))
	for i := range x {
		text[i] = number(x[i])
	}
	return fmt.Sprintf(format, text...)
}

func (p *picture) text(class string, x, y float64, text string) {
	attribute := ""
	if class != "" {
		attribute = " class=\"" + class + "\""
	}
	p.WriteString("<text" + attribute + numbers(` x="%s" y="%s">`, x, y) + html.EscapeString(text) + "</text>\n")
}

func (p *picture) rect(class string, x, y, w, h, round float64) {
	p.WriteString("<rect class=\"" + class + numbers(`" x="%s" y="%s" width="%s" height="%s"`, x, y, w, h))
	if round > 0 {
		p.WriteString(numbers(` rx="%s"`, round))
	}
	p.WriteString("/>\n")
}

// cell is a rectangle with text in its middle.
func (p *picture) cell(class string, x, y, w, h float64, size, text string) {
	p.rect(class, x, y, w, h, 0)
	p.text(size+"middle", x+w/2, y+h/2+4.5, text)
}

// pill is how something ends.
func (p *picture) pill(class string, x, y, w float64, text string) {
	p.rect(class, x, y, w, 28, 14)
	p.text("bold middle", x+w/2, y+18.5, text)
}

func (p *picture) path(class, d string) {
	fmt.Fprintf(p, "<path class=\"%s\" d=\"%s\"/>\n", class, d)
}

// arrow goes through points x, y, x, y … and points along its last piece,
// which is level or upright.
func (p *picture) arrow(xy ...float64) {
	x, y := xy[len(xy)-2], xy[len(xy)-1]
	dx, dy := x-xy[len(xy)-4], y-xy[len(xy)-3]
	length := math.Hypot(dx, dy)
	dx, dy = dx/length, dy/length
	p.path("tip", numbers("M%s %sL%s %sL%s %sz", x, y, x-7*dx-4*dy, y-7*dy-4*dx, x-7*dx+4*dy, y-7*dy+4*dx))
	xy[len(xy)-2], xy[len(xy)-1] = x-6*dx, y-6*dy
	p.path("wire", polyline(xy))
}

func polyline(xy []float64) string {
	var d strings.Builder
	for i := 0; i < len(xy); i += 2 {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		d.WriteString(letter + numbers("%s %s", xy[i], xy[i+1]))
	}
	return d.String()
}

// lookup draws the lookup of one record among 301.
func lookup() (string, error) {
	const item = "minutes"
	records := []string{item}
	for i := range 300 {
		records = append(records, [...]string{"invoice", "letter", "report", "memo"}[i%4]+fmt.Sprintf(" %d", i+1))
	}
	s, err := bloom.New(bloom.Config{}, slices.Values(records))
	if err != nil {
		return "", err
	}
	e, err := s.Explain([]byte(item))
	if err != nil {
		return "", err
	}
	if !e.Result.Duplicate {
		return "", fmt.Errorf("%q is not found", item)
	}
	frame, digest := e.Frames[0], e.Digests[0]
	buckets := uint64(len(records)+7) / 8
	bucketOf := func(digest []byte) uint64 {
		high, _ := bits.Mul64(binary.BigEndian.Uint64(digest), buckets)
		return high
	}

	var p picture
	// The digest.
	p.text("dim", 20, 18, "item")
	p.cell("box", 20, 24, 90, 26, "", item)
	p.arrow(110, 37, 150, 37)
	p.text("dim", 150, 18, "frame: nothing else gives these bytes")
	x := 150.0
	for _, c := range []struct {
		w    float64
		text string
		of   string
	}{
		{72, string(frame[:6]), "domain"},
		{80, fmt.Sprintf("%x", frame[6:7]), "seed length"},
		{86, fmt.Sprintf("%x", frame[7:11]), "item length"},
		{72, string(frame[11:]), "item"},
	} {
		p.cell("box", x, 24, c.w, 26, "", c.text)
		p.text("dim small middle", x+c.w/2, 64, c.of)
		x += c.w
	}
	p.arrow(x, 37, 500, 37)
	p.rect("box", 500, 24, 120, 26, 13)
	p.text("middle", 560, 41.5, "SHA-256, once")
	p.arrow(560, 50, 560, 98)
	for i, use := range []string{"w0: line and bucket", "w1: bits", "w2: more bits if k > 7", "w3: tag"} {
		x := 20 + 180*float64(i)
		p.text("dim middle", x+90, 91, use)
		p.cell("box", x, 98, 180, 26, "", fmt.Sprintf("%x", digest[8*i:8*i+8]))
	}

	// The filter.
	const top, left, size = 172, 230, 7.5
	block := e.Positions[0] / 512
	p.arrow(114, 124, 114, top-4)
	lines := e.Bits / 512
	for i := range lines {
		y := top + 13*float64(i)
		if i == block {
			p.rect("chosen", 44, y, 140, 9, 0)
			p.path("beam", numbers("M184 %sL%s %sV%sL184 %sz", y, left, top, top+8*size, y+9))
		} else {
			p.rect("box", 44, y, 140, 9, 0)
		}
	}
	p.text("dim", 44, top+13*float64(lines)+13, fmt.Sprintf("filter: %d lines", lines))
	p.arrow(290, 124, 290, top-4)
	grid := new(strings.Builder)
	for i := range 9 {
		grid.WriteString(numbers("M%s %sh%s", left, top+size*float64(i), 64*size))
	}
	for i := range 65 {
		grid.WriteString(numbers("M%s %sv%s", left+size*float64(i), top, 8*size))
	}
	line := s.PackedBits()[64*block : 64*block+64]
	set := new(strings.Builder)
	for bit := range 512 {
		if line[bit/8]>>(bit%8)&1 == 1 {
			fmt.Fprintf(set, "M%d %dh1v1h-1z", bit%64, bit/64)
		}
	}
	fmt.Fprintf(&p, "<g transform=\"translate(%d %d) scale(%v)\">\n", left, top, size)
	p.path("bar", set.String())
	p.WriteString("</g>\n")
	p.path("grid", grid.String())
	for _, position := range e.Positions {
		bit := position % 512
		p.rect("ours", left+size*float64(bit%64)-1, top+size*float64(bit/64)-1, size+2, size+2, 2)
	}
	p.text("dim", left, top+78, fmt.Sprintf("a line of 512 bits, one cache line: the item names k = %d of them", e.Hashes))

	// What it says.
	p.arrow(280, 258, 280, 292)
	p.text("dim", 290, 278, "all are set")
	p.pill("box", 230, 292, 100, "maybe")
	p.arrow(520, 258, 520, 292)
	p.text("dim", 530, 278, "one is clear")
	p.pill("final", 430, 292, 180, "no: certainly new")

	// The frozen set.
	p.arrow(230, 306, 114, 306, 114, 360)
	p.arrow(28, 124, 28, 373, 44, 373)
	bucket := bucketOf(digest)
	for i := range 7 {
		class := "box"
		if i == 3 {
			class = "chosen"
		}
		p.rect(class, 44+20*float64(i), 360, 20, 26, 0)
	}
	p.text("dim", 44, 404, fmt.Sprintf("index: %d + 1 offsets", buckets))
	p.arrow(184, 373, 230, 373)
	type entry struct {
		record string
		digest []byte
	}
	var entries []entry
	for record, err := range s.Records() {
		if err != nil {
			return "", err
		}
		d, err := s.Digest(record)
		if err != nil {
			return "", err
		}
		if b := d.Bytes(); bucketOf(b[:]) == bucket {
			entries = append(entries, entry{string(record), b[:]})
		}
	}
	chosen := slices.IndexFunc(entries, func(e entry) bool { return e.record == item })
	class := func(i int) string {
		if i == chosen {
			return "chosen"
		}
		return "box"
	}
	count := float64(len(entries))
	const whole = 64 * size
	const checks = 92
	tag := (whole - 2*checks) / (2 * count)
	p.cell("box", left, 360, checks, 26, "small ", "count, check")
	p.cell("box", left+whole-checks, 360, checks, 26, "small ", "check of head")
	letters := 0
	for i, e := range entries {
		x := left + checks + tag*float64(i)
		p.cell(class(i), x, 360, tag, 26, "small ", fmt.Sprintf("%x", e.digest[31:]))
		p.cell(class(i), x+tag*count, 360, tag, 26, "small ", fmt.Sprint(len(e.record)))
		letters += len(e.record)
	}
	p.text("dim small middle", left+checks+tag*count/2, 400, "tags")
	p.text("dim small middle", left+checks+tag*count*3/2, 400, "lengths")
	x = left
	for i, e := range entries {
		w := whole * float64(len(e.record)) / float64(letters)
		p.cell(class(i), x, 408, w, 26, "small ", e.record)
		x += w
	}
	at := left + checks + tag*(float64(chosen)+0.5)
	p.arrow(736, 124, 736, 340, at, 340, at, 360)
	p.text("dim", left, 452, "one bucket: what has the item's tag and length is compared with it, byte for byte")

	p.arrow(280, 460, 280, 494)
	p.text("dim", 290, 480, "equal")
	p.pill("final", 220, 494, 120, "duplicate")
	p.arrow(520, 460, 520, 494)
	p.text("dim", 530, 480, "none such, or other bytes")
	p.pill("final", 430, 494, 180, "new: a false positive")
	return p.file(526, "How a lookup flows: item, frame, one digest, one line of the filter; no is final, maybe goes on to a bucket of the exact set, where bytes are compared"), nil
}

// Of the article on key-index-v1, with 10,000 keys in 80,000 bits, measured;
// the root package's TestKeyIndexRates measures them again.
var classicRates = [...]float64{11.801, 4.921, 3.081, 2.410, 2.178, 2.165, 2.263, 2.517, 2.904, 3.367}

const (
	rateRecords = 102_400 // in whole blocks at 8 bits a record
	rateBits    = 8 * rateRecords
	rateQueries = 400_000
)

// measure returns the rate, in per cent, of one filter.
func measure(k int) (float64, error) {
	var item [8]byte
	numbered := func(i uint64) []byte {
		binary.LittleEndian.PutUint64(item[:], i)
		return item[:]
	}
	s, err := bloom.New(bloom.Config{Bits: rateBits, Hashes: k}, func(yield func([]byte) bool) {
		for i := range uint64(rateRecords) {
			if !yield(numbered(i)) {
				return
			}
		}
	})
	if err != nil {
		return 0, err
	}
	positive := 0
	for i := range uint64(rateQueries) {
		maybe, err := s.MaybePresent(numbered(rateRecords + i))
		if err != nil {
			return 0, err
		}
		if maybe {
			positive++
		}
	}
	return 100 * float64(positive) / rateQueries, nil
}

// rates draws false-positive rates over k, on a logarithmic scale.
func rates() (string, error) {
	const left, right, top, bottom, least, most = 64, 740, 80, 390, 2.0, 12.5
	atK := func(k float64) float64 { return left + (right-left)*(k-0.5)/10 }
	atRate := func(percent float64) float64 {
		return bottom - (bottom-top)*math.Log(percent/least)/math.Log(most/least)
	}
	var p picture
	for _, percent := range []float64{2, 3, 4, 5, 6, 8, 10, 12} {
		y := atRate(percent)
		p.path("grid", numbers("M%s %sH%s", left, y, right))
		p.text("dim end", left-8, y+4, fmt.Sprintf("%v %%", percent))
	}
	var classic, blocked []float64
	points := new(picture)
	for k := 1; k <= len(classicRates); k++ {
		x := atK(float64(k))
		p.text("dim middle", x, bottom+18, fmt.Sprint(k))
		formula, err := bloom.ExponentialFPRate(80_000, k, 10_000)
		if err != nil {
			return "", err
		}
		classic = append(classic, x, atRate(100*formula))
		model, err := bloom.BlockedFPRate(rateBits, k, rateRecords)
		if err != nil {
			return "", err
		}
		blocked = append(blocked, x, atRate(100*model))
		measured, err := measure(k)
		if err != nil {
			return "", err
		}
		points.square(x, atRate(classicRates[k-1]))
		points.dot(x, atRate(measured))
	}
	p.text("dim middle", (left+right)/2, bottom+38, "k, bits that an item names")
	p.path("curve other", polyline(classic))
	p.path("curve ours", polyline(blocked))
	p.WriteString(points.String())

	p.text("bold", 10, 18, "False-positive rate at 8 bits a record (log scale)")
	const models, measured = 10.0, 320.0
	p.path("curve ours", numbers("M%s 40h26", models))
	p.text("dim", models+34, 44, "sha256-v2 (one line an item): model")
	p.dot(measured+13, 40)
	p.text("dim", measured+26, 44, "measured: one filter of 102,400 records, 400,000 queries")
	p.path("curve other", numbers("M%s 60h26", models))
	p.text("dim", models+34, 64, "key-index-v1 (classic): formula")
	p.square(measured+13, 60)
	p.text("dim", measured+26, 64, "measured: three filters of 10,000 records, 200,000 queries")
	return p.file(438, "False-positive rate over k at 8 bits a record: block model of sha256-v2 and classic formula, with measured rates"), nil
}

func (p *picture) dot(x, y float64) {
	p.WriteString(numbers("<circle class=\"ours\" cx=\"%s\" cy=\"%s\" r=\"4\"/>\n", x, y))
}

func (p *picture) square(x, y float64) { p.rect("other", x-3.5, y-3.5, 7, 7, 0) }

// A row is one contender among n records: nanoseconds a miss and a hit.
type row struct {
	n    uint64
	name string
	ns   [2]float64
}

var (
	heading     = regexp.MustCompile(`^### (\d+) records of 24 bytes, in memory$`)
	contender   = regexp.MustCompile(`^\| ([^|]+) \| (\d+) \| [\d.]+ \| (\d+) \| [\d.]+ \| \d+ \| [\d.]+ \|$`)
	environment = regexp.MustCompile(`^(.*cores; go[^;]*);.*; (\d{4}-\d{2}-\d{2})\.$`)
)

// readResults finds the tables of confirmed lookups in what bench recorded,
// and the machine and day of them.
func readResults(text string) (rows []row, machine string, err error) {
	var n uint64
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := environment.FindStringSubmatch(line); m != nil {
			machine = m[1] + ", " + m[2]
		}
		if strings.HasPrefix(line, "#") {
			n = 0
			if m := heading.FindStringSubmatch(line); m != nil {
				if n, err = strconv.ParseUint(m[1], 10, 64); err != nil {
					return nil, "", err
				}
			}
		}
		if m := contender.FindStringSubmatch(line); m != nil && n > 0 {
			miss, _ := strconv.ParseFloat(m[2], 64) // digits
			hit, _ := strconv.ParseFloat(m[3], 64)
			rows = append(rows, row{n, m[1], [2]float64{miss, hit}})
		}
	}
	if len(rows) == 0 || machine == "" {
		return nil, "", errors.New("no table of lookups, or no machine")
	}
	return rows, machine, nil
}

// peers draws what bench recorded: a row for each contender, a column for
// misses and one for hits, and all that for each n.
func peers() (string, error) {
	text, err := os.ReadFile("../bench/RESULTS.md")
	if err != nil {
		return "", err
	}
	rows, machine, err := readResults(string(text))
	if err != nil {
		return "", err
	}
	most := 0.0
	for _, r := range rows {
		most = max(most, r.ns[0], r.ns[1])
	}

	const column, names, room = 224.0, 314.0, 170.0
	var p picture
	p.text("bold", 10, 20, "Nanoseconds a confirmed lookup (less is better)")
	y := 20.0
	for i, r := range rows {
		if i == 0 || r.n != rows[i-1].n {
			y += 30
			p.text("bold", 10, y, grouped(r.n)+" records of 24 bytes")
			for i, kind := range []string{"miss", "hit"} {
				p.text("dim", names+column*float64(i), y, kind)
			}
			y += 10
		}
		class := "bar"
		if strings.HasPrefix(r.name, "this library") {
			class = "ours"
		}
		p.text("", 10, y+15, r.name)
		for i, ns := range r.ns {
			x, w := names+column*float64(i), room*ns/most
			p.rect(class, x, y+2, w, 17, 2)
			p.text("", x+w+6, y+15, fmt.Sprintf("%.0f", ns))
		}
		y += 24
	}
	y += 30
	p.text("dim", 10, y-8, machine)
	return p.file(y, "Nanoseconds a confirmed lookup, against other libraries"), nil
}

// grouped writes n with a comma before every three digits.
func grouped(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
