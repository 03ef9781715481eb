#pragma once
/// Choices of a row, of which a label says the right one.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct RowChoices {
  std::vector<std::string> texts;
  std::vector<std::string> names = {};  // what labels call them; empty: as right_choice says
};

/// Those of a cell: a JSON list of texts, or of {"label": "A", "text": "..."}, or {"label": [...],
/// "text": [...]}, as ARC's and CommonsenseQA's files have them; labels may be missing. Numbers are
/// taken as they are written. Errors: Fault::Data, beginning with `where`: it is something else.
RowChoices choices_of(std::string_view json, const std::string& where);

/// Errors: Fault::Data, beginning with `where`: fewer than two, or an empty one.
void require_choices(const RowChoices& choices, const std::string& where);

/// The number, from 0, of the choice that is called `label`, without blanks around it. Choices
/// without names are called 0, 1, ... and A, B, ... Nothing: the label is empty or -1, which says
/// that the right one is not known. Errors: Fault::Data, beginning with `where`: it is none of them.
std::optional<std::int32_t> right_choice(const RowChoices& choices, std::string_view label,
                                         const std::string& where);

}  // namespace tessera
