package bloom

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/b1cc2673/bloom/internal/digest"
)

// blockBits is the size of a v2 block: one cache line of most machines.
const blockBits = 512

// A protocol is one entry of the table: all that tells one protocol from
// another. SPEC.md, section 2, states each in prose.
type protocol struct {
	name   string
	number uint8 // pinned: what files hold

	// Limits. They belong to the protocol: outside them there is an error.
	leastBits, mostBits uint64 // m
	mostHashes          int    // k, from 1
	mostSeed            int    // bytes, from 0
	leastKey, mostKey   int    // bytes; 0: takes no key
	leastItem, mostItem uint64 // bytes
	text                bool   // items are valid UTF-8
	mostRecords         uint64 // counted before duplicates are removed

	// Frame i: prefix ‖ index ‖ length ‖ item, the numbers big-endian in so
	// many bytes (0: absent), or item ‖ index.
	prefix                  func(Config) []byte
	indexBytes, lengthBytes int
	indexLast               bool

	hash     hash
	personal string // BLAKE2b's
	derive   derivation
}

type hash uint8

const (
	hashSHA256     hash = iota
	hashBLAKE2b256      // 32-byte digest
	hashBLAKE2b64       // 8-byte digest
)

func (h hash) size() int {
	if h == hashBLAKE2b64 {
		return 8
	}
	return 32
}

type derivation uint8

const (
	deriveBlock        derivation = iota // one digest, all positions in one block
	deriveBigEndian                      // a digest a position, big-endian, mod m
	deriveLittleEndian                   // a digest a position, little-endian, mod m
)

var protocols = [...]protocol{
	SHA256: {
		name: "sha256-v2", number: 1,
		leastBits: blockBits, mostBits: 1 << 48, mostHashes: 14, mostSeed: 32,
		mostItem: math.MaxUint32, mostRecords: math.MaxUint64,
		prefix: prefixV2, lengthBytes: 4,
		hash: hashSHA256, derive: deriveBlock,
	},
	BLAKE2b: {
		name: "blake2b-v2", number: 2,
		leastBits: blockBits, mostBits: 1 << 48, mostHashes: 14, mostSeed: 32,
		leastKey: 16, mostKey: 64,
		mostItem: math.MaxUint32, mostRecords: math.MaxUint64,
		prefix: prefixV2, lengthBytes: 4,
		hash: hashBLAKE2b256, derive: deriveBlock,
	},
	DocMembershipV1: {
		name: "doc-membership-v1", number: 3,
		leastBits: 8, mostBits: 512, mostHashes: 8, mostSeed: 16,
		mostItem: 64, mostRecords: 64,
		prefix: prefixDocMembershipV1, indexBytes: 1, lengthBytes: 2,
		hash: hashSHA256, derive: deriveBigEndian,
	},
	ESBloomV1: {
		name: "esbloom-v1", number: 4,
		leastBits: 1, mostBits: 10_000_000, mostHashes: 16,
		mostItem: 1_000_000, text: true, mostRecords: math.MaxUint64,
		prefix: noPrefix, indexBytes: 2, lengthBytes: 8,
		hash: hashBLAKE2b64, personal: "esbloom-v1", derive: deriveBigEndian,
	},
	KeyIndexV1: {
		name: "key-index-v1", number: 5,
		leastBits: 1, mostBits: math.MaxUint64, mostHashes: 256,
		leastItem: 8, mostItem: 8, mostRecords: math.MaxUint64,
		prefix: noPrefix, indexBytes: 1, indexLast: true,
		hash: hashBLAKE2b64, derive: deriveLittleEndian,
	},
}

func noPrefix(Config) []byte { return nil }

func prefixV2(c Config) []byte {
	return append(append([]byte("bloom2"), byte(len(c.Seed))), c.Seed...)
}

func prefixDocMembershipV1(c Config) []byte {
	b := append([]byte("doc-membership-v1"), 0, byte(c.Bits>>8), byte(c.Bits), byte(c.Hashes), byte(len(c.Seed)))
	return append(b, c.Seed...)
}

func (p Protocol) known() bool { return int(p) < len(protocols) }

// String returns the protocol's name as SPEC.md spells it.
func (p Protocol) String() string {
	if !p.known() {
		return fmt.Sprintf("Protocol(%d)", uint8(p))
	}
	return protocols[p].name
}

// MarshalText returns the protocol's name; for an unknown protocol, ErrConfig.
func (p Protocol) MarshalText() ([]byte, error) {
	if !p.known() {
		return nil, fmt.Errorf("%w: unknown protocol %d", ErrConfig, uint8(p))
	}
	return []byte(p.String()), nil
}

// UnmarshalText takes exactly what MarshalText gives. Any other text is
// ErrConfig and leaves p as it was.
func (p *Protocol) UnmarshalText(text []byte) error {
	for i := range protocols {
		if protocols[i].name == string(text) {
			*p = Protocol(i)
			return nil
		}
	}
	var names []string
	for i := range protocols {
		names = append(names, protocols[i].name)
	}
	return fmt.Errorf("%w: unknown protocol %.40q; known are %s", ErrConfig, text, strings.Join(names, ", "))
}

// check refuses a configuration that is outside its protocol's limits
// whatever the records are. Bits, Hashes and FPRate may be zero.
func (c Config) check() error {
	if !c.Protocol.known() {
		return fmt.Errorf("%w: unknown protocol %d", ErrConfig, uint8(c.Protocol))
	}
	p := &protocols[c.Protocol]
	if c.FPRate != 0 {
		if err := checkRate(c.FPRate); err != nil {
			return err
		}
	}
	if c.Bits != 0 {
		if err := p.checkBits(c.Bits); err != nil {
			return err
		}
	}
	if c.Hashes != 0 {
		if err := p.checkHashes(c.Hashes); err != nil {
			return err
		}
	}
	if len(c.Seed) > p.mostSeed {
		if p.mostSeed == 0 {
			return fmt.Errorf("%w: seed of %d bytes; %s takes no seed", ErrConfig, len(c.Seed), p.name)
		}
		return fmt.Errorf("%w: seed of %d bytes; %s takes at most %d", ErrConfig, len(c.Seed), p.name, p.mostSeed)
	}
	switch n := len(c.Key); {
	case c.Key == nil:
	case p.mostKey == 0:
		return keyErrorf("a key is given; %s takes none, and only %s does", p.name, protocols[BLAKE2b].name)
	case n < p.leastKey || n > p.mostKey:
		return keyErrorf("key of %d bytes; %s takes %d to %d, or nil for none", n, p.name, p.leastKey, p.mostKey)
	}
	return nil
}

func (p *protocol) checkBits(m uint64) error {
	if m < p.leastBits || m > p.mostBits {
		return fmt.Errorf("%w: m = %d bits; %s takes %d to %d", ErrConfig, m, p.name, p.leastBits, p.mostBits)
	}
	if p.derive == deriveBlock && m%blockBits != 0 {
		return fmt.Errorf("%w: m = %d bits; %s takes multiples of %d", ErrConfig, m, p.name, blockBits)
	}
	return nil
}

func (p *protocol) checkHashes(k int) error {
	if k < 1 || k > p.mostHashes {
		return fmt.Errorf("%w: k = %d hashes; %s takes 1 to %d", ErrConfig, k, p.name, p.mostHashes)
	}
	return nil
}

func (p *protocol) checkItem(item []byte) error {
	if n := uint64(len(item)); n < p.leastItem || n > p.mostItem {
		return p.lengthError(n)
	}
	if p.text && !utf8.Valid(item) {
		return fmt.Errorf("%w: not UTF-8, which %s asks for", ErrItem, p.name)
	}
	return nil
}

// admits is the fast part of checkItem: true is final, false says to ask it.
func (s *scheme) admits(item []byte) bool { return s.block && uint64(len(item)) <= math.MaxUint32 }

func (p *protocol) lengthError(n uint64) error {
	if p.leastItem == p.mostItem {
		return fmt.Errorf("%w: %d bytes; %s takes exactly %d", ErrItem, n, p.name, p.mostItem)
	}
	return fmt.Errorf("%w: %d bytes; %s takes at most %d", ErrItem, n, p.name, p.mostItem)
}

// A scheme is a protocol with its seed, its key and, where they are part of
// the frame, m and k: it turns items into digests, and digests into positions.
type scheme struct {
	*protocol
	which  Protocol
	id     uint64 // equal for equal protocol, seed and key, whatever m and k
	seed   []byte // for show; the prefix is what is hashed
	keyed  bool
	prefix []byte               // what every frame begins with
	sha256 []digest.SHA256Frame // frame i, or the only one, if the hash is SHA-256
	hidden *hidden

	block  bool                // all positions from one digest
	single *digest.SHA256Frame // whose digest that is, if the hash is SHA-256
}

// hidden is what must not be printed, behind a pointer that fmt does not follow.
type hidden struct {
	key     []byte
	start   digest.BLAKE2b        // the state that digests start from: personalisation, key block
	blake2b []digest.BLAKE2bFrame // as scheme.sha256; none where the index comes last
}

// newScheme expects a checked configuration, with Bits and Hashes resolved
// for the protocols that have a digest a position.
func newScheme(c Config) *scheme {
	p := &protocols[c.Protocol]
	s := &scheme{protocol: p, which: c.Protocol, seed: append([]byte(nil), c.Seed...), keyed: c.Key != nil, prefix: p.prefix(c), hidden: new(hidden)}
	if s.keyed {
		s.hidden.key = append([]byte{}, c.Key...)
	}
	frames := c.Hashes
	if p.derive == deriveBlock {
		frames = 1
	}
	if p.hash != hashSHA256 {
		s.hidden.start = digest.NewBLAKE2b(p.hash.size(), c.Key, p.personal)
	}
	for i := range frames {
		switch prefix := s.head(nil, i, 0); {
		case p.indexLast:
		case p.hash == hashSHA256:
			s.sha256 = append(s.sha256, digest.NewSHA256Frame(prefix[:len(prefix)-p.lengthBytes], p.lengthBytes))
		default:
			s.hidden.blake2b = append(s.hidden.blake2b, digest.NewBLAKE2bFrame(s.hidden.start, prefix[:len(prefix)-p.lengthBytes], p.lengthBytes))
		}
	}
	if s.block = p.derive == deriveBlock; s.block && p.hash == hashSHA256 {
		s.single = &s.sha256[0]
	}
	// No frame of a v2 protocol begins so: FE is no seed's length.
	id := digest.NewBLAKE2b(32, c.Key, "")
	id.Write([]byte{'b', 'l', 'o', 'o', 'm', '2', 0xFE, p.number})
	id.Write(c.Seed)
	s.id = id.Sum()[0]
	return s
}

// plainScheme addresses the frozen set where the protocol has no single
// digest for an item: sha256-v2 with an empty seed (SPEC.md, section 4).
var plainScheme = newScheme(Config{})

// setScheme is the scheme of the digests that address the frozen set.
func (s *scheme) setScheme() *scheme {
	if s.block {
		return s
	}
	return plainScheme
}

// head appends what precedes the item in its frame i.
func (s *scheme) head(dst []byte, i, itemLen int) []byte {
	dst = append(dst, s.prefix...)
	if !s.indexLast {
		dst = appendUint(dst, uint64(i), s.indexBytes)
	}
	return appendUint(dst, uint64(itemLen), s.lengthBytes)
}

// tail appends what follows the item in its frame i.
func (s *scheme) tail(dst []byte, i int) []byte {
	if s.indexLast {
		dst = appendUint(dst, uint64(i), s.indexBytes)
	}
	return dst
}

// appendUint appends the low n bytes of x, big-endian.
func appendUint(dst []byte, x uint64, n int) []byte {
	for n--; n >= 0; n-- {
		dst = append(dst, byte(x>>(8*n)))
	}
	return dst
}

// frames returns the bytes that are hashed for item: one frame where one
// digest gives all positions, else k.
func (s *scheme) frames(item []byte, k int) [][]byte {
	if s.block {
		k = 1
	}
	frames := make([][]byte, k)
	for i := range frames {
		frames[i] = s.tail(append(s.head(nil, i, len(item)), item...), i)
	}
	return frames
}

// digest hashes the one frame of an item, for the v2 protocols. The words are
// the digest's bytes read big-endian.
func (s *scheme) digest(item []byte) (w [4]uint64) {
	s.digestTo(&w, item)
	return w
}

// digestTo is digest for lookups.
func (s *scheme) digestTo(w *[4]uint64, item []byte) {
	if s.single != nil {
		s.single.Sum(w, item)
	} else {
		s.hidden.blake2b[0].Sum(w, item)
	}
}

// digestBatch is digest for many items. Meanwhile it prefetches the blocks of
// filter, which may be nil, that the digests select.
func (s *scheme) digestBatch(items [][]byte, words [][4]uint64, filter []byte) {
	if s.single != nil {
		s.single.SumBatch(items, words, filter)
	} else {
		s.hidden.blake2b[0].SumBatch(items, words, filter)
	}
}

// lanes is how many digests of one item are computed side by side.
const lanes = 4

// digests hashes the frames of an item from first on, len(words) of them, for
// the protocols with a digest a position. A digest of 8 bytes is words[i][0].
func (s *scheme) digests(item []byte, first int, words [][4]uint64) {
	end := first + len(words)
	switch {
	case s.indexLast:
		digest.BLAKE2bCounted(s.hidden.start, item, first, words)
	case s.hash == hashSHA256:
		digest.SHA256Each(s.sha256[first:end], item, words)
	default:
		digest.BLAKE2bEach(s.hidden.blake2b[first:end], item, words)
	}
}

// position derives position i from the digest of frame i, for the protocols
// that have a digest a position.
func (s *scheme) position(w [4]uint64, m uint64) uint64 {
	if s.derive == deriveLittleEndian {
		return bits.ReverseBytes64(w[0]) % m
	}
	var rem uint64
	for i := range s.hash.size() / 8 {
		_, rem = bits.Div64(rem, w[i], m) // rem < m: cannot overflow
	}
	return rem
}

// block derives a v2 digest's block among so many.
func block(w [4]uint64, blocks uint64) uint64 {
	hi, _ := bits.Mul64(w[0], blocks)
	return hi
}

// pick derives a v2 digest's bit j in its block, 0 to 511.
func pick(w [4]uint64, j int) uint64 {
	if j < 7 {
		return w[1] >> (9 * j) % blockBits
	}
	return w[2] >> (9 * (j - 7)) % blockBits
}

// positions returns the k positions of item in m bits, repeats kept.
func (s *scheme) positions(item []byte, m uint64, k int) []uint64 {
	positions := make([]uint64, k)
	if s.block {
		w := s.digest(item)
		base := blockBits * block(w, m/blockBits)
		for j := range positions {
			positions[j] = base + pick(w, j)
		}
		return positions
	}
	words := make([][4]uint64, k)
	s.digests(item, 0, words)
	for i := range positions {
		positions[i] = s.position(words[i], m)
	}
	return positions
}

// checkComplete is check for functions that have no records to size from:
// Bits and Hashes must be given. What is wrong with the key comes last, as in
// the reference, so that both give the same kind of error.
func (c Config) checkComplete() error {
	if c.Protocol.known() {
		p := &protocols[c.Protocol]
		if err := p.checkBits(c.Bits); err != nil {
			return err
		}
		if err := p.checkHashes(c.Hashes); err != nil {
			return err
		}
	}
	return c.check()
}

// Positions returns the bit positions of item under cfg: cfg.Hashes values
// from 0 to cfg.Bits-1 in the order of their index, repeats kept (SPEC.md,
// section 2). Bits and Hashes must both be given.
//
// Errors: ErrConfig (and ErrKey with it, if it is the key), ErrItem.
func Positions(cfg Config, item []byte) ([]uint64, error) {
	if err := cfg.checkComplete(); err != nil {
		return nil, err
	}
	s := newScheme(cfg)
	if err := s.checkItem(item); err != nil {
		return nil, err
	}
	return s.positions(item, cfg.Bits, cfg.Hashes), nil
}

// Frames returns the bytes that are hashed for item under cfg, for people
// who debug a port: one frame for the v2 protocols, for the others one for
// each of the k positions. A key or a personalisation is not part of a frame.
//
// Bits and Hashes must both be given. Errors: as for [Positions].
func Frames(cfg Config, item []byte) ([][]byte, error) {
	if err := cfg.checkComplete(); err != nil {
		return nil, err
	}
	s := newScheme(cfg)
	if err := s.checkItem(item); err != nil {
		return nil, err
	}
	return s.frames(item, cfg.Hashes), nil
}

// A Digest is the v2 digest of one item under one protocol, seed and key. It
// is computed once and answers for filters and snapshots of any size that
// were built with the same three; those of others refuse it with ErrItem. It
// does not hold the key, and holds nothing of the item but its hash.
type Digest struct {
	words  [4]uint64
	scheme uint64
}

// DigestOf hashes item. Of cfg it uses Protocol, Seed and Key; the rest may be
// zero, and must otherwise be within the limits.
//
// Errors: ErrConfig (and ErrKey with it, if it is the key), also for a
// protocol that has a digest for each position; ErrItem.
func DigestOf(cfg Config, item []byte) (Digest, error) {
	if err := cfg.check(); err != nil {
		return Digest{}, err
	}
	return newScheme(cfg).digestOf(item)
}

func (s *scheme) digestOf(item []byte) (Digest, error) {
	if !s.block {
		return Digest{}, fmt.Errorf("%w: %s has a digest for each position, not one for an item", ErrConfig, s.name)
	}
	if err := s.checkItem(item); err != nil {
		return Digest{}, err
	}
	return Digest{s.digest(item), s.id}, nil
}

func (s *scheme) checkDigest(d Digest) error {
	if !s.block || d.scheme != s.id {
		return fmt.Errorf("%w: the digest is of another protocol, seed or key", ErrItem)
	}
	return nil
}

// Bytes returns the 32 bytes that the hash function gave.
func (d Digest) Bytes() (b [32]byte) {
	for i, w := range d.words {
		binary.BigEndian.PutUint64(b[8*i:], w)
	}
	return b
}

// Shard returns which of n shards the item belongs to, 0 to n-1, where many
// snapshots make one collection: floor(w3 · n / 2^64) (SPEC.md, section 2.1).
// The filter's positions and the set's order do not depend on these bits.
// n outside 1 to 2^32 is ErrConfig.
func (d Digest) Shard(n uint64) (uint64, error) {
	if n < 1 || n > 1<<32 {
		return 0, fmt.Errorf("%w: %d shards; 1 to %d can be chosen from", ErrConfig, n, uint64(1<<32))
	}
	hi, _ := bits.Mul64(d.words[3], n)
	return hi, nil
}
