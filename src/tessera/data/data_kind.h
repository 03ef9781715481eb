#pragma once
/// Of a run's data: what it can be, and which part of it is meant.

#include <string_view>

namespace tessera {

/// What data can be. Program: samples that a program makes itself.
enum class DataKind { Text, TokenFiles, Pictures, Program };
/// "texts", "token files", "pictures", "samples of a program"
std::string_view to_text(DataKind kind);

/// What a run trains on, and what it validates on.
enum class Part { Train, HeldOut };

}  // namespace tessera
