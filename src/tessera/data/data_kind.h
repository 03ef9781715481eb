#pragma once
/// What the data of a run can be.

#include <string_view>

namespace tessera {

/// Text: questions about texts too. Program: samples that a program makes itself.
enum class DataKind { Text, TokenFiles, Pictures, Program };
/// "texts", "token files", "pictures", "samples of a program"
std::string_view to_text(DataKind kind);

}  // namespace tessera
