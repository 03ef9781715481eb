#include "tessera/chat/jinja/loop.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace tessera::jinja {

bool LoopValue::advance() {
  before = now;
  now = after ? std::exchange(after, std::nullopt) : fetch();
  ++index;
  return now.has_value();
}

const std::optional<Value>& LoopValue::peek() {
  if (!after) after = fetch();
  return after;
}

Value LoopValue::attribute(Heap& heap, const std::string& name) {
  if (name == "index") return value_of(index + 1);
  if (name == "index0") return value_of(index);
  if (name == "first") return value_of(index == 0);
  if (name == "last") return value_of(!peek().has_value());
  if (name == "previtem") return before.value_or(Value{});
  if (name == "nextitem") return peek().value_or(Value{});
  if (name == "length" || name == "revindex" || name == "revindex0") {
    if (filtered) {  // all items are taken, as Jinja does
      auto rest = std::make_shared<std::vector<Value>>();
      if (after) rest->push_back(*after);
      while (const std::optional<Value> item = fetch()) {
        heap.spend(1, sizeof(Value));
        rest->push_back(*item);
      }
      count = index + 1 + std::ssize(*rest);
      filtered = false;
      after.reset();
      fetch = [rest, at = std::size_t{0}]() mutable -> std::optional<Value> {
        if (at == rest->size()) return std::nullopt;
        return (*rest)[at++];
      };
    }
    const std::int64_t behind = count - index - 1;
    return value_of(name == "length" ? count : name == "revindex0" ? behind : behind + 1);
  }
  static constexpr std::string_view kOthers[] = {"depth", "depth0", "cycle", "changed"};
  if (std::ranges::find(kOthers, name) != std::end(kOthers))
    bad("'loop.", name, "' is not supported");
  return {};
}

}  // namespace tessera::jinja
