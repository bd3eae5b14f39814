//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// SHA-256 of one frame, of two in step, and of sixteen side by side. The first two
// use the SHA extensions, whose rounds have a latency of four cycles: a second
// message goes into the gaps.
//
// The state is held as the instructions want it, ABEF and CDGH from the high
// end of the register down; so the high and the low half of ABEF are w0 and
// w2, those of CDGH w1 and w3.

DATA iv<>+0x00(SB)/8, $0x510e527f9b05688c // E F
DATA iv<>+0x08(SB)/8, $0x6a09e667bb67ae85 // A B
DATA iv<>+0x10(SB)/8, $0x1f83d9ab5be0cd19 // G H
DATA iv<>+0x18(SB)/8, $0x3c6ef372a54ff53a // C D
GLOBL iv<>(SB), RODATA|NOPTR, $32

DATA swap<>+0x00(SB)/8, $0x0405060700010203 // big-endian 32-bit words
DATA swap<>+0x08(SB)/8, $0x0c0d0e0f08090a0b
DATA swap<>+0x10(SB)/8, $0x0405060700010203
DATA swap<>+0x18(SB)/8, $0x0c0d0e0f08090a0b
GLOBL swap<>(SB), RODATA|NOPTR, $32

// Read at 64-e, slide keeps the first e of 64 bytes; read at 144-e, it is the
// end mark 0x80 at byte e; e may be -9 to 64, and 64 leaves no mark.
DATA slide<>+0x00(SB)/8, $-1
DATA slide<>+0x08(SB)/8, $-1
DATA slide<>+0x10(SB)/8, $-1
DATA slide<>+0x18(SB)/8, $-1
DATA slide<>+0x20(SB)/8, $-1
DATA slide<>+0x28(SB)/8, $-1
DATA slide<>+0x30(SB)/8, $-1
DATA slide<>+0x38(SB)/8, $-1
DATA slide<>+0x90(SB)/8, $0x80
GLOBL slide<>(SB), RODATA|NOPTR, $224

// The template of all blocks but the first: nothing but item.
DATA continued<>+template_body+0(SB)/8, $-1
DATA continued<>+template_body+8(SB)/8, $-1
DATA continued<>+template_body+16(SB)/8, $-1
DATA continued<>+template_body+24(SB)/8, $-1
DATA continued<>+template_body+32(SB)/8, $-1
DATA continued<>+template_body+40(SB)/8, $-1
DATA continued<>+template_body+48(SB)/8, $-1
DATA continued<>+template_body+56(SB)/8, $-1
DATA continued<>+template_lens+0(SB)/8, $0x8080808080808080
DATA continued<>+template_lens+8(SB)/8, $0x8080808080808080
DATA continued<>+template_lens+16(SB)/8, $0x8080808080808080
DATA continued<>+template_lens+24(SB)/8, $0x8080808080808080
DATA continued<>+template_lens+32(SB)/8, $0x8080808080808080
DATA continued<>+template_lens+40(SB)/8, $0x8080808080808080
DATA continued<>+template_lens+48(SB)/8, $0x8080808080808080
DATA continued<>+template_lens+56(SB)/8, $0x8080808080808080
GLOBL continued<>(SB), RODATA|NOPTR, $template__size

// The round constants, two 32-bit words a line, the first one low.
DATA K<>+0x00(SB)/8, $0x71374491428a2f98
DATA K<>+0x08(SB)/8, $0xe9b5dba5b5c0fbcf
DATA K<>+0x10(SB)/8, $0x59f111f13956c25b
DATA K<>+0x18(SB)/8, $0xab1c5ed5923f82a4
DATA K<>+0x20(SB)/8, $0x12835b01d807aa98
DATA K<>+0x28(SB)/8, $0x550c7dc3243185be
DATA K<>+0x30(SB)/8, $0x80deb1fe72be5d74
DATA K<>+0x38(SB)/8, $0xc19bf1749bdc06a7
DATA K<>+0x40(SB)/8, $0xefbe4786e49b69c1
DATA K<>+0x48(SB)/8, $0x240ca1cc0fc19dc6
DATA K<>+0x50(SB)/8, $0x4a7484aa2de92c6f
DATA K<>+0x58(SB)/8, $0x76f988da5cb0a9dc
DATA K<>+0x60(SB)/8, $0xa831c66d983e5152
DATA K<>+0x68(SB)/8, $0xbf597fc7b00327c8
DATA K<>+0x70(SB)/8, $0xd5a79147c6e00bf3
DATA K<>+0x78(SB)/8, $0x1429296706ca6351
DATA K<>+0x80(SB)/8, $0x2e1b213827b70a85
DATA K<>+0x88(SB)/8, $0x53380d134d2c6dfc
DATA K<>+0x90(SB)/8, $0x766a0abb650a7354
DATA K<>+0x98(SB)/8, $0x92722c8581c2c92e
DATA K<>+0xa0(SB)/8, $0xa81a664ba2bfe8a1
DATA K<>+0xa8(SB)/8, $0xc76c51a3c24b8b70
DATA K<>+0xb0(SB)/8, $0xd6990624d192e819
DATA K<>+0xb8(SB)/8, $0x106aa070f40e3585
DATA K<>+0xc0(SB)/8, $0x1e376c0819a4c116
DATA K<>+0xc8(SB)/8, $0x34b0bcb52748774c
DATA K<>+0xd0(SB)/8, $0x4ed8aa4a391c0cb3
DATA K<>+0xd8(SB)/8, $0x682e6ff35b9cca4f
DATA K<>+0xe0(SB)/8, $0x78a5636f748f82ee
DATA K<>+0xe8(SB)/8, $0x8cc7020884c87814
DATA K<>+0xf0(SB)/8, $0xa4506ceb90befffa
DATA K<>+0xf8(SB)/8, $0xc67178f2bef9a3f7
GLOBL K<>(SB), RODATA|NOPTR, $256

// LOAD puts a block of a frame together, without a branch that depends on the
// length of a one-block frame. It reads the 64 bytes at Q in one go, masks away
// what is not the item's, and merges in the template's prefix, the item's length,
// the end mark and, in the last block, the frame's length in bits. What precedes
// and follows an item in memory is harmless to read as long as it is in a page
// that holds some of the item: FAR sees to that.
//
//	T            template of the block
//	Q            address of the block, were the prefix there before the item
//	E            end of the frame, relative to the block: -8 to 55 in the last
//	N            the item's length, in memory
//	BITS         the frame's length in bits, halves exchanged
//	m1 m3 y0 y2  the block's 16-byte quarters: the second and the fourth as X
//	             registers, the first and the third by their Y names
//	far near more  labels of the caller's own
//
// Clobbers AX, CX, SI, R10, Y13, Y15; the caller clears the upper halves.
#define LOAD(T, Q, E, N, BITS, far, near, more, m1, m3, y0, y2) \
	MOVQ         $64, CX                       \
	CMPQ         E, CX                         \
	CMOVQLT      E, CX                         \
	LEAQ         slide<>+64(SB), R10           \
	MOVQ         Q, SI                         \
	CMPQ         E, template_off(T)            \
	CMOVQLE      R10, SI                       \ // nothing of the item: read anything
	SUBQ         CX, R10                       \
	MOVL         SI, AX                        \
	ANDL         $4095, AX                     \
	CMPL         AX, $(4096-64)                \
	JHI          far                           \
near:                                              \
	VPBROADCASTQ N, Y15                        \
	VPSHUFB      template_lens(T), Y15, Y13    \
	VPSHUFB      template_lens+32(T), Y15, Y15 \
	VPOR         template_head(T), Y13, Y13    \
	VPOR         template_head+32(T), Y15, Y15 \
	VPOR         80(R10), Y13, Y13             \
	VPOR         112(R10), Y15, Y15            \
	VMOVDQU      (R10), y0                     \
	VMOVDQU      32(R10), y2                   \
	VPAND        template_body(T), y0, y0      \
	VPAND        template_body+32(T), y2, y2   \
	VPAND        (SI), y0, y0                  \
	VPAND        32(SI), y2, y2                \
	VPOR         Y13, y0, y0                   \
	VPOR         Y15, y2, y2                   \
	VPSHUFB      swap<>(SB), y0, y0            \
	VPSHUFB      swap<>(SB), y2, y2            \
	VEXTRACTI128 $1, y0, m1                    \
	VEXTRACTI128 $1, y2, m3                    \
	CMPQ         E, $55                        \
	JGT          more                          \
	VPINSRQ      $1, BITS, m3, m3              \ // zero there till now
more:

// FAR is LOAD's detour where the 64 bytes lie in two pages. If the item does
// too, all is well. If the other page holds nothing of it, 64 bytes are copied
// to the stack from the item's start on or up to its end: those are in its page.
#define FAR(T, Q, E, near, copy, both) \
	CMPQ    E, template_off(T)  \
	JLE     near                \ // slide itself lies in two pages
	LEAQ    64(Q), AX           \
	ANDQ    $~4095, AX          \ // where the second page begins
	ADDQ    Q, CX               \ // where the item ends: CX was min(E, 64)
	MOVQ    template_off(T), SI \
	ADDQ    Q, SI               \ // where it starts
	CMPQ    AX, SI              \
	JLS     copy                \
	CMPQ    AX, CX              \
	JCS     both                \
	LEAQ    -64(CX), SI         \
copy:                               \
	VMOVDQU (SI), Y13           \
	VMOVDQU 32(SI), Y15         \
	SUBQ    Q, SI               \
	LEAQ    buf-128(SP), AX     \
	VMOVDQU Y13, (AX)(SI*1)     \
	VMOVDQU Y15, 32(AX)(SI*1)   \
	MOVQ    AX, SI              \
	JMP     near                \
both:                               \
	MOVQ    Q, SI               \
	JMP     near

// A full block of the item, without a page check: all of it is the item's.
#define FULL(Q, m0, m1, m2, m3) \
	VMOVDQU (Q), m0            \
	VMOVDQU 16(Q), m1          \
	VMOVDQU 32(Q), m2          \
	VMOVDQU 48(Q), m3          \
	VPSHUFB swap<>(SB), m0, m0 \
	VPSHUFB swap<>(SB), m1, m1 \
	VPSHUFB swap<>(SB), m2, m2 \
	VPSHUFB swap<>(SB), m3, m3

// ROUNDS is rounds 4i to 4i+3, with m the words W[4i] to W[4i+3].
#define ROUNDS(i, m, abef, cdgh) \
	VPADDD      K<>+16*i(SB), m, X0 \
	SHA256RNDS2 X0, abef, cdgh      \
	VPSHUFD     $0x0e, X0, X0       \
	SHA256RNDS2 X0, cdgh, abef

// EXPAND replaces m0 by the four words that follow those of m3.
#define EXPAND(m0, m1, m2, m3, tmp) \
	SHA256MSG1 m1, m0          \
	VPALIGNR   $4, m2, m3, tmp \
	VPADDD     tmp, m0, m0     \
	SHA256MSG2 m3, m0

#define STEP1(i, m0, m1, m2, m3) \
	ROUNDS(i, m0, X9, X10) \
	EXPAND(m0, m1, m2, m3, X13)

#define STEP2(i, a0, a1, a2, a3, b0, b1, b2, b3) \
	ROUNDS(i, a0, X9, X10)      \
	ROUNDS(i, b0, X11, X12)     \
	EXPAND(a0, a1, a2, a3, X13) \
	EXPAND(b0, b1, b2, b3, X14)

// func sha256x1(t *template, item *byte, n int, out *[4]uint64)
TEXT ·sha256x1(SB), NOSPLIT, $192-32
	MOVQ  t+0(FP), BX
	MOVQ  item+8(FP), DX
	MOVQ  template_off(BX), R8
	SUBQ  R8, DX
	ADDQ  n+16(FP), R8
	LEAQ  (R8*8), R11
	ROLQ  $32, R11
	VMOVDQU iv<>+0(SB), X9
	VMOVDQU iv<>+16(SB), X10

block:
	LOAD(BX, DX, R8, n+16(FP), R11, far, near, more, X2, X4, Y1, Y3)
	VZEROUPPER

rounds:
	MOVO  X9, X11
	MOVO  X10, X12
	STEP1(0, X1, X2, X3, X4)
	STEP1(1, X2, X3, X4, X1)
	STEP1(2, X3, X4, X1, X2)
	STEP1(3, X4, X1, X2, X3)
	STEP1(4, X1, X2, X3, X4)
	STEP1(5, X2, X3, X4, X1)
	STEP1(6, X3, X4, X1, X2)
	STEP1(7, X4, X1, X2, X3)
	STEP1(8, X1, X2, X3, X4)
	STEP1(9, X2, X3, X4, X1)
	STEP1(10, X3, X4, X1, X2)
	STEP1(11, X4, X1, X2, X3)
	ROUNDS(12, X1, X9, X10)
	ROUNDS(13, X2, X9, X10)
	ROUNDS(14, X3, X9, X10)
	ROUNDS(15, X4, X9, X10)
	PADDD X11, X9
	PADDD X12, X10
	SUBQ  $64, R8
	CMPQ  R8, $(55-64)
	JLE   done

	LEAQ continued<>(SB), BX
	ADDQ $64, DX
	CMPQ R8, $64
	JLT  block
	FULL(DX, X1, X2, X3, X4)
	JMP  rounds

done:
	MOVQ   out+24(FP), AX
	MOVHPS X9, (AX)
	MOVHPS X10, 8(AX)
	MOVLPS X9, 16(AX)
	MOVLPS X10, 24(AX)
	RET

far:
	FAR(BX, DX, R8, near, copy, both)

// STORE writes a lane's digest and prefetches its cache line of the filter, if
// this block was the lane's last: E is in -8 to 55.
#define STORE(E, abef, cdgh, offset, filter, lines, skip) \
	LEAQ        8(E), AX            \
	CMPQ        AX, $63             \
	JHI         skip                \
	VPUNPCKHQDQ cdgh, abef, X13     \
	VPUNPCKLQDQ cdgh, abef, X14     \
	VMOVDQU     X13, offset(R11)    \
	VMOVDQU     X14, offset+16(R11) \
	VMOVQ       X13, AX             \
	MOVQ        DX, CX              \
	MULQ        lines               \
	SHLQ        $6, DX              \
	ADDQ        filter, DX          \
	PREFETCHT0  (DX)                \
	MOVQ        CX, DX              \
skip:

// func sha256x2(t *template, tStride uintptr, items *[]byte, itemStride uintptr, out *[4]uint64, pairs int, filter *byte, lines uint64) (done int)
//
// Lanes of unequal length run to the end of the longer one; the shorter one
// idles meanwhile: its E stays at -9, where nothing of the item is read.
TEXT ·sha256x2(SB), NOSPLIT, $288-72
	MOVQ $0, done+64(FP)

pair:
	MOVQ  t+0(FP), BX
	MOVQ  tStride+8(FP), R13
	ADDQ  BX, R13
	MOVQ  items+16(FP), R11
	MOVQ  itemStride+24(FP), SI
	ADDQ  R11, SI
	MOVQ  (R11), DX
	MOVQ  8(R11), R8
	MOVQ  (SI), R12
	MOVQ  8(SI), R9
	CMPQ  R8, $const_longest
	JGT   return
	CMPQ  R9, $const_longest
	JGT   return
	MOVQ  R8, n0-200(SP)
	MOVQ  R9, n1-208(SP)
	SUBQ  template_off(BX), DX
	ADDQ  template_off(BX), R8
	SUBQ  template_off(R13), R12
	ADDQ  template_off(R13), R9
	LEAQ  (R8*8), AX
	ROLQ  $32, AX
	MOVQ  AX, bits0-216(SP)
	LEAQ  (R9*8), AX
	ROLQ  $32, AX
	MOVQ  AX, bits1-224(SP)
	MOVQ  out+32(FP), R11
	VMOVDQU iv<>+0(SB), X9
	VMOVDQU iv<>+16(SB), X10
	MOVO  X9, X11
	MOVO  X10, X12

block:
	LOAD(BX, DX, R8, n0-200(SP), bits0-216(SP), far0, near0, more0, X2, X4, Y1, Y3)
	LOAD(R13, R12, R9, n1-208(SP), bits1-224(SP), far1, near1, more1, X6, X8, Y5, Y7)
	VZEROUPPER

rounds:
	MOVOU X9, abef0-240(SP)
	MOVOU X10, cdgh0-256(SP)
	MOVOU X11, abef1-272(SP)
	MOVOU X12, cdgh1-288(SP)
	STEP2(0, X1, X2, X3, X4, X5, X6, X7, X8)
	STEP2(1, X2, X3, X4, X1, X6, X7, X8, X5)
	STEP2(2, X3, X4, X1, X2, X7, X8, X5, X6)
	STEP2(3, X4, X1, X2, X3, X8, X5, X6, X7)
	STEP2(4, X1, X2, X3, X4, X5, X6, X7, X8)
	STEP2(5, X2, X3, X4, X1, X6, X7, X8, X5)
	STEP2(6, X3, X4, X1, X2, X7, X8, X5, X6)
	STEP2(7, X4, X1, X2, X3, X8, X5, X6, X7)
	STEP2(8, X1, X2, X3, X4, X5, X6, X7, X8)
	STEP2(9, X2, X3, X4, X1, X6, X7, X8, X5)
	STEP2(10, X3, X4, X1, X2, X7, X8, X5, X6)
	STEP2(11, X4, X1, X2, X3, X8, X5, X6, X7)
	ROUNDS(12, X1, X9, X10)
	ROUNDS(12, X5, X11, X12)
	ROUNDS(13, X2, X9, X10)
	ROUNDS(13, X6, X11, X12)
	ROUNDS(14, X3, X9, X10)
	ROUNDS(14, X7, X11, X12)
	ROUNDS(15, X4, X9, X10)
	ROUNDS(15, X8, X11, X12)
	VPADDD abef0-240(SP), X9, X9
	VPADDD cdgh0-256(SP), X10, X10
	VPADDD abef1-272(SP), X11, X11
	VPADDD cdgh1-288(SP), X12, X12
	STORE(R8, X9, X10, 0, filter+48(FP), lines+56(FP), skip0)
	STORE(R9, X11, X12, 32, filter+48(FP), lines+56(FP), skip1)

	SUBQ    $64, R8
	SUBQ    $64, R9
	MOVQ    $-9, AX
	CMPQ    R8, AX
	CMOVQLT AX, R8
	CMPQ    R9, AX
	CMOVQLT AX, R9
	LEAQ    18(R8)(R9*1), AX
	TESTQ   AX, AX
	JEQ     next // both at -9

	LEAQ continued<>(SB), BX
	MOVQ BX, R13
	ADDQ $64, DX
	ADDQ $64, R12
	CMPQ R8, $64
	JLT  block
	CMPQ R9, $64
	JLT  block
	FULL(DX, X1, X2, X3, X4)
	FULL(R12, X5, X6, X7, X8)
	JMP  rounds

next:
	MOVQ tStride+8(FP), AX
	ADDQ AX, AX
	ADDQ AX, t+0(FP)
	MOVQ itemStride+24(FP), AX
	ADDQ AX, AX
	ADDQ AX, items+16(FP)
	ADDQ $64, out+32(FP)
	INCQ done+64(FP)
	DECQ pairs+40(FP)
	JNE  pair

return:
	RET

far0:
	FAR(BX, DX, R8, near0, copy0, both0)

far1:
	FAR(R13, R12, R9, near1, copy1, both1)

// SHA-256 of sixteen one-block frames at a time, one in each 32-bit lane of
// AVX-512's registers. It has rotations, and logic of three operands, in one
// instruction: about 101 cycles of work a digest for a vector unit, and there
// are two. The SHA extensions need 96 where they do two rounds in three cycles.

DATA iv32<>+0x00(SB)/8, $0xbb67ae856a09e667
DATA iv32<>+0x08(SB)/8, $0xa54ff53a3c6ef372
DATA iv32<>+0x10(SB)/8, $0x9b05688c510e527f
DATA iv32<>+0x18(SB)/8, $0x5be0cd191f83d9ab
GLOBL iv32<>(SB), RODATA|NOPTR, $32

// ROUND16 with w the word of the message; the constants are at R12.
#define ROUND16(i, a, b, c, d, e, f, g, h, w) \
	VPADDD.BCST 4*i(R12), w, Z8      \
	VPRORD      $6, e, Z9            \
	VPRORD      $11, e, Z10          \
	VPRORD      $25, e, Z11          \
	VMOVDQA64   e, Z12               \
	VPADDD      Z8, h, h             \
	VPTERNLOGD  $0x96, Z11, Z10, Z9  \
	VPTERNLOGD  $0xca, g, f, Z12     \
	VPADDD      Z12, h, h            \
	VPRORD      $2, a, Z13           \
	VPRORD      $13, a, Z14          \
	VPRORD      $22, a, Z15          \
	VPADDD      Z9, h, h             \
	VMOVDQA64   a, Z8                \
	VPTERNLOGD  $0x96, Z15, Z14, Z13 \
	VPTERNLOGD  $0xe8, c, b, Z8      \
	VPADDD      h, d, d              \
	VPADDD      Z13, h, h            \
	VPADDD      Z8, h, h

// EXPAND16 replaces w0 by the word sixteen after it.
#define EXPAND16(w0, w1, w9, w14) \
	VPRORD      $7, w1, Z8           \
	VPRORD      $18, w1, Z9          \
	VPSRLD      $3, w1, Z10          \
	VPADDD      w9, w0, w0           \
	VPTERNLOGD  $0x96, Z10, Z9, Z8   \
	VPRORD      $17, w14, Z11        \
	VPRORD      $19, w14, Z12        \
	VPSRLD      $10, w14, Z13        \
	VPADDD      Z8, w0, w0           \
	VPTERNLOGD  $0x96, Z13, Z12, Z11 \
	VPADDD      Z11, w0, w0

#define STEP16(i, a, b, c, d, e, f, g, h, w0, w1, w9, w14) \
	EXPAND16(w0, w1, w9, w14) \
	ROUND16(i, a, b, c, d, e, f, g, h, w0)

// ROW16 gathers 16 bytes of every fourth lane.
#define ROW16(at, Z) \
	VBROADCASTI32X4 at(DI), Z         \
	VBROADCASTI32X4 at+256(DI), K4, Z \
	VBROADCASTI32X4 at+512(DI), K5, Z \
	VBROADCASTI32X4 at+768(DI), K6, Z

// WORDS16 makes four message words of all lanes from 16 bytes of each lane.
#define WORDS16(at, w0, w1, w2, w3) \
	ROW16(at, Z0)          \
	ROW16(at+64, Z1)       \
	ROW16(at+128, Z2)      \
	ROW16(at+192, Z3)      \
	VPUNPCKLDQ  Z1, Z0, Z4 \
	VPUNPCKHDQ  Z1, Z0, Z5 \
	VPUNPCKLDQ  Z3, Z2, Z6 \
	VPUNPCKHDQ  Z3, Z2, Z7 \
	VPUNPCKLQDQ Z6, Z4, w0 \
	VPUNPCKHQDQ Z6, Z4, w1 \
	VPUNPCKLQDQ Z7, Z5, w2 \
	VPUNPCKHQDQ Z7, Z5, w3

// STORE16 writes half a digest of every fourth lane.
#define STORE16(at, Z) \
	VEXTRACTI32X4 $0, Z, at(R13)     \
	VEXTRACTI32X4 $1, Z, at+128(R13) \
	VEXTRACTI32X4 $2, Z, at+256(R13) \
	VEXTRACTI32X4 $3, Z, at+384(R13)

// HALF16 writes half of all digests: the words a ‖ b and c ‖ d.
#define HALF16(at, a, b, c, d) \
	VPUNPCKLDQ  a, b, Z8     \
	VPUNPCKHDQ  a, b, Z9     \
	VPUNPCKLDQ  c, d, Z10    \
	VPUNPCKHDQ  c, d, Z11    \
	VPUNPCKLQDQ Z10, Z8, Z12 \
	VPUNPCKHQDQ Z10, Z8, Z13 \
	VPUNPCKLQDQ Z11, Z9, Z14 \
	VPUNPCKHQDQ Z11, Z9, Z15 \
	STORE16(at, Z12)         \
	STORE16(at+32, Z13)      \
	STORE16(at+64, Z14)      \
	STORE16(at+96, Z15)

// func sha256x16(t *template, items *[]byte, out *[4]uint64, groups int, filter *byte, lines uint64) (done int)
TEXT ·sha256x16(SB), 0, $1152-56
	MOVQ  $0, done+48(FP)
	MOVQ  t+0(FP), BX
	MOVQ  items+8(FP), R11
	MOVQ  out+16(FP), R13
	LEAQ  blocks-1152(SP), DI // sixteen blocks, then their lengths in bits
	ADDQ  $63, DI
	ANDQ  $~63, DI
	MOVQ  template_off(BX), R9
	MOVL  $55, R10
	SUBQ  R9, R10 // what fits in one block
	MOVL  $0x00f0, AX
	KMOVW AX, K4
	MOVL  $0x0f00, AX
	KMOVW AX, K5
	MOVL  $0xf000, AX
	KMOVW AX, K6

group:
	VMOVDQU64       template_head(BX), Z16
	VMOVDQU64       template_lens(BX), Z17
	VBROADCASTI32X4 swap<>(SB), Z18
	MOVL            $0x80, AX
	VPBROADCASTB    AX, Z19
	XORL            R8, R8

	// Loads that are masked byte by byte touch nothing but the item.
lane:
	MOVQ         (R11), SI
	MOVQ         8(R11), CX
	CMPQ         CX, R10
	JHI          return
	SUBQ         R9, SI
	MOVQ         $-1, AX
	BZHIQ        CX, AX, AX
	SHLXQ        R9, AX, AX
	KMOVQ        AX, K1
	ADDQ         R9, CX
	XORL         AX, AX
	BTSQ         CX, AX
	KMOVQ        AX, K2
	VMOVDQU8.Z   (SI), K1, Z0
	VPBROADCASTQ 8(R11), Z1
	VPSHUFB      Z17, Z1, Z1
	VPTERNLOGD   $0xfe, Z16, Z1, Z0 // or
	VMOVDQU8     Z19, K2, Z0
	VPSHUFB      Z18, Z0, Z0
	MOVQ         R8, AX
	SHLQ         $6, AX
	VMOVDQU64    Z0, (DI)(AX*1)
	SHLL         $3, CX
	MOVL         CX, 1024(DI)(R8*4)
	ADDQ         $24, R11
	INCQ         R8
	CMPQ         R8, $16
	JLT          lane

	WORDS16(0, Z16, Z17, Z18, Z19)
	WORDS16(16, Z20, Z21, Z22, Z23)
	WORDS16(32, Z24, Z25, Z26, Z27)
	WORDS16(48, Z28, Z29, Z30, Z31)
	VMOVDQU64 1024(DI), Z31
	VPBROADCASTD iv32<>+0(SB), Z0
	VPBROADCASTD iv32<>+4(SB), Z1
	VPBROADCASTD iv32<>+8(SB), Z2
	VPBROADCASTD iv32<>+12(SB), Z3
	VPBROADCASTD iv32<>+16(SB), Z4
	VPBROADCASTD iv32<>+20(SB), Z5
	VPBROADCASTD iv32<>+24(SB), Z6
	VPBROADCASTD iv32<>+28(SB), Z7
	LEAQ K<>(SB), R12
	ROUND16(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z16)
	ROUND16(1, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z17)
	ROUND16(2, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z18)
	ROUND16(3, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z19)
	ROUND16(4, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z20)
	ROUND16(5, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z21)
	ROUND16(6, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z22)
	ROUND16(7, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z23)
	ROUND16(8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z24)
	ROUND16(9, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z25)
	ROUND16(10, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z26)
	ROUND16(11, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z27)
	ROUND16(12, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z28)
	ROUND16(13, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z29)
	ROUND16(14, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z30)
	ROUND16(15, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z31)
	MOVQ $3, AX

expand:
	ADDQ $64, R12
	STEP16(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z16, Z17, Z25, Z30)
	STEP16(1, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z17, Z18, Z26, Z31)
	STEP16(2, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z18, Z19, Z27, Z16)
	STEP16(3, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z19, Z20, Z28, Z17)
	STEP16(4, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z20, Z21, Z29, Z18)
	STEP16(5, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z21, Z22, Z30, Z19)
	STEP16(6, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z22, Z23, Z31, Z20)
	STEP16(7, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z23, Z24, Z16, Z21)
	STEP16(8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z24, Z25, Z17, Z22)
	STEP16(9, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z25, Z26, Z18, Z23)
	STEP16(10, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z26, Z27, Z19, Z24)
	STEP16(11, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z27, Z28, Z20, Z25)
	STEP16(12, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z28, Z29, Z21, Z26)
	STEP16(13, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z29, Z30, Z22, Z27)
	STEP16(14, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z30, Z31, Z23, Z28)
	STEP16(15, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z31, Z16, Z24, Z29)
	DECQ AX
	JNE expand

	VPADDD.BCST iv32<>+0(SB), Z0, Z0
	VPADDD.BCST iv32<>+4(SB), Z1, Z1
	VPADDD.BCST iv32<>+8(SB), Z2, Z2
	VPADDD.BCST iv32<>+12(SB), Z3, Z3
	VPADDD.BCST iv32<>+16(SB), Z4, Z4
	VPADDD.BCST iv32<>+20(SB), Z5, Z5
	VPADDD.BCST iv32<>+24(SB), Z6, Z6
	VPADDD.BCST iv32<>+28(SB), Z7, Z7
	HALF16(0, Z0, Z1, Z2, Z3)
	HALF16(16, Z4, Z5, Z6, Z7)

	MOVQ  filter+32(FP), SI
	MOVQ  lines+40(FP), CX
	MOVQ  $16, R8
prefetch:
	MOVQ  (R13), AX
	MULQ  CX
	SHLQ  $6, DX
	PREFETCHT0 (SI)(DX*1)
	ADDQ  $32, R13
	DECQ  R8
	JNE   prefetch

	INCQ done+48(FP)
	DECQ groups+24(FP)
	JNE  group

return:
	VZEROUPPER
	RET
