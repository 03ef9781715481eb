#pragma once
/// The memory of a run outside its arena.

#include <cstdint>
#include <string>

namespace tessera {

struct Compiled;

/// Bytes of the process outside the arena, by kind. The text's are counted; the others are by how
/// much the process grew, as the system reports. A batch has no bytes here: it is drawn into the
/// arena.
struct OutsideArena {
  std::int64_t program = 0;  // code, libraries and what they hold, stacks, flags
  std::int64_t text = 0;     // token ids of the text, 0 where none is loaded
  std::int64_t plan = 0;     // what compiling left: the plan, its kernels, oneDNN's code
  /// The peak that the first two runs of each program added: copies that oneDNN makes of
  /// operands within a call, code that had not run before.
  std::int64_t steps = 0;
};

OutsideArena outside_arena(const Compiled& compiled, std::int64_t num_tokens);

/// "39.1 MiB of program, 4.25 MiB of text, 12.0 MiB of plan and kernels": what is known at start
std::string to_text(const OutsideArena& outside);
/// As an object of JSON: {"program": 1, "text": 2, "plan": 3, "steps": 4}
std::string to_json(const OutsideArena& outside);

}  // namespace tessera
