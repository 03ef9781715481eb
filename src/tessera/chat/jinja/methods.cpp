#include "tessera/chat/jinja/methods.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/chat/jinja/characters.h"

namespace tessera::jinja {

namespace {

constexpr std::string_view kTextMethods =
    "strip lstrip rstrip split rsplit splitlines startswith endswith replace upper lower title "
    "capitalize find rfind count join removeprefix removesuffix";
constexpr std::string_view kDictMethods = "items keys values get";
/// Python's others.
constexpr std::string_view kOtherTextMethods =
    "casefold center encode expandtabs format format_map index isalnum isalpha isascii isdecimal "
    "isdigit isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans "
    "partition rindex rjust rpartition swapcase translate zfill";
constexpr std::string_view kOtherDictMethods = "clear copy fromkeys pop popitem setdefault update";
constexpr std::string_view kOtherListMethods =
    "append clear copy count extend index insert pop remove reverse sort start stop step";
constexpr std::string_view kOtherNumberMethods =
    "as_integer_ratio bit_count bit_length conjugate denominator from_bytes fromhex hex imag "
    "is_integer numerator real to_bytes";

Value texts(Heap& heap, const std::vector<std::string_view>& parts) {
  std::vector<Value> out;
  out.reserve(parts.size());
  for (const std::string_view part : parts) out.push_back(heap.text(std::string(part)));
  return heap.list(std::move(out));
}

/// startswith and endswith: with one of several, too.
Value fits(std::string_view text, const Value& part, bool at_end, std::string_view name) {
  if (part.is(Kind::Items) && part.items->of == ItemsValue::Of::Tuple) {
    for (const Value& one : part.items->items) {
      if (is_true(fits(text, one, at_end, name))) return value_of(true);
    }
    return value_of(false);
  }
  if (!part.is(Kind::Text)) bad(name, "() of ", kind_text(part), "; a text is due");
  const std::string& bytes = part.text->bytes;
  return value_of(at_end ? text.ends_with(bytes) : text.starts_with(bytes));
}

Value found(std::string_view text, std::string_view part, bool last) {
  const std::size_t at = last ? text.rfind(part) : text.find(part);
  if (at == std::string_view::npos) return value_of(std::int64_t{-1});
  return value_of(count_characters(text.substr(0, at)));
}

std::int64_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return count_characters(text) + 1;
  std::int64_t out = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++out;
  return out;
}

Value joined(Heap& heap, std::string_view separator, const Value& items) {
  std::string out;
  bool first = true;
  for (const Value& item : items_of(heap, items)) {
    if (!item.is(Kind::Text)) bad("join() of ", kind_text(item), "; texts are due");
    if (!first) out += separator;
    first = false;
    out += item.text->bytes;
    if (std::ssize(out) > heap.room()) bad("a text is too long");
  }
  return heap.text(std::move(out));
}

Value text_method(Heap& heap, const TextValue& self, std::string_view name,
                  const Arguments& arguments) {
  if (self.safe) bad(name, "() of a text marked safe is not supported");
  const std::string& text = self.bytes;
  heap.spend(1 + std::ssize(text) / 64);
  const auto bind = [&](std::string_view parameters) { return Bound(name, arguments, parameters); };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const Bound bound = bind(";chars");
    const Ends ends = name == "strip" ? Ends::Both : name == "lstrip" ? Ends::Left : Ends::Right;
    return heap.text(std::string(stripped(text, ends, bound.some_text(0))));
  }
  if (name == "split" || name == "rsplit") {
    const Bound bound = bind(";sep maxsplit");
    return texts(heap, split_text(text, bound.some_text(0), bound.whole(1, -1), name == "rsplit"));
  }
  if (name == "splitlines") return bind(""), texts(heap, lines_of(text));
  if (name == "startswith" || name == "endswith")
    return fits(text, *bind("prefix").get(0), name == "endswith", name);
  if (name == "replace") {
    const Bound bound = bind("old new;count");
    return heap.text(
        replaced(text, bound.text(0).bytes, bound.text(1).bytes, bound.whole(2, -1), heap.room()));
  }
  if (name == "upper") return bind(""), heap.text(upper(text));
  if (name == "lower") return bind(""), heap.text(lower(text));
  if (name == "title") return bind(""), heap.text(titled(text));
  if (name == "capitalize") return bind(""), heap.text(capitalized(text));
  if (name == "find" || name == "rfind")
    return found(text, bind("sub").text(0).bytes, name == "rfind");
  if (name == "count") return value_of(count_of(text, bind("sub").text(0).bytes));
  if (name == "join") return joined(heap, text, *bind("iterable").get(0));
  const Bound bound = bind("part");
  const std::string& part = bound.text(0).bytes;
  std::string_view out = text;
  if (name == "removeprefix" && out.starts_with(part)) out.remove_prefix(part.size());
  if (name == "removesuffix" && out.ends_with(part)) out.remove_suffix(part.size());
  return heap.text(std::string(out));
}

}  // namespace

bool is_method(const Value& value, std::string_view name) {
  std::string_view has, others;
  if (value.is(Kind::Text)) {
    has = kTextMethods, others = kOtherTextMethods;
  } else if (value.is(Kind::Dict)) {
    has = kDictMethods, others = kOtherDictMethods;
  } else if (value.is(Kind::Items)) {
    others = kOtherListMethods;
  } else if (value.is_number()) {
    others = kOtherNumberMethods;
  } else if (value.is(Kind::Function)) {
    others = "name arguments catch_kwargs catch_varargs caller";
  }
  if (is_one_of(has, name)) return true;
  if (is_one_of(others, name)) bad("'", name, "' of ", kind_text(value), " is not supported");
  return false;
}

Value call_method(Heap& heap, const Value& self, std::string_view name,
                  const Arguments& arguments) {
  if (self.is(Kind::Text)) return text_method(heap, *self.text, name, arguments);
  DictValue& dict = *self.dict;
  heap.spend(1 + std::ssize(dict.entries));
  if (name == "get") {
    const Bound bound(name, arguments, "key;default");
    if (const Value* const value = find_key(heap, dict, *bound.get(0))) return *value;
    return bound.get(1) != nullptr ? *bound.get(1) : none();
  }
  const Bound bound(name, arguments, "");
  std::vector<Value> out;
  for (const auto& [key, value] : dict.entries) {
    out.push_back(name == "items"  ? heap.list({key, value}, ItemsValue::Of::Tuple)
                  : name == "keys" ? key
                                   : value);
  }
  return heap.list(std::move(out), ItemsValue::Of::View);
}

}  // namespace tessera::jinja
