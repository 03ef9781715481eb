#include "tessera/chat/jinja/operators.h"

#include <cmath>
#include <limits>
#include <string>

#include "tessera/chat/jinja/characters.h"

namespace tessera::jinja {

namespace {

[[noreturn]] void no_operation(std::string_view operation, const Value& a, const Value& b) {
  bad("'", operation, "' between ", kind_text(a), " and ", kind_text(b));
}

[[noreturn]] void too_large(std::string_view operation) {
  bad("the result of '", operation, "' is too large; it is not supported");
}

std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  const std::int64_t out = a / b;
  return out - ((a % b != 0) && ((a < 0) != (b < 0)));
}

Value power_of(std::int64_t a, std::int64_t b) {
  if (b < 0) {
    if (a == 0) bad("0 to a power below 0");
    return value_of(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
  std::int64_t out = 1;
  for (std::int64_t i = 0; i < b && out != 0 && a != 1; ++i) {
    if (a == -1) return value_of(std::int64_t{b % 2 == 0 ? 1 : -1});
    if (__builtin_mul_overflow(out, a, &out)) too_large("**");
  }
  return value_of(out);
}

Value of_whole(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (op == "+") {
    if (__builtin_add_overflow(a, b, &out)) too_large(op);
  } else if (op == "-") {
    if (__builtin_sub_overflow(a, b, &out)) too_large(op);
  } else if (op == "*") {
    if (__builtin_mul_overflow(a, b, &out)) too_large(op);
  } else if (op == "**") {
    return power_of(a, b);
  } else {
    if (b == 0) bad("a division by 0");
    if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) too_large(op);
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    if (op == "/") {
      if (a > kExact || a < -kExact || b > kExact || b < -kExact) too_large(op);
      return value_of(static_cast<double>(a) / static_cast<double>(b));
    }
    const std::int64_t quotient = floor_divided(a, b);
    out = op == "//" ? quotient : a - quotient * b;
  }
  return value_of(out);
}

Value of_real(std::string_view op, double a, double b) {
  if (op == "+") return value_of(a + b);
  if (op == "-") return value_of(a - b);
  if (op == "*") return value_of(a * b);
  if (op == "**") {
    if (a < 0 && b != std::floor(b)) bad("a root of a number below 0");
    if (a == 0 && b < 0) bad("0 to a power below 0");
    const double out = std::pow(a, b);
    if (std::isinf(out) && std::isfinite(a) && std::isfinite(b)) too_large(op);
    return value_of(out);
  }
  if (b == 0) bad("a division by 0");
  if (op == "/") return value_of(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (op == "%") return value_of(rest == 0 ? std::copysign(0.0, b) : rest);
  const double quotient = (a - rest) / b, low = std::floor(quotient);
  return value_of(quotient - low > 0.5 ? low + 1 : low);
}

Value joined_texts(Heap& heap, const TextValue& a, const TextValue& b) {
  heap.spend(1 + std::ssize(a.bytes) / 64);
  const bool safe = a.safe || b.safe;
  std::string out = safe && !a.safe ? escaped(a.bytes) : a.bytes;
  if (std::ssize(out) + std::ssize(b.bytes) > heap.room()) bad("a text is too long");
  out += safe && !b.safe ? escaped(b.bytes) : b.bytes;
  return heap.text(std::move(out), safe);
}

Value repeated(Heap& heap, const Value& what, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  const std::int64_t size = what.is(Kind::Text)
                                ? std::ssize(what.text->bytes)
                                : std::ssize(what.items->items) * std::int64_t{sizeof(Value)};
  if (size > 0 && times > heap.room() / size) bad("the result of '*' is too long");
  if (size == 0) times = 0;
  if (what.is(Kind::Text)) {
    std::string out;
    for (std::int64_t i = 0; i < times; ++i) out += what.text->bytes;
    return heap.text(std::move(out), what.text->safe);
  }
  std::vector<Value> out;
  for (std::int64_t i = 0; i < times; ++i)
    out.insert(out.end(), what.items->items.begin(), what.items->items.end());
  return heap.list(std::move(out), what.items->of);
}

bool repeats(const Value& value) {
  return value.is(Kind::Text) ||
         (value.is(Kind::Items) &&
          (value.items->of == ItemsValue::Of::List || value.items->of == ItemsValue::Of::Tuple));
}

}  // namespace

Value binary(Heap& heap, std::string_view op, const Value& a, const Value& b) {
  heap.spend(1);
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return of_whole(op, a.as_whole(), b.as_whole());
    return of_real(op, a.as_real(), b.as_real());
  }
  if (op == "+" && a.is(Kind::Text) && b.is(Kind::Text))
    return joined_texts(heap, *a.text, *b.text);
  if (op == "+" && repeats(a) && repeats(b) && a.is(Kind::Items) && b.is(Kind::Items) &&
      a.items->of == b.items->of) {
    std::vector<Value> out = a.items->items;
    heap.spend(std::ssize(out) / 8);
    out.insert(out.end(), b.items->items.begin(), b.items->items.end());
    return heap.list(std::move(out), a.items->of);
  }
  if (op == "*" && repeats(a) && b.is_whole()) return repeated(heap, a, b.as_whole());
  if (op == "*" && repeats(b) && a.is_whole()) return repeated(heap, b, a.as_whole());
  if (op == "%" && a.is(Kind::Text))
    bad("'%' with a text before it, which formats it, is not supported; use '~'");
  no_operation(op, a, b);
}

Value unary(std::string_view op, const Value& a) {
  if (!a.is_number()) bad("'", op, "' before ", kind_text(a));
  if (a.is(Kind::Float)) return value_of(op == "-" ? -a.real : a.real);
  if (op == "+") return value_of(a.as_whole());
  if (a.as_whole() == std::numeric_limits<std::int64_t>::min()) too_large(op);
  return value_of(-a.as_whole());
}

bool compare(Heap& heap, std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return is_equal(heap, a, b);
  if (op == "!=") return !is_equal(heap, a, b);
  if (op == "in") return contains(heap, b, a);
  if (op == "not in") return !contains(heap, b, a);
  const int order = order_of(heap, a, b);
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order >= 0;
}

}  // namespace tessera::jinja
