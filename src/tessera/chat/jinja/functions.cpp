#include <algorithm>
#include <array>

#include "tessera/base/text.h"
#include "tessera/chat/jinja/methods.h"
#include "tessera/chat/jinja/value_text.h"

namespace tessera::jinja {

namespace {

Value range(Heap& heap, const Arguments& arguments) {
  const Bound bound("range", arguments, "a;b c");
  const bool one = bound.get(1) == nullptr;
  const std::int64_t from = one ? 0 : bound.whole(0, 0), to = bound.whole(one ? 0 : 1, 0),
                     step = bound.whole(2, 1);
  if (step == 0) bad("range() with step 0");
  constexpr std::int64_t kMost = 100'000;  // as Jinja's sandbox has it
  std::vector<Value> out;
  for (std::int64_t at = from; step > 0 ? at < to : at > to;) {
    if (std::ssize(out) == kMost) bad("range() has more than ", kMost, " numbers");
    out.push_back(value_of(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return heap.list(std::move(out), ItemsValue::Of::Range);
}

/// Pairs that dict() and namespace() take: those of a dict, and named arguments.
Value dict_of(Heap& heap, std::string_view of, const Arguments& arguments) {
  const Value out = heap.dict({});
  if (arguments.given.size() > 1) bad(of, "() has 1 argument without a name at most");
  if (!arguments.given.empty()) {
    const Value& from = arguments.given[0];
    if (!from.is(Kind::Dict)) bad(of, "() of ", kind_text(from), " is not supported");
    out.dict->entries = from.dict->entries;
  }
  for (const auto& [name, value] : arguments.named)
    set_key(heap, *out.dict, heap.text(name), value);
  return out;
}

Value space(Heap& heap, const Arguments& arguments) {
  const Value dict = dict_of(heap, "namespace", arguments);
  auto made = std::make_unique<SpaceValue>();
  for (const auto& [key, value] : dict.dict->entries) {
    if (!key.is(Kind::Text)) bad("namespace() with a name that is no text");
    if (key.text->bytes.starts_with("_"))
      bad("namespace() with the name '", key.text->bytes, "', which begins with _");
    made->entries.emplace_back(key.text->bytes, value);
  }
  Value out;
  out.kind = Kind::Space;
  out.space = heap.keep(std::move(made));
  return out;
}

Value time_text(Heap& heap, const Arguments& arguments, const std::tm& now) {
  const Bound bound("strftime_now", arguments, "format");
  const std::string& form = bound.text(0).bytes;
  std::string out;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      out += form[i];
      continue;
    }
    std::string part = "%";
    if (i + 2 < form.size() && form[i + 1] == '-') part += form[++i];
    const char letter = i + 1 < form.size() ? form[++i] : ' ';
    if (std::string_view("aAbBcdeDFHIjmMpSTuUwWxXyY%").find(letter) == std::string_view::npos)
      bad("strftime_now: '", part, letter, "' is not supported");
    part += letter;
    std::array<char, 100> buffer;
    out.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), part.c_str(), &now));
    if (std::ssize(out) > heap.room()) bad("a text is too long");
  }
  return heap.text(std::move(out));
}

}  // namespace

bool is_function(std::string_view name) {
  return is_one_of("range dict namespace raise_exception strftime_now", name);
}

Value call_function(Heap& heap, std::string_view name, const Arguments& arguments,
                    const std::tm& now) {
  heap.spend(1);
  if (name == "range") return range(heap, arguments);
  if (name == "dict") return dict_of(heap, "dict", arguments);
  if (name == "namespace") return space(heap, arguments);
  if (name == "strftime_now") return time_text(heap, arguments, now);
  throw Refusal(str(heap, *Bound("raise_exception", arguments, "message").get(0)));
}

}  // namespace tessera::jinja
