#pragma once
/// Post-processors: which special tokens stand around a text or a pair of texts.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/json_part.h"
#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

/// A part of what a model is given: a text, or a special token.
struct TemplatePart {
  int text = -1;  // 0: the first text, 1: the second, -1: the token `id`
  std::int32_t id = kNoId;
  std::int32_t type = 0;  // type id of its tokens
};
using Template = std::vector<TemplatePart>;

struct Templates {
  Template single = {{.text = 0}};
  Template pair = {{.text = 0}, {.text = 1, .type = 1}};
};

/// The templates that `part` describes.
/// Errors: as of JsonPart; a type that the table lacks; two post-processors that both add tokens.
Templates make_templates(const JsonPart& part);

}  // namespace tessera::tokenizer
