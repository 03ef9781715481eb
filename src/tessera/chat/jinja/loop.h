#pragma once
/// The loop that a template is in.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tessera/chat/jinja/value.h"

namespace tessera::jinja {

/// What `loop` is in a body: it knows the items before and behind the one that is due. The next
/// item is looked for when somebody asks, as a filter of the loop may depend on what the body sets.
struct LoopValue final : Thing {
  std::function<std::optional<Value>()> fetch;  // the next item that the filter takes
  bool filtered = false;
  std::int64_t count = 0;  // items, without a filter
  std::int64_t index = -1;
  std::optional<Value> before, now, after;

  /// Goes to the next item; false: there is none.
  bool advance();
  /// loop.name; what Jinja does not have is undefined. Errors: Problem: not supported.
  Value attribute(Heap& heap, const std::string& name);

 private:
  const std::optional<Value>& peek();
};

}  // namespace tessera::jinja
