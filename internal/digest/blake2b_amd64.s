//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// BLAKE2b of four messages at a time, one in each 64-bit lane of the vector
// registers: no lane ever needs another's data, so nothing is shuffled but the
// messages on their way in.

DATA iv64<>+0x00(SB)/8, $0x6a09e667f3bcc908
DATA iv64<>+0x08(SB)/8, $0xbb67ae8584caa73b
DATA iv64<>+0x10(SB)/8, $0x3c6ef372fe94f82b
DATA iv64<>+0x18(SB)/8, $0xa54ff53a5f1d36f1
DATA iv64<>+0x20(SB)/8, $0x510e527fade682d1
DATA iv64<>+0x28(SB)/8, $0x9b05688c2b3e6c1f
DATA iv64<>+0x30(SB)/8, $0x1f83d9abfb41bd6b
DATA iv64<>+0x38(SB)/8, $0x5be0cd19137e2179
GLOBL iv64<>(SB), RODATA|NOPTR, $64

// Byte shuffles that rotate a 64-bit lane right by 24 and by 16.
DATA ror24<>+0x00(SB)/8, $0x0201000706050403
DATA ror24<>+0x08(SB)/8, $0x0a09080f0e0d0c0b
DATA ror24<>+0x10(SB)/8, $0x0201000706050403
DATA ror24<>+0x18(SB)/8, $0x0a09080f0e0d0c0b
GLOBL ror24<>(SB), RODATA|NOPTR, $32

DATA ror16<>+0x00(SB)/8, $0x0100070605040302
DATA ror16<>+0x08(SB)/8, $0x09080f0e0d0c0b0a
DATA ror16<>+0x10(SB)/8, $0x0100070605040302
DATA ror16<>+0x18(SB)/8, $0x09080f0e0d0c0b0a
GLOBL ror16<>(SB), RODATA|NOPTR, $32

// Read at 128-e, keep keeps the first e of 128 bytes.
DATA keep<>+0x00(SB)/8, $-1
DATA keep<>+0x08(SB)/8, $-1
DATA keep<>+0x10(SB)/8, $-1
DATA keep<>+0x18(SB)/8, $-1
DATA keep<>+0x20(SB)/8, $-1
DATA keep<>+0x28(SB)/8, $-1
DATA keep<>+0x30(SB)/8, $-1
DATA keep<>+0x38(SB)/8, $-1
DATA keep<>+0x40(SB)/8, $-1
DATA keep<>+0x48(SB)/8, $-1
DATA keep<>+0x50(SB)/8, $-1
DATA keep<>+0x58(SB)/8, $-1
DATA keep<>+0x60(SB)/8, $-1
DATA keep<>+0x68(SB)/8, $-1
DATA keep<>+0x70(SB)/8, $-1
DATA keep<>+0x78(SB)/8, $-1
GLOBL keep<>(SB), RODATA|NOPTR, $256

// func blake2bBegin(blocks *[128]byte, frames **BLAKE2bFrame, items *[]byte, n int)
//
// How a block is put together: see LOAD in sha256_amd64.s. Here it is a buffer,
// 128 bytes long and without an end mark.
TEXT ·blake2bBegin(SB), NOSPLIT, $384-32
	MOVQ blocks+0(FP), R8
	MOVQ frames+8(FP), R13
	MOVQ items+16(FP), R11
	MOVQ n+24(FP), R9

lane:
	MOVQ    (R13), BX
	ADDQ    $BLAKE2bFrame_t, BX
	MOVQ    (R11), DX
	MOVQ    8(R11), R12
	MOVQ    template_off(BX), AX
	SUBQ    AX, DX        // address of the block, were the prefix before the item
	ADDQ    R12, AX
	MOVQ    $128, CX
	CMPQ    AX, CX
	CMOVQLT AX, CX        // end of the frame in the block
	LEAQ    keep<>+128(SB), R10
	MOVQ    DX, SI
	TESTQ   R12, R12
	CMOVQEQ R10, SI       // nothing of the item: read anything
	SUBQ    CX, R10
	MOVL    SI, AX
	ANDL    $4095, AX
	CMPL    AX, $(4096-128)
	JHI     far

near:
	VPBROADCASTQ 8(R11), Y4
	VPSHUFB      template_lens(BX), Y4, Y5
	VPSHUFB      template_lens+32(BX), Y4, Y4
	VPOR         template_head(BX), Y5, Y5
	VPOR         template_head+32(BX), Y4, Y4
	VMOVDQU      (R10), Y0
	VMOVDQU      32(R10), Y1
	VMOVDQU      64(R10), Y2
	VMOVDQU      96(R10), Y3
	VPAND        template_body(BX), Y0, Y0
	VPAND        template_body+32(BX), Y1, Y1
	VPAND        (SI), Y0, Y0
	VPAND        32(SI), Y1, Y1
	VPAND        64(SI), Y2, Y2
	VPAND        96(SI), Y3, Y3
	VPOR         Y5, Y0, Y0
	VPOR         Y4, Y1, Y1
	VMOVDQU      Y0, (R8)
	VMOVDQU      Y1, 32(R8)
	VMOVDQU      Y2, 64(R8)
	VMOVDQU      Y3, 96(R8)
	ADDQ         $128, R8
	ADDQ         $8, R13
	ADDQ         $24, R11
	DECQ         R9
	JNE          lane
	VZEROUPPER
	RET

far: // see FAR there
	TESTQ   R12, R12
	JEQ     near
	LEAQ    128(DX), AX
	ANDQ    $~4095, AX
	ADDQ    DX, CX
	MOVQ    template_off(BX), SI
	ADDQ    DX, SI
	CMPQ    AX, SI
	JLS     copy
	CMPQ    AX, CX
	JCS     both
	LEAQ    -128(CX), SI

copy:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	SUBQ    DX, SI
	LEAQ    buf-256(SP), AX
	VMOVDQU Y0, (AX)(SI*1)
	VMOVDQU Y1, 32(AX)(SI*1)
	VMOVDQU Y2, 64(AX)(SI*1)
	VMOVDQU Y3, 96(AX)(SI*1)
	MOVQ    AX, SI
	JMP     near

both:
	MOVQ DX, SI
	JMP  near

// ROR63 rotates four registers right by 63, a bit to the left. AVX2 needs a
// register for it: c's value waits in memory.
#define ROR63(b0, b1, b2, b3, c) \
	VMOVDQU c, 512(DI) \
	ROR63AVX2(b0, c)   \
	ROR63AVX2(b1, c)   \
	ROR63AVX2(b2, c)   \
	ROR63AVX2(b3, c)   \
	VMOVDQU 512(DI), c

#define ROR63AVX2(b, tmp) \
	VPADDQ b, b, tmp \
	VPSRLQ $63, b, b \
	VPXOR  tmp, b, b

#define ROR63VL(b0, b1, b2, b3, c) \
	VPRORQ $63, b0, b0 \
	VPRORQ $63, b1, b1 \
	VPRORQ $63, b2, b2 \
	VPRORQ $63, b3, b3

// MIX is half a round: the function G on four columns or diagonals, in turn for
// each of its steps, so that the four chains overlap. The message is at DI.
#define MIX(ROR, a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3, x0, x1, x2, x3, y0, y1, y2, y3) \
	VPADDQ  32*x0(DI), a0, a0   \
	VPADDQ  32*x1(DI), a1, a1   \
	VPADDQ  32*x2(DI), a2, a2   \
	VPADDQ  32*x3(DI), a3, a3   \
	VPADDQ  b0, a0, a0          \
	VPADDQ  b1, a1, a1          \
	VPADDQ  b2, a2, a2          \
	VPADDQ  b3, a3, a3          \
	VPXOR   a0, d0, d0          \
	VPXOR   a1, d1, d1          \
	VPXOR   a2, d2, d2          \
	VPXOR   a3, d3, d3          \
	VPSHUFD $0xb1, d0, d0       \
	VPSHUFD $0xb1, d1, d1       \
	VPSHUFD $0xb1, d2, d2       \
	VPSHUFD $0xb1, d3, d3       \
	VPADDQ  d0, c0, c0          \
	VPADDQ  d1, c1, c1          \
	VPADDQ  d2, c2, c2          \
	VPADDQ  d3, c3, c3          \
	VPXOR   c0, b0, b0          \
	VPXOR   c1, b1, b1          \
	VPXOR   c2, b2, b2          \
	VPXOR   c3, b3, b3          \
	VPSHUFB ror24<>(SB), b0, b0 \
	VPSHUFB ror24<>(SB), b1, b1 \
	VPSHUFB ror24<>(SB), b2, b2 \
	VPSHUFB ror24<>(SB), b3, b3 \
	VPADDQ  32*y0(DI), a0, a0   \
	VPADDQ  32*y1(DI), a1, a1   \
	VPADDQ  32*y2(DI), a2, a2   \
	VPADDQ  32*y3(DI), a3, a3   \
	VPADDQ  b0, a0, a0          \
	VPADDQ  b1, a1, a1          \
	VPADDQ  b2, a2, a2          \
	VPADDQ  b3, a3, a3          \
	VPXOR   a0, d0, d0          \
	VPXOR   a1, d1, d1          \
	VPXOR   a2, d2, d2          \
	VPXOR   a3, d3, d3          \
	VPSHUFB ror16<>(SB), d0, d0 \
	VPSHUFB ror16<>(SB), d1, d1 \
	VPSHUFB ror16<>(SB), d2, d2 \
	VPSHUFB ror16<>(SB), d3, d3 \
	VPADDQ  d0, c0, c0          \
	VPADDQ  d1, c1, c1          \
	VPADDQ  d2, c2, c2          \
	VPADDQ  d3, c3, c3          \
	VPXOR   c0, b0, b0          \
	VPXOR   c1, b1, b1          \
	VPXOR   c2, b2, b2          \
	VPXOR   c3, b3, b3          \
	ROR(b0, b1, b2, b3, c0)

#define ROUND(ROR, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15) \
	MIX(ROR, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, s0, s2, s4, s6, s1, s3, s5, s7) \
	MIX(ROR, Y0, Y1, Y2, Y3, Y5, Y6, Y7, Y4, Y10, Y11, Y8, Y9, Y15, Y12, Y13, Y14, s8, s10, s12, s14, s9, s11, s13, s15)

// WORDS puts words i and i+1 of the four messages side by side, lane by lane.
#define WORDS(i) \
	VMOVDQU     8*i(R8), X0          \
	VMOVDQU     8*i(R9), X1          \
	VINSERTI128 $1, 8*i(R10), Y0, Y0 \
	VINSERTI128 $1, 8*i(R11), Y1, Y1 \
	VPUNPCKLQDQ Y1, Y0, Y2           \
	VPUNPCKHQDQ Y1, Y0, Y3           \
	VMOVDQU     Y2, 32*i(DI)         \
	VMOVDQU     Y3, 32*i+32(DI)

// QUAD loads four words that were written one by one: a single load would have
// to wait until they are in the cache.
#define QUAD(p, X, Y, tmp) \
	VMOVQ       p(BX), X               \
	VPINSRQ     $1, p+8(BX), X, X      \
	VMOVQ       p+16(BX), tmp          \
	VPINSRQ     $1, p+24(BX), tmp, tmp \
	VINSERTI128 $1, tmp, Y, Y

#define FINISH(i, lo, hi) \
	VPXOR   hi, lo, lo       \
	VPXOR   32*i(CX), lo, lo \
	VMOVDQU lo, lanes_h+32*i(BX)

#define COMPRESS(ROR) \
	WORDS(0)                                             \
	WORDS(2)                                             \
	WORDS(4)                                             \
	WORDS(6)                                             \
	WORDS(8)                                             \
	WORDS(10)                                            \
	WORDS(12)                                            \
	WORDS(14)                                            \
	VPBROADCASTQ iv64<>+32(SB), Y12                      \
	VPBROADCASTQ iv64<>+48(SB), Y14                      \
	QUAD(lanes_t, X0, Y0, X1)                            \
	VPXOR Y0, Y12, Y12                                   \
	QUAD(lanes_last, X0, Y0, X1)                         \
	VPXOR Y0, Y14, Y14                                   \
	VMOVDQU 32*0(CX), Y0                                 \
	VMOVDQU 32*1(CX), Y1                                 \
	VMOVDQU 32*2(CX), Y2                                 \
	VMOVDQU 32*3(CX), Y3                                 \
	VMOVDQU 32*4(CX), Y4                                 \
	VMOVDQU 32*5(CX), Y5                                 \
	VMOVDQU 32*6(CX), Y6                                 \
	VMOVDQU 32*7(CX), Y7                                 \
	VPBROADCASTQ iv64<>+8*0(SB), Y8                      \
	VPBROADCASTQ iv64<>+8*1(SB), Y9                      \
	VPBROADCASTQ iv64<>+8*2(SB), Y10                     \
	VPBROADCASTQ iv64<>+8*3(SB), Y11                     \
	VPBROADCASTQ iv64<>+8*5(SB), Y13                     \
	VPBROADCASTQ iv64<>+8*7(SB), Y15                     \
	ROUND(ROR, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) \
	ROUND(ROR, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3) \
	ROUND(ROR, 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4) \
	ROUND(ROR, 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8) \
	ROUND(ROR, 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13) \
	ROUND(ROR, 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9) \
	ROUND(ROR, 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11) \
	ROUND(ROR, 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10) \
	ROUND(ROR, 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5) \
	ROUND(ROR, 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0) \
	ROUND(ROR, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) \
	ROUND(ROR, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3) \
	FINISH(0, Y0, Y8)                                    \
	FINISH(1, Y1, Y9)                                    \
	FINISH(2, Y2, Y10)                                   \
	FINISH(3, Y3, Y11)                                   \
	FINISH(4, Y4, Y12)                                   \
	FINISH(5, Y5, Y13)                                   \
	FINISH(6, Y6, Y14)                                   \
	FINISH(7, Y7, Y15)

// func blake2bx4(s *lanes, h *[8][4]uint64, m *[4]*[128]byte)
TEXT ·blake2bx4(SB), 0, $576-24
	MOVQ s+0(FP), BX
	MOVQ h+8(FP), CX
	MOVQ m+16(FP), AX
	MOVQ (AX), R8
	MOVQ 8(AX), R9
	MOVQ 16(AX), R10
	MOVQ 24(AX), R11
	LEAQ words-576(SP), DI // 16 message words, then ROR63's
	ADDQ $31, DI
	ANDQ $~31, DI
	COMPRESS(ROR63)
	VZEROUPPER
	RET

// func blake2bx4VL(s *lanes, h *[8][4]uint64, m *[4]*[128]byte)
TEXT ·blake2bx4VL(SB), 0, $576-24
	MOVQ s+0(FP), BX
	MOVQ h+8(FP), CX
	MOVQ m+16(FP), AX
	MOVQ (AX), R8
	MOVQ 8(AX), R9
	MOVQ 16(AX), R10
	MOVQ 24(AX), R11
	LEAQ words-576(SP), DI // 16 message words, then ROR63's
	ADDQ $31, DI
	ANDQ $~31, DI
	COMPRESS(ROR63VL)
	VZEROUPPER
	RET
