#include "tessera/chat/jinja/value.h"

#include <cmath>
#include <optional>

#include "tessera/base/utf8.h"
#include "tessera/chat/jinja/characters.h"
#include "tessera/chat/jinja/loop.h"

namespace tessera::jinja {

Value none() {
  Value out;
  out.kind = Kind::None;
  return out;
}

Value value_of(bool truth) {
  Value out;
  out.kind = Kind::Bool;
  out.truth = truth;
  return out;
}

Value value_of(std::int64_t whole) {
  Value out;
  out.kind = Kind::Int;
  out.whole = whole;
  return out;
}

Value value_of(double real) {
  Value out;
  out.kind = Kind::Float;
  out.real = real;
  return out;
}

void Heap::spend(std::int64_t steps, std::int64_t bytes) {
  steps_ += steps;
  bytes_ += bytes;
  if (steps_ > limits_.steps) bad("it takes more than ", grouped(limits_.steps), " steps");
  if (bytes_ > limits_.bytes) bad("its texts and lists take more than ", bytes_text(limits_.bytes));
}

Value Heap::text(std::string bytes, bool safe) {
  spend(1 + std::ssize(bytes) / 64, std::ssize(bytes));
  auto made = std::make_unique<TextValue>();
  made->bytes = std::move(bytes);
  made->safe = safe;
  Value out;
  out.kind = Kind::Text;
  out.text = keep(std::move(made));
  return out;
}

Value Heap::list(std::vector<Value> items, ItemsValue::Of of) {
  const std::int64_t count = std::ssize(items);
  spend(1 + count / 8, count * static_cast<std::int64_t>(sizeof(Value)));
  auto made = std::make_unique<ItemsValue>();
  made->of = of;
  made->items = std::move(items);
  Value out;
  out.kind = Kind::Items;
  out.items = keep(std::move(made));
  return out;
}

Value Heap::dict(std::vector<std::pair<Value, Value>> entries) {
  const std::int64_t count = std::ssize(entries);
  spend(1 + count / 8, 2 * count * static_cast<std::int64_t>(sizeof(Value)));
  auto made = std::make_unique<DictValue>();
  made->entries = std::move(entries);
  Value out;
  out.kind = Kind::Dict;
  out.dict = keep(std::move(made));
  return out;
}

std::string kind_text(const Value& value) {
  switch (value.kind) {
    case Kind::Undefined:
      return value.missing == nullptr ? std::string("undefined")
                                      : text("'", *value.missing, "', which is not defined");
    case Kind::None: return "none";
    case Kind::Bool: return "a boolean";
    case Kind::Int: return "a whole number";
    case Kind::Float: return "a number";
    case Kind::Text: return "a text";
    case Kind::Items:
      return value.items->of == ItemsValue::Of::List    ? "a list"
             : value.items->of == ItemsValue::Of::Tuple ? "a tuple"
             : value.items->of == ItemsValue::Of::Range ? "a range"
                                                        : "a generator";
    case Kind::Dict: return "a dict";
    case Kind::Space: return "a namespace";
    case Kind::Loop: return "a loop";
    case Kind::Function: return "a function";
  }
  return "";
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::Undefined:
    case Kind::None: return false;
    case Kind::Bool: return value.truth;
    case Kind::Int: return value.whole != 0;
    case Kind::Float: return value.real != 0;
    case Kind::Text: return !value.text->bytes.empty();
    case Kind::Items:
      return value.items->of == ItemsValue::Of::Generator || !value.items->items.empty();
    case Kind::Dict: return !value.dict->entries.empty();
    default: return true;
  }
}

bool is_equal(Heap& heap, const Value& a, const Value& b) {
  heap.spend(1);
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return a.as_whole() == b.as_whole();
    return a.as_real() == b.as_real();
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::Undefined:
    case Kind::None: return true;
    case Kind::Text: return a.text->bytes == b.text->bytes;
    case Kind::Items: {
      if (a.items == b.items) return true;
      if (a.items->of != b.items->of || a.items->of == ItemsValue::Of::Generator ||
          a.items->items.size() != b.items->items.size())
        return false;
      if (a.items->of == ItemsValue::Of::View) bad("views of dicts are compared");
      const Deeper deeper(heap);
      for (std::size_t i = 0; i < a.items->items.size(); ++i) {
        if (!is_equal(heap, a.items->items[i], b.items->items[i])) return false;
      }
      return true;
    }
    case Kind::Dict: {
      if (a.dict->entries.size() != b.dict->entries.size()) return false;
      const Deeper deeper(heap);
      for (const auto& [key, value] : a.dict->entries) {
        const Value* const other = find_key(heap, *b.dict, key);
        if (other == nullptr || !is_equal(heap, value, *other)) return false;
      }
      return true;
    }
    case Kind::Space: return a.space == b.space;
    case Kind::Loop: return a.loop == b.loop;
    default: return a.function == b.function;
  }
}

int order_of(Heap& heap, const Value& a, const Value& b) {
  heap.spend(1);
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole())
      return a.as_whole() < b.as_whole() ? -1 : a.as_whole() > b.as_whole();
    if (std::isnan(a.as_real()) || std::isnan(b.as_real()))
      bad("a number that is none is compared");
    return a.as_real() < b.as_real() ? -1 : a.as_real() > b.as_real();
  }
  if (a.is(Kind::Text) && b.is(Kind::Text)) return a.text->bytes.compare(b.text->bytes);
  const bool lists = a.is(Kind::Items) && b.is(Kind::Items) && a.items->of == b.items->of &&
                     (a.items->of == ItemsValue::Of::List || a.items->of == ItemsValue::Of::Tuple);
  if (!lists) bad(kind_text(a), " and ", kind_text(b), " have no order");
  const Deeper deeper(heap);
  const std::vector<Value>&x = a.items->items, &y = b.items->items;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!is_equal(heap, x[i], y[i])) return order_of(heap, x[i], y[i]);
  }
  return x.size() < y.size() ? -1 : x.size() > y.size();
}

bool contains(Heap& heap, const Value& all, const Value& one) {
  if (all.is(Kind::Text)) {
    if (!one.is(Kind::Text)) bad(kind_text(one), " is looked for in a text");
    heap.spend(1 + std::ssize(all.text->bytes) / 64);
    return all.text->bytes.find(one.text->bytes) != std::string::npos;
  }
  if (all.is(Kind::Dict)) return find_key(heap, *all.dict, one) != nullptr;
  if (all.is(Kind::Items) && all.items->of == ItemsValue::Of::Generator) {
    while (all.items->taken < all.items->items.size()) {
      if (is_equal(heap, all.items->items[all.items->taken++], one)) return true;
    }
    return false;
  }
  for (const Value& item : items_of(heap, all)) {
    if (is_equal(heap, item, one)) return true;
  }
  return false;
}

Value* find_key(Heap& heap, DictValue& dict, const Value& key) {
  switch (key.kind) {
    case Kind::Text: return find_key(heap, dict, key.text->bytes);
    case Kind::Items:
      if (key.items->of == ItemsValue::Of::Tuple) break;
      [[fallthrough]];
    case Kind::Dict: bad(kind_text(key), " cannot be the key of a dict");
    default: break;
  }
  for (auto& [k, value] : dict.entries) {
    if (is_equal(heap, k, key)) return &value;
  }
  return nullptr;
}

Value* find_key(Heap& heap, DictValue& dict, std::string_view key) {
  heap.spend(1 + std::ssize(dict.entries) / 8);
  for (auto& [k, value] : dict.entries) {
    if (k.is(Kind::Text) && k.text->bytes == key) return &value;
  }
  return nullptr;
}

void set_key(Heap& heap, DictValue& dict, const Value& key, const Value& value) {
  if (Value* const there = find_key(heap, dict, key)) {
    *there = value;
  } else {
    heap.spend(1, 2 * sizeof(Value));
    dict.entries.emplace_back(key, value);
  }
}

std::vector<Value> items_of(Heap& heap, const Value& value) {
  std::vector<Value> out;
  switch (value.kind) {
    case Kind::Undefined: break;
    case Kind::Text: {
      const std::vector<std::string_view> characters = characters_of(value.text->bytes);
      for (const std::string_view c : characters) out.push_back(heap.text(std::string(c)));
      break;
    }
    case Kind::Items: {
      ItemsValue& items = *value.items;
      const auto first = static_cast<std::ptrdiff_t>(items.taken);
      out.assign(items.items.begin() + first, items.items.end());
      if (items.of == ItemsValue::Of::Generator) items.taken = items.items.size();
      break;
    }
    case Kind::Dict:
      for (const auto& entry : value.dict->entries) out.push_back(entry.first);
      break;
    default: bad(kind_text(value), " has no items to go over");
  }
  heap.spend(1 + std::ssize(out), std::ssize(out) * static_cast<std::int64_t>(sizeof(Value)));
  return out;
}

std::int64_t length_of(const Value& value) {
  switch (value.kind) {
    case Kind::Undefined: return 0;
    case Kind::Text: return count_characters(value.text->bytes);
    case Kind::Dict: return std::ssize(value.dict->entries);
    case Kind::Items:
      if (value.items->of != ItemsValue::Of::Generator) return std::ssize(value.items->items);
      [[fallthrough]];
    default: bad(kind_text(value), " has no length");
  }
}

}  // namespace tessera::jinja
