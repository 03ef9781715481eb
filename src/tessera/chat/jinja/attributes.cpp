#include <algorithm>

#include "tessera/chat/jinja/characters.h"
#include "tessera/chat/jinja/loop.h"
#include "tessera/chat/jinja/methods.h"
#include "tessera/chat/jinja/value.h"

namespace tessera::jinja {

namespace {

Value method_of(Heap& heap, const Value& self, const std::string& name) {
  auto made = std::make_unique<FunctionValue>();
  made->name = name;
  made->self = self;
  made->is_method = true;
  Value out;
  out.kind = Kind::Function;
  out.function = heap.keep(std::move(made));
  return out;
}

[[noreturn]] void refuse_of_undefined(const Value& a, std::string_view what) {
  if (a.missing == nullptr) bad("'", what, "' of something that is not defined");
  bad("'", what, "' of '", *a.missing, "', which is not defined");
}

/// Where a slice begins, how far it goes, and its step, as Python's slice.indices.
struct Run {
  std::int64_t from = 0, to = 0, step = 1;
};

Run run_of(std::int64_t count, const Value& from, const Value& to, const Value& step) {
  const auto number = [](const Value& value) {
    if (!value.is_whole()) bad("a slice with ", kind_text(value), " where a whole number belongs");
    return value.as_whole();
  };
  const auto is_open = [](const Value& value) {
    return value.is(Kind::Undefined) || value.is(Kind::None);
  };
  Run out;
  if (!is_open(step)) out.step = number(step);
  if (out.step == 0) bad("a slice with step 0");
  const bool back = out.step < 0;
  const std::int64_t least = back ? -1 : 0, most = back ? count - 1 : count;
  const auto bound = [&](const Value& value, std::int64_t open) {
    if (is_open(value)) return open;
    const std::int64_t at = number(value);
    return std::clamp(at < 0 ? at + count : at, least, most);
  };
  out.from = bound(from, back ? most : least);
  out.to = bound(to, back ? least : most);
  return out;
}

template <typename Take>
void each_of(const Run& run, const Take& take) {
  // Counted, so that a huge step does not overflow.
  const std::int64_t far = run.step > 0 ? run.to - run.from : run.from - run.to;
  if (far <= 0) return;
  const std::uint64_t step = run.step > 0 ? static_cast<std::uint64_t>(run.step)
                                          : 0 - static_cast<std::uint64_t>(run.step);
  const std::uint64_t count = (static_cast<std::uint64_t>(far) - 1) / step + 1;
  std::int64_t at = run.from;
  for (std::uint64_t i = 0; i < count; ++i) {
    take(static_cast<std::size_t>(at));
    if (i + 1 < count) at += run.step;
  }
}

}  // namespace

Value attribute_of(Heap& heap, const Value& a, const std::string& name) {
  heap.spend(1);
  if (name.starts_with("__")) bad("the attribute '", name, "' is not supported");
  switch (a.kind) {
    case Kind::Undefined: refuse_of_undefined(a, name);
    case Kind::Space:
      for (const auto& [key, value] : a.space->entries) {
        if (key == name) return value;
      }
      break;
    case Kind::Loop: return a.loop->attribute(heap, name);
    default: break;
  }
  if (is_method(a, name)) return method_of(heap, a, name);
  if (a.is(Kind::Dict)) {
    if (const Value* const value = find_key(heap, *a.dict, name)) return *value;
  }
  Value out;
  out.missing = &heap.text(name).text->bytes;
  return out;
}

Value item_of(Heap& heap, const Value& a, const Value& key) {
  heap.spend(1);
  if (a.is(Kind::Undefined))
    refuse_of_undefined(a, key.is(Kind::Text) ? key.text->bytes : std::string("an item"));
  const bool hashable =
      !key.is(Kind::Dict) && !(key.is(Kind::Items) && key.items->of != ItemsValue::Of::Tuple);
  if (a.is(Kind::Dict) && hashable) {
    if (const Value* const value = find_key(heap, *a.dict, key)) return *value;
  }
  if (key.is(Kind::Text)) return attribute_of(heap, a, key.text->bytes);
  if (!key.is_whole()) return {};
  std::int64_t at = key.as_whole();
  if (a.is(Kind::Items) && a.items->of != ItemsValue::Of::Generator &&
      a.items->of != ItemsValue::Of::View) {
    const std::vector<Value>& items = a.items->items;
    if (at < 0) at += std::ssize(items);
    if (at >= 0 && at < std::ssize(items)) return items[static_cast<std::size_t>(at)];
  } else if (a.is(Kind::Text)) {
    const std::vector<std::string_view> characters = characters_of(a.text->bytes);
    heap.spend(1 + std::ssize(characters) / 8);
    if (at < 0) at += std::ssize(characters);
    if (at >= 0 && at < std::ssize(characters))
      return heap.text(std::string(characters[static_cast<std::size_t>(at)]));
  }
  return {};
}

Value slice_of(Heap& heap, const Value& a, const Value& from, const Value& to, const Value& step) {
  if (a.is(Kind::Text)) {
    const std::vector<std::string_view> characters = characters_of(a.text->bytes);
    heap.spend(1 + std::ssize(characters) / 8);
    std::string out;
    each_of(run_of(std::ssize(characters), from, to, step),
            [&](std::size_t i) { out += characters[i]; });
    return heap.text(std::move(out), a.text->safe);
  }
  if (!a.is(Kind::Items) || a.items->of == ItemsValue::Of::Generator ||
      a.items->of == ItemsValue::Of::View)
    bad(kind_text(a), " cannot be sliced");
  std::vector<Value> out;
  each_of(run_of(std::ssize(a.items->items), from, to, step),
          [&](std::size_t i) { out.push_back(a.items->items[i]); });
  return heap.list(std::move(out), a.items->of);
}

}  // namespace tessera::jinja
