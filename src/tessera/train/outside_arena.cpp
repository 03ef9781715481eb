#include "tessera/train/outside_arena.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/train/programs.h"

namespace tessera {

OutsideArena outside_arena(const Compiled& compiled, std::int64_t num_tokens) {
  OutsideArena out;
  out.text = num_tokens * static_cast<std::int64_t>(sizeof(std::int32_t));
  out.program = std::max(compiled.resident_before - out.text, std::int64_t{0});
  out.plan = std::max(compiled.resident_after - compiled.resident_before, std::int64_t{0});
  return out;
}

std::string to_text(const OutsideArena& o) {
  return text(bytes_text(o.program), " of program, ", bytes_text(o.text), " of text, ",
              bytes_text(o.plan), " of plan and kernels");
}

std::string to_json(const OutsideArena& o) {
  return text(R"({"program": )", o.program, R"(, "text": )", o.text, R"(, "plan": )", o.plan,
              R"(, "steps": )", o.steps, "}");
}

}  // namespace tessera
