//go:build !purego

#include "textflag.h"

// func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET

// func xcr0() uint32
TEXT ·xcr0(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET

// func prefetch(p *byte)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ       p+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func prefetchBehind(p *byte)
TEXT ·prefetchBehind(SB), NOSPLIT, $0-8
	MOVQ       p+0(FP), AX
	PREFETCHT0 64(AX)
	PREFETCHT0 128(AX)
	PREFETCHT0 192(AX)
	RET

// func prefetchAll(base *byte, at *uint64, n int, span uintptr)
TEXT ·prefetchAll(SB), NOSPLIT, $0-32
	MOVQ base+0(FP), AX
	MOVQ at+8(FP), BX
	MOVQ n+16(FP), CX
	MOVQ span+24(FP), DX
	ADDQ AX, DX

loop:
	TESTQ      CX, CX
	JLE        done
	MOVQ       (BX), SI
	PREFETCHT0 (AX)(SI*1)
	PREFETCHT0 (DX)(SI*1)
	ADDQ       $8, BX
	DECQ       CX
	JMP        loop

done:
	RET
