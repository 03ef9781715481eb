#pragma once
/// What the rows of fields are made of.

#include <limits>
#include <span>
#include <string_view>

#include "tessera/config/fields.h"

namespace tessera::rows {

inline constexpr double kMost = 1e15;  // of counts: far from where 64 bits end
inline constexpr double kAnyHigh = std::numeric_limits<double>::infinity(), kAnyLow = -kAnyHigh;

/// The row of a field on which the report of `tessera plan` depends.
constexpr Field planned(Field field) {
  field.in_plan = true;
  return field;
}

/// The row of a text that is one of these words.
constexpr Field one_of(std::span<const std::string_view> words, Field field) {
  field.words = words;
  return field;
}

inline constexpr std::string_view kMixed = "with --mixed-precision, --bf16 or --fp16",
                                  kScaled = "with --fp16", kTokenFiles = "with token files",
                                  kOfTypes = "with --tokenizer-type", kRows = "with --text-column", kDialogues = "with dialogues", kStreams = "with --stream", kPictures = "with folders of pictures",
                                  kGroups = "with --task sentence_embedding",
                                  kLabels =
                                      "with --task sequence_classification or another on labels";

}  // namespace tessera::rows
