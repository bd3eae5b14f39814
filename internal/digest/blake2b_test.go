package digest

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"testing"

	"golang.org/x/crypto/blake2b"
)

func bytesLE(w [4]uint64) []byte {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// Every length and every split of a message, keyed and not, against x/crypto.
func TestBLAKE2b(t *testing.T) {
	msg := make([]byte, 520)
	for i := range msg {
		msg[i] = byte(i * 7)
	}
	for _, keyLen := range []int{0, 1, 16, 63, 64} {
		key := msg[100 : 100+keyLen]
		for n := 0; n <= 300; n++ {
			h, err := blake2b.New256(key)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(msg[:n])
			want := h.Sum(nil)
			for _, split := range []int{0, n / 3, n} {
				d := NewBLAKE2b(32, key, "")
				d.Write(msg[:split])
				d.Write(msg[split:n])
				if got := bytesLE(d.Sum()); !bytes.Equal(got, want) {
					t.Fatalf("key of %d bytes, message of %d split at %d: %x, want %x", keyLen, n, split, got, want)
				}
			}
		}
	}
}

// x/crypto takes a personalisation only through its marshalled state: words 6
// and 7 of the chaining value, exclusive-or the personalisation.
func TestBLAKE2bPersonal(t *testing.T) {
	const personal = "esbloom-v1"
	for n := range 400 {
		msg := bytes.Repeat([]byte{byte(n)}, n)
		h, err := blake2b.New(8, nil)
		if err != nil {
			t.Fatal(err)
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
		h.Write(msg)
		d := NewBLAKE2b(8, nil, personal)
		d.Write(msg)
		if got, want := bytesLE(d.Sum())[:8], h.Sum(nil); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: %x, want %x", n, got, want)
		}
	}
	d := NewBLAKE2b(8, nil, personal)
	d.Write([]byte("abc"))
	if got := d.Sum()[0]; got != 0x8c275de70f2d87cb {
		t.Errorf("abc: %#x, want the little-endian word of cb872d0fe75d278c", got)
	}
}
