#pragma once
/// Guard bytes: gaps between buffers are filled with a pattern and checked after every call.

#include <cstddef>
#include <functional>
#include <vector>

#include "tessera/plan/plan.h"

namespace tessera {

/// Puts a kernel around each kernel of a plan with guards. Before the call it fills the guards of
/// the buffers that are alive again; after it, it checks the guards of every buffer that is alive,
/// and throws Broken, naming the call and the buffer, where one was written. The pattern is not a
/// number in f32: what reads beyond a buffer is seen too, in its results.
///
/// In:   a plan whose guard_bytes are not zero, and its pools, which must outlive the plan.
/// Out:  by program, what is to be called before each of its runs.
std::vector<std::function<void()>> watch_guards(Plan& plan, const PerMemory<std::byte*>& pools);

}  // namespace tessera
