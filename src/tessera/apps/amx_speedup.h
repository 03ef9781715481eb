#pragma once
/// How f32 products are best made on this machine, measured once per machine and program.

#include <functional>
#include <string>

#include "tessera/device/isa.h"

namespace tessera {

struct AmxSpeedup {
  double times = 1;          // as fast as multiply-adds
  std::string trouble = {};  // why it cannot be kept; empty: it is
};

/// The speedup that a file of `folder` keeps for `key`, or what `measure` finds, which is kept
/// then. A damaged file is replaced; of processes that measure at one time, all take what the first
/// keeps. Nothing is kept where `folder` is empty or cannot be written.
AmxSpeedup kept_amx_speedup(const std::string& folder, const std::string& key,
                            const std::function<double()>& measure);

/// That of this machine and program, kept in the user's cache folder. The machine has Isa::Amx.
AmxSpeedup amx_speedup();

/// "AMX measured 1.39 times as fast as multiply-adds", and what kept it from being kept.
std::string to_text(const AmxSpeedup& speedup);

}  // namespace tessera
