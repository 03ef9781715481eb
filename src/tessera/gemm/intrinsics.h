#pragma once
/// Intrinsics of x86. From here on the file that includes this has no warnings of undefined values:
/// GCC 12 takes the undefined operands of its own intrinsics for ours (bug 105593).

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#endif
