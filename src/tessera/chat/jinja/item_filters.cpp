#include <algorithm>
#include <charconv>
#include <functional>

#include "tessera/base/text.h"
#include "tessera/chat/jinja/characters.h"
#include "tessera/chat/jinja/filters.h"
#include "tessera/chat/jinja/operators.h"
#include "tessera/chat/jinja/tests.h"
#include "tessera/chat/jinja/value_text.h"

namespace tessera::jinja {

namespace {

using Of = ItemsValue::Of;

/// The attribute that a path names, as "function.name" or "0.name"; of a number that item.
Value at_path(Heap& heap, Value value, const Value& path) {
  if (!path.is(Kind::Text)) return item_of(heap, value, path);
  for (const std::string& part : split(path.text->bytes, '.')) {
    std::int64_t whole = 0;
    const char* const end = part.data() + part.size();
    const bool digits = !part.empty() &&
                        part.find_first_not_of("0123456789") == std::string::npos &&
                        std::from_chars(part.data(), end, whole).ec == std::errc();
    value = item_of(heap, value, digits ? value_of(whole) : heap.text(part));
  }
  return value;
}

Value folded(Heap& heap, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::Text)) return value;
  return heap.text(lower(value.text->bytes));
}

Value join_filter(const FilterCall& c) {
  const Bound bound = c.bind(";d attribute");
  const std::string separator = bound.get(0) != nullptr ? str(c.heap, *bound.get(0)) : "";
  const Value* const attribute = bound.get(1);
  std::string out;
  bool first = true;
  for (const Value& item : items_of(c.heap, c.value)) {
    if (!first) out += separator;
    first = false;
    const bool whole = attribute == nullptr || attribute->is(Kind::None);
    append_str(c.heap, out, whole ? item : at_path(c.heap, item, *attribute));
    if (std::ssize(out) > c.heap.room()) bad("a text is too long");
  }
  return c.heap.text(std::move(out));
}

/// select, reject, selectattr, rejectattr.
Value selected(const FilterCall& c, bool keeps, bool by_attribute) {
  const std::vector<Value>& given = c.arguments.given;
  const std::size_t first = by_attribute ? 1 : 0;
  if (given.size() < first) bad(c.name, " lacks the name of an attribute");
  std::string test;
  Arguments others;
  if (given.size() > first) {
    if (!given[first].is(Kind::Text)) bad(c.name, ": the test is ", kind_text(given[first]));
    test = given[first].text->bytes;
    if (!is_test(test)) bad("the test '", test, "' is not supported");
    others.given.assign(given.begin() + static_cast<std::ptrdiff_t>(first) + 1, given.end());
    others.named = c.arguments.named;
  } else if (!c.arguments.named.empty()) {
    bad(c.name, " has no argument '", c.arguments.named[0].first, "'");
  }
  std::vector<Value> out;
  for (const Value& item : items_of(c.heap, c.value)) {
    const Value judged = by_attribute ? at_path(c.heap, item, given[0]) : item;
    const bool holds = test.empty() ? is_true(judged) : apply_test(c.heap, test, judged, others);
    if (holds == keeps) out.push_back(item);
  }
  return c.heap.list(std::move(out), Of::Generator);
}

Value map_filter(const FilterCall& c) {
  const std::vector<Value>& given = c.arguments.given;
  std::vector<Value> out;
  if (given.empty()) {
    const Bound bound = c.bind("attribute;default");
    const Value* const otherwise = bound.get(1);
    for (const Value& item : items_of(c.heap, c.value)) {
      const Value value = at_path(c.heap, item, *bound.get(0));
      const bool missing = value.is(Kind::Undefined) && otherwise != nullptr;
      out.push_back(missing ? *otherwise : value);
    }
  } else {
    if (!given[0].is(Kind::Text)) bad("map: the filter is ", kind_text(given[0]));
    const Arguments others{{given.begin() + 1, given.end()}, c.arguments.named};
    for (const Value& item : items_of(c.heap, c.value))
      out.push_back(apply_filter(c.heap, given[0].text->bytes, item, others));
  }
  return c.heap.list(std::move(out), Of::Generator);
}

Value items_filter(const FilterCall& c) {
  c.bind("");
  std::vector<Value> out;
  if (!c.value.is(Kind::Undefined) && !c.value.is(Kind::Dict))
    bad("items of ", kind_text(c.value), "; a dict is due");
  if (c.value.is(Kind::Dict)) {
    for (const auto& [key, value] : c.value.dict->entries)
      out.push_back(c.heap.list({key, value}, Of::Tuple));
  }
  return c.heap.list(std::move(out), Of::Generator);
}

/// Sorts by keys, which it makes once.
std::vector<Value> sorted(Heap& heap, const std::vector<Value>& items, bool reverse,
                          const std::function<Value(const Value&)>& key_of) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) keyed.emplace_back(key_of(item), item);
  // Python's sort keeps the order of what is alike, also in reverse.
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return reverse ? order_of(heap, b.first, a.first) < 0 : order_of(heap, a.first, b.first) < 0;
  });
  std::vector<Value> out;
  for (const auto& [key, item] : keyed) out.push_back(item);
  return out;
}

Value sort_filter(const FilterCall& c) {
  const Bound bound = c.bind(";reverse case_sensitive attribute");
  const bool exact = bound.truth(1, false);
  std::vector<Value> paths;
  if (const Value* const path = bound.get(2); path != nullptr && !path->is(Kind::None)) {
    if (path->is(Kind::Text)) {
      for (const std::string& one : split(path->text->bytes, ','))
        paths.push_back(c.heap.text(one));
    } else {
      paths.push_back(*path);
    }
  }
  const auto key_of = [&](const Value& item) {
    if (paths.empty()) return folded(c.heap, item, exact);
    std::vector<Value> parts;
    for (const Value& path : paths)
      parts.push_back(folded(c.heap, at_path(c.heap, item, path), exact));
    return c.heap.list(std::move(parts));
  };
  return c.heap.list(sorted(c.heap, items_of(c.heap, c.value), bound.truth(0, false), key_of));
}

Value dictsort(const FilterCall& c) {
  const Bound bound = c.bind(";case_sensitive by reverse");
  if (!c.value.is(Kind::Dict)) bad("dictsort of ", kind_text(c.value), "; a dict is due");
  const std::string by = bound.get(1) != nullptr ? bound.text(1).bytes : "key";
  if (by != "key" && by != "value") bad("dictsort by '", by, "'; by 'key' or 'value'");
  std::vector<Value> pairs;
  for (const auto& [key, value] : c.value.dict->entries)
    pairs.push_back(c.heap.list({key, value}, Of::Tuple));
  return c.heap.list(sorted(c.heap, pairs, bound.truth(2, false), [&](const Value& pair) {
    return folded(c.heap, pair.items->items[by == "key" ? 0 : 1], bound.truth(0, false));
  }));
}

Value first_filter(const FilterCall& c) {
  c.bind("");
  if (c.value.is(Kind::Items) && c.value.items->of == Of::Generator) {
    ItemsValue& items = *c.value.items;
    return items.taken < items.items.size() ? items.items[items.taken++] : Value{};
  }
  const std::vector<Value> items = items_of(c.heap, c.value);
  return items.empty() ? Value{} : items.front();
}

Value last_filter(const FilterCall& c) {
  c.bind("");
  if (c.value.is(Kind::Items) && c.value.items->of == Of::Generator)
    bad("last of a generator; make it a list first");
  const std::vector<Value> items = items_of(c.heap, c.value);
  return items.empty() ? Value{} : items.back();
}

Value unique(const FilterCall& c) {
  const Bound bound = c.bind(";case_sensitive attribute");
  const Value* const path = bound.get(1);
  std::vector<Value> out, seen;
  for (const Value& item : items_of(c.heap, c.value)) {
    const bool whole = path == nullptr || path->is(Kind::None);
    const Value key =
        folded(c.heap, whole ? item : at_path(c.heap, item, *path), bound.truth(0, false));
    const bool known =
        std::ranges::any_of(seen, [&](const Value& other) { return is_equal(c.heap, other, key); });
    if (known) continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return c.heap.list(std::move(out), Of::Generator);
}

Value reverse(const FilterCall& c) {
  c.bind("");
  if (c.value.is(Kind::Text)) {
    const std::string text = c.text();
    std::vector<std::string_view> characters = characters_of(text);
    std::ranges::reverse(characters);
    return c.heap.text(join(characters, ""));
  }
  const bool listed = c.value.is(Kind::Items) && c.value.items->of == Of::Generator;
  std::vector<Value> items = items_of(c.heap, c.value);
  std::ranges::reverse(items);
  return c.heap.list(std::move(items), listed ? Of::List : Of::Generator);
}

/// min and max.
Value extreme(const FilterCall& c, int sign) {
  const Bound bound = c.bind(";case_sensitive attribute");
  const Value* const path = bound.get(1);
  Value out, best;
  bool any = false;
  for (const Value& item : items_of(c.heap, c.value)) {
    const bool whole = path == nullptr || path->is(Kind::None);
    const Value key =
        folded(c.heap, whole ? item : at_path(c.heap, item, *path), bound.truth(0, false));
    if (any && sign * order_of(c.heap, key, best) >= 0) continue;
    any = true;
    best = key;
    out = item;
  }
  return out;
}

Value sum_filter(const FilterCall& c) {
  const Bound bound = c.bind(";attribute start");
  const Value* const path = bound.get(0);
  Value out = bound.get(1) != nullptr ? *bound.get(1) : value_of(std::int64_t{0});
  for (const Value& item : items_of(c.heap, c.value)) {
    const bool whole = path == nullptr || path->is(Kind::None);
    out = binary(c.heap, "+", out, whole ? item : at_path(c.heap, item, *path));
  }
  return out;
}

constexpr FilterRow kItemFilters[] = {
    {"join", join_filter},
    {"select", [](const FilterCall& c) { return selected(c, true, false); }},
    {"reject", [](const FilterCall& c) { return selected(c, false, false); }},
    {"selectattr", [](const FilterCall& c) { return selected(c, true, true); }},
    {"rejectattr", [](const FilterCall& c) { return selected(c, false, true); }},
    {"map", map_filter},
    {"list",
     [](const FilterCall& c) { return c.bind(""), c.heap.list(items_of(c.heap, c.value)); }},
    {"items", items_filter},
    {"dictsort", dictsort},
    {"sort", sort_filter},
    {"first", first_filter},
    {"last", last_filter},
    {"unique", unique},
    {"reverse", reverse},
    {"min", [](const FilterCall& c) { return extreme(c, 1); }},
    {"max", [](const FilterCall& c) { return extreme(c, -1); }},
    {"sum", sum_filter},
};

}  // namespace

const FilterRow* find_item_filter(std::string_view name) {
  const auto at = std::ranges::find(kItemFilters, name, &FilterRow::name);
  return at == std::end(kItemFilters) ? nullptr : at;
}

}  // namespace tessera::jinja
