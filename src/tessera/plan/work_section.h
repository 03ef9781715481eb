#pragma once
/// The work sections of one program: where its buffers lie, and what fills it. For lower.cpp.

#include <map>
#include <string>
#include <vector>

#include "tessera/plan/memory.h"
#include "tessera/plan/plan.h"
#include "tessera/plan/state_section.h"
#include "tessera/plan/values.h"

namespace tessera {

/// The work section of one memory.
class WorkSection {
 public:
  /// `guard_bytes`: on both sides of every buffer.
  WorkSection(Memory memory, const ProgramValues& values, std::int64_t guard_bytes);

  /// A 16-bit copy in this memory, below the section, which other buffers may use while it is idle.
  void add_copy(const CopyPlace& copy);

  /// Scratch memory of a call at that time; its number.
  std::size_t add_workspace(std::int64_t bytes, std::int32_t time);
  /// Once, when all workspaces are known. `exact`: as of plan_memory().
  void lay_out(bool exact);

  /// The place of a buffer of the values, given by index.
  Place place(int buffer) const;
  Place workspace(std::size_t number) const { return at_offset(number); }
  WorkUse use() const;
  /// Empty without guards.
  std::vector<GuardedBuffer> guarded() const;
  /// Bytes of each content at the fullest moment.
  MemoryUse content(const std::vector<Region>& regions) const;

 private:
  /// From one place of a ring to the next.
  std::int64_t stride(const Buffer& buffer) const { return aligned(buffer.bytes) + guard_; }
  const Buffer& buffer(int b) const { return values_.buffers()[static_cast<std::size_t>(b)]; }
  Place at_offset(std::size_t lifetime) const {
    return {memory_, Place::Section::Work, layout_.offsets[lifetime] + guard_};
  }
  std::int32_t fullest_moment() const;
  std::int64_t& use_of(const Buffer& buffer, const std::vector<Region>& regions,
                       MemoryUse& use) const;

  const Memory memory_;
  const ProgramValues& values_;
  const std::int64_t guard_;
  std::vector<Lifetime> lifetimes_;   // of buffers, then of workspaces
  std::map<int, std::size_t> index_;  // buffer -> lifetime
  std::vector<KeptBuffer> copies_;
  std::vector<std::string> copy_paths_;  // of these
  MemoryLayout layout_;
};

}  // namespace tessera
