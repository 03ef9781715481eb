#pragma once
/// What the planner chooses about a run, a row for each field of the configuration that says it;
/// with() in choice.h sets them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tessera/planner/choice.h"

namespace tessera {

struct Knob {
  std::string_view field;  // its name, which is a flag too
  /// Other fields that tell it, separated by blanks. A planned run says nothing by them.
  std::string_view others;
  /// In which respect plans differ that differ in it; empty: it follows from others.
  std::string_view respect;
  /// Into a planned run: no where others say it; with experts, those of models that have some.
  enum class Written : std::uint8_t { Always, WhereChosen, WithExperts, No };
  Written written = Written::Always;
};

/// In the order in which flags are printed.
std::span<const Knob> knobs();

/// A flag or a file said it, by this field or by another: it stays as it is.
bool is_given(const Knob& knob, const RunConfig& base);
/// The same by the name of its field.
bool is_given(std::string_view field, const RunConfig& base);

}  // namespace tessera
