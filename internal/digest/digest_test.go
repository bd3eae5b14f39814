package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"
	"testing"

	"golang.org/x/crypto/blake2b"
)

// frameOf is the frame in one piece.
func frameOf(prefix []byte, lengthBytes int, item []byte) []byte {
	length := binary.BigEndian.AppendUint64(nil, uint64(len(item)))[8-lengthBytes:]
	return bytes.Join([][]byte{prefix, length, item}, nil)
}

func bigEndian(sum []byte) (w [4]uint64) {
	for i := range len(sum) / 8 {
		w[i] = binary.BigEndian.Uint64(sum[8*i:])
	}
	return w
}

// sumOf is a frame's digest of an item as a value.
func sumOf(f interface{ Sum(*[4]uint64, []byte) }, item []byte) (w [4]uint64) {
	f.Sum(&w, item)
	return w
}

func wantSHA256(frame []byte) [4]uint64 {
	sum := sha256.Sum256(frame)
	return bigEndian(sum[:])
}

// reference returns x/crypto's hash. That has a personalisation only in its
// marshalled state: words 6 and 7 of the chaining value, exclusive-or it.
func reference(t testing.TB, size int, key []byte, personal string) hash.Hash {
	h, err := blake2b.New(size, key)
	if err != nil {
		t.Fatal(err)
	}
	if personal == "" {
		return h
	}
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(personal) {
		state[len("b2b")+8*6+7-i%8+i/8*8] ^= personal[i]
	}
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	return h
}

func wantBLAKE2b(t testing.TB, size int, key []byte, personal string, message []byte) [4]uint64 {
	h := reference(t, size, key, personal)
	h.Write(message)
	return bigEndian(h.Sum(nil))
}

// noise returns n bytes that do not repeat, beginning at no round address.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func prefixV2(seed []byte) []byte {
	return append(append([]byte("bloom2"), byte(len(seed))), seed...)
}

// Every seed length, every item length up to 300 and the borders after it,
// several alignments; the assembly and its twin.
func TestSHA256(t *testing.T) {
	buf := noise(2*longest + 1000)
	lengths := []int{longest - 1, longest, longest + 1, 2 * longest}
	for n := range 301 {
		lengths = append(lengths, n)
	}
	for s := range 33 {
		prefix := prefixV2(buf[:s])
		f := NewSHA256Frame(prefix, 4)
		for _, n := range lengths {
			for _, at := range []int{0, 1, 4, 15, 29, 56, 63} {
				item := buf[at:][:n]
				want := wantSHA256(frameOf(prefix, 4, item))
				if got := sumOf(&f, item); got != want {
					t.Fatalf("seed of %d, item of %d bytes at %d: %x, want %x", s, n, at, got, want)
				}
				if got := f.sumGeneric(item); got != want {
					t.Fatalf("seed of %d, item of %d bytes at %d: twin has %x, want %x", s, n, at, got, want)
				}
			}
		}
	}
}

// Any prefix, any size of the length.
func TestTemplates(t *testing.T) {
	buf := noise(1000)
	start := NewBLAKE2b(32, nil, "")
	for size := range 9 {
		for p := range maxHead - size + 1 {
			f, g := NewSHA256Frame(buf[:p], size), NewBLAKE2bFrame(start, buf[:p], size)
			for _, n := range []int{0, 1, 5, 16, 40, 90, 120, 250, 257} {
				if size == 1 && n > 255 {
					continue
				}
				item := buf[n:][:n]
				frame := frameOf(buf[:p], size, item)
				if got, want := sumOf(&f, item), wantSHA256(frame); got != want {
					t.Fatalf("SHA-256: prefix %d, length %d, item %d: %x, want %x", p, size, n, got, want)
				}
				if got, want := sumOf(&g, item), wantBLAKE2b(t, 32, nil, "", frame); got != want {
					t.Fatalf("BLAKE2b: prefix %d, length %d, item %d: %x, want %x", p, size, n, got, want)
				}
			}
		}
	}
	for _, bad := range [][2]int{{maxHead, 1}, {maxHead + 1, 0}, {maxHead - 7, 8}, {0, 9}, {0, -1}, {3, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a prefix of %d bytes with a length of %d is taken", bad[0], bad[1])
				}
			}()
			NewSHA256Frame(buf[:bad[0]], bad[1])
		}()
	}
}

// Prefetching is advice: nothing is too much, too little or out of range.
func TestPrefetch(t *testing.T) {
	b := make([]byte, 200)
	for _, b := range [][]byte{nil, {}, b[:1], b} {
		for _, offsets := range [][]uint64{nil, {}, {0}, {0, 64, 199, 200, 1 << 40, 1<<64 - 1}} {
			for _, span := range []int{0, 64, 1 << 20} {
				Prefetch(b, offsets, span)
			}
		}
	}
	PrefetchBehind(&b[0])
	PrefetchBehind(&b[199])
}

// Every number of lanes, lengths mixed in every way that matters: equal,
// around a block's end, one block beside many, too long for the assembly.
func TestBatch(t *testing.T) {
	buf := noise(3 * longest)
	lengths := [][]int{
		{24}, {0}, {1, 2, 3, 11, 12, 23, 33, 34, 43}, {44, 45}, {100, 20}, {0, 300, 12, 44, 129, 64},
		{53, 54, 55, 56, 57, 117, 118}, {longest, 7, longest + 1}, {5, 9, 3 * longest},
		{108, 109, 172, 173, 110}, {128, 245, 246, 116, 117, 118},
	}
	key := buf[100:132]
	filter := make([]byte, 64*37)
	for _, s := range []int{0, 1, 21, 32} {
		prefix := prefixV2(buf[:s])
		f := NewSHA256Frame(prefix, 4)
		g := NewBLAKE2bFrame(NewBLAKE2b(32, nil, ""), prefix, 4)
		h := NewBLAKE2bFrame(NewBLAKE2b(32, key, ""), prefix, 4)
		for _, ls := range lengths {
			for _, count := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 32, 43} {
				items := make([][]byte, count)
				for i := range items {
					n := ls[i%len(ls)]
					items[i] = buf[min(i*17+1, len(buf)-n):][:n]
				}
				for _, filter := range [][]byte{nil, filter, filter[:64], filter[:5]} {
					var sha, plain, keyed [45][4]uint64
					f.SumBatch(items, sha[:], filter)
					g.SumBatch(items, plain[:], filter)
					h.SumBatch(items, keyed[:], filter)
					for i := range sha {
						var wantSHA, wantPlain, wantKeyed [4]uint64
						if i < count {
							frame := frameOf(prefix, 4, items[i])
							wantSHA = wantSHA256(frame)
							wantPlain = wantBLAKE2b(t, 32, nil, "", frame)
							wantKeyed = wantBLAKE2b(t, 32, key, "", frame)
						}
						if sha[i] != wantSHA {
							t.Fatalf("SHA-256, seed of %d, item %d of %d, lengths %v: %x, want %x", s, i, count, ls, sha[i], wantSHA)
						}
						if plain[i] != wantPlain {
							t.Fatalf("BLAKE2b, seed of %d, item %d of %d, lengths %v: %x, want %x", s, i, count, ls, plain[i], wantPlain)
						}
						if keyed[i] != wantKeyed {
							t.Fatalf("keyed BLAKE2b, seed of %d, item %d of %d, lengths %v: %x, want %x", s, i, count, ls, keyed[i], wantKeyed)
						}
					}
				}
			}
		}
	}
}

// More than goes to the assembly at a time; and a long item in each place of a
// group.
func TestLargeBatch(t *testing.T) {
	buf := noise(2 * longest)
	items := make([][]byte, 4*maxPairs+3)
	f := NewSHA256Frame(prefixV2(nil), 4)
	for odd := range 40 {
		for i := range items {
			items[i] = buf[i:][:i%45]
		}
		items[odd] = buf[odd:][:odd*odd*4]
		out := make([][4]uint64, len(items))
		f.SumBatch(items, out, nil)
		for i, item := range items {
			if want := f.sumGeneric(item); out[i] != want {
				t.Fatalf("odd item %d, item %d: %x, want %x", odd, i, out[i], want)
			}
		}
	}
}

// One item under many frames, as the protocols with a digest a position have
// them.
func TestEach(t *testing.T) {
	buf := noise(2 * longest)
	const personal = "esbloom-v1"
	start := NewBLAKE2b(8, nil, personal)
	for k := range 18 {
		for s := range 17 {
			prefix := append([]byte("doc-membership-v1\x00\x01\x02\x08"), byte(s))
			prefix = append(prefix, buf[:s]...)
			var sha []SHA256Frame
			var b2 []BLAKE2bFrame
			for i := range k {
				sha = append(sha, NewSHA256Frame(append(prefix, byte(i)), 2))
				b2 = append(b2, NewBLAKE2bFrame(start, []byte{0, byte(i)}, 8))
			}
			for _, n := range []int{0, 1, 12, 13, 14, 29, 30, 31, 63, 64, 117, 118, 119, 300, 2 * longest} {
				item := buf[len(buf)-n:]
				var out, out64 [20][4]uint64
				SHA256Each(sha, item, out[:])
				BLAKE2bEach(b2, item, out64[:])
				for i := range out {
					var want, want64 [4]uint64
					if i < k {
						want = wantSHA256(frameOf(append(prefix, byte(i)), 2, item))
						want64 = wantBLAKE2b(t, 8, nil, personal, frameOf([]byte{0, byte(i)}, 8, item))
					}
					if out[i] != want {
						t.Fatalf("SHA-256: frame %d of %d, seed %d, item %d: %x, want %x", i, k, s, n, out[i], want)
					}
					if out64[i][0] != want64[0] {
						t.Fatalf("BLAKE2b: frame %d of %d, item %d: %x, want %x", i, k, n, out64[i][0], want64[0])
					}
				}
			}
		}
	}
}

// Frames side by side that start from different states.
func TestEachOfItsOwn(t *testing.T) {
	buf := noise(1000)
	var frames []BLAKE2bFrame
	for i := range 6 {
		frames = append(frames, NewBLAKE2bFrame(NewBLAKE2b(32, buf[:i*8], ""), buf[:i], 4))
	}
	for _, n := range []int{0, 100, 124, 125, 300} {
		out := make([][4]uint64, len(frames))
		BLAKE2bEach(frames, buf[:n], out)
		for i, got := range out {
			if want := wantBLAKE2b(t, 32, buf[:i*8], "", frameOf(buf[:i], 4, buf[:n])); got != want {
				t.Errorf("frame %d, item of %d bytes: %x, want %x", i, n, got, want)
			}
		}
	}
}

func TestCounted(t *testing.T) {
	buf := noise(200)
	for _, key := range [][]byte{nil, buf[:16]} {
		for _, n := range []int{0, 1, 7, 8, 9, 126, 127} {
			for _, count := range []int{0, 1, 2, 3, 4, 5, 8, 9, 255, 256} {
				out := make([][4]uint64, count+1)
				half := count / 2
				BLAKE2bCounted(NewBLAKE2b(8, key, ""), buf[:n], 0, out[:half])
				BLAKE2bCounted(NewBLAKE2b(8, key, ""), buf[:n], half, out[half:count])
				for i := range out {
					var want [4]uint64
					if i < count {
						want = wantBLAKE2b(t, 8, key, "", append(buf[:n:n], byte(i)))
					}
					if out[i][0] != want[0] {
						t.Fatalf("item of %d bytes, digest %d of %d: %x, want %x", n, i, count, out[i][0], want[0])
					}
				}
			}
		}
	}
}

// Every length and every split of a message, keyed and not, against x/crypto.
func TestBLAKE2b(t *testing.T) {
	buf := noise(520)
	for _, keyLen := range []int{0, 1, 16, 63, 64} {
		key := buf[100 : 100+keyLen]
		for n := range 301 {
			want := wantBLAKE2b(t, 32, key, "", buf[:n])
			for _, split := range []int{0, n / 3, n} {
				d := NewBLAKE2b(32, key, "")
				d.Write(buf[:split])
				d.Write(buf[split:n])
				if got := d.Sum(); got != want {
					t.Fatalf("key of %d bytes, message of %d split at %d: %x, want %x", keyLen, n, split, got, want)
				}
			}
		}
	}
	d := NewBLAKE2b(8, nil, "esbloom-v1")
	d.Write([]byte("abc"))
	if got := d.Sum()[0]; got != 0xcb872d0fe75d278c {
		t.Errorf("abc: %x, want cb872d0fe75d278c", got)
	}
}

// Every seed length and every item length up to 300.
func TestBLAKE2bFrame(t *testing.T) {
	buf := noise(1000)
	for _, key := range [][]byte{nil, buf[500:516], buf[500:564]} {
		start := NewBLAKE2b(32, key, "")
		for s := range 33 {
			prefix := prefixV2(buf[:s])
			f := NewBLAKE2bFrame(start, prefix, 4)
			items := make([][]byte, 301)
			for n := range items {
				items[n] = buf[n%71:][:n]
			}
			out := make([][4]uint64, len(items))
			f.SumBatch(items, out, nil)
			for n, item := range items {
				want := wantBLAKE2b(t, 32, key, "", frameOf(prefix, 4, item))
				if got := sumOf(&f, item); got != want {
					t.Fatalf("key of %d, seed of %d, item of %d bytes: %x, want %x", len(key), s, n, got, want)
				}
				if out[n] != want {
					t.Fatalf("batch, key of %d, seed of %d, item of %d bytes: %x, want %x", len(key), s, n, out[n], want)
				}
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	buf := noise(2 * longest)
	f := NewSHA256Frame(prefixV2(nil), 4)
	g := NewBLAKE2bFrame(NewBLAKE2b(32, buf[:32], ""), prefixV2(nil), 4)
	fs, gs := []SHA256Frame{f, f, f}, []BLAKE2bFrame{g, g, g}
	items := [][]byte{buf[:24], buf[:100], buf, buf[:44], buf[:500]}
	for i := range 16 {
		items = append(items, buf[i:][:i])
	}
	out := make([][4]uint64, len(items))
	start := NewBLAKE2b(8, nil, "")
	var w [4]uint64
	for name, fn := range map[string]func(){
		"SumBatch": func() { f.SumBatch(items, out, buf); g.SumBatch(items, out, buf) },
		"Sum": func() {
			for _, item := range items {
				f.Sum(&w, item)
				f.sumGeneric(item)
				g.Sum(&w, item)
			}
		},
		"Each": func() {
			for _, item := range items {
				SHA256Each(fs, item, out)
				BLAKE2bEach(gs, item, out)
			}
		},
		"Counted": func() { BLAKE2bCounted(start, items[0], 0, out) },
		"no escape": func() {
			var local [8]byte
			item := local[:]
			f.Sum(&w, item)
			g.Sum(&w, item)
			SHA256Each(fs, item, out)
			BLAKE2bEach(gs, item, out)
			BLAKE2bCounted(start, item, 0, out)
			f.SumBatch([][]byte{item, item}, out, nil)
			g.SumBatch([][]byte{item, item}, out, nil)
			f.Sum(&w, Bytes("string"))
		},
	} {
		if n := testing.AllocsPerRun(20, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestBytes(t *testing.T) {
	for _, s := range []string{"", "x", "bloom"} {
		if b := Bytes(s); string(b) != s || len(b) != cap(b) {
			t.Errorf("Bytes(%q) = %q, capacity %d", s, b, cap(b))
		}
	}
}

// Four items in many places of a batch, and one by one, against the libraries.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("seed"), []byte("a"), []byte("bb"), []byte("ccc"), []byte(""))
	f.Add([]byte(""), make([]byte, 44), make([]byte, 45), make([]byte, 109), make([]byte, 300))
	f.Add(make([]byte, 32), make([]byte, 12), make([]byte, 13), make([]byte, 117), make([]byte, longest+1))
	f.Fuzz(func(t *testing.T, seed, a, b, c, d []byte) {
		prefix := prefixV2(seed[:min(len(seed), 32)])
		items := [][]byte{a, b, c, d, a, c, c, d, d, b, a, a, b, b, c, d, a}
		sha := NewSHA256Frame(prefix, 4)
		b2 := NewBLAKE2bFrame(NewBLAKE2b(32, seed[:min(len(seed), 64)], ""), prefix, 4)
		var shaOut, b2Out [17][4]uint64
		sha.SumBatch(items, shaOut[:], nil)
		b2.SumBatch(items, b2Out[:], nil)
		for i, item := range items {
			frame := frameOf(prefix, 4, item)
			if want := wantSHA256(frame); shaOut[i] != want || sumOf(&sha, item) != want || sha.sumGeneric(item) != want {
				t.Errorf("SHA-256, item %d: batch %x, single %x, twin %x, want %x", i, shaOut[i], sumOf(&sha, item), sha.sumGeneric(item), want)
			}
			if want := wantBLAKE2b(t, 32, seed[:min(len(seed), 64)], "", frame); b2Out[i] != want || sumOf(&b2, item) != want {
				t.Errorf("BLAKE2b, item %d: batch %x, single %x, want %x", i, b2Out[i], sumOf(&b2, item), want)
			}
		}
	})
}

var benchLengths = []int{8, 24, 44, 45, 100, 200, 300, 1000}

type contender struct {
	name string
	sum  func(item []byte) [4]uint64
}

// The libraries' functions hash the bare item, without a frame.
func BenchmarkSHA256(b *testing.B) {
	f := NewSHA256Frame(prefixV2(nil), 4)
	benchmark(b, f.SumBatch, []contender{
		{"frame", func(item []byte) (w [4]uint64) { f.Sum(&w, item); return w }},
		{"twin", f.sumGeneric},
		{"Sum256", func(item []byte) [4]uint64 { sum := sha256.Sum256(item); return words(&sum) }},
	})
}

func BenchmarkBLAKE2b(b *testing.B) {
	f := NewBLAKE2bFrame(NewBLAKE2b(32, nil, ""), prefixV2(nil), 4)
	benchmark(b, f.SumBatch, []contender{
		{"frame", func(item []byte) (w [4]uint64) { f.Sum(&w, item); return w }},
		{"Sum256", func(item []byte) [4]uint64 { sum := blake2b.Sum256(item); return words(&sum) }},
	})
}

func benchmark(b *testing.B, batch func([][]byte, [][4]uint64, []byte), single []contender) {
	buf := noise(1 << 16)
	for _, n := range benchLengths {
		for _, c := range single {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for i := 0; b.Loop(); i++ {
					c.sum(buf[i%997*48:][:n])
				}
			})
		}
		b.Run(fmt.Sprintf("batch/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			items, out := make([][]byte, 128), make([][4]uint64, 128)
			for i := range items {
				items[i] = buf[i*48:][:n]
			}
			for i := 0; b.Loop(); i++ {
				if i%len(items) == 0 { // the unit is an item
					batch(items, out, nil)
				}
			}
		})
	}
}
