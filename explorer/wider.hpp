#pragma once
// RUBATO_WIDER before a function: compiled for any x86-64 and for those with wider registers; the
// results have the same bits. ThreadSanitizer is not ready when the loader chooses among clones.

#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define RUBATO_WIDER __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RUBATO_WIDER
#endif
