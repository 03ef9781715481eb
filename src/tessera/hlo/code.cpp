#include "tessera/hlo/code.h"

#include <array>
#include <cmath>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/tensor/element.h"

namespace tessera::hlo {

namespace {

struct ElementWords {
  std::string_view name;
  DType dtype;  // of the same size
  bool floating, is_signed;
};
constexpr std::array<ElementWords, 10> kElements = {{{"f32", DType::F32, true, true},
                                                     {"f64", DType::F64, true, true},
                                                     {"bf16", DType::BF16, true, true},
                                                     {"f16", DType::F16, true, true},
                                                     {"i32", DType::I32, false, true},
                                                     {"i64", DType::I64, false, true},
                                                     {"i1", DType::Bool, false, false},
                                                     {"ui32", DType::I32, false, false},
                                                     {"ui64", DType::I64, false, false},
                                                     {"ui8", DType::Bool, false, false}}};

const ElementWords& words_of(Element element) {
  return kElements[static_cast<std::size_t>(element)];
}

/// One number in a dense constant.
std::string literal(double value, Element element) {
  if (element == Element::Bool) return value != 0 ? "true" : "false";
  if (!is_float(element)) return number_text(static_cast<std::int64_t>(value));
  std::uint64_t bits = 0;
  const DType dtype = words_of(element).dtype;
  set_element(dtype, &bits, 0, value);  // the low bytes: little-endian, as all of our machines
  std::string out = "0x";
  for (int digit = 2 * size_of(dtype); digit-- > 0;)
    out += "0123456789ABCDEF"[bits >> (4 * digit) & 15];
  return out;
}

std::string dense(std::string_view what, const Type& type) {
  return text("stablehlo.constant dense<", what, "> : ", type);
}

}  // namespace

Element element_of(DType dtype) { return static_cast<Element>(dtype); }

static_assert(static_cast<int>(Element::Bool) == static_cast<int>(DType::Bool) &&
              static_cast<int>(Element::F16) == static_cast<int>(DType::F16));

Element computed_in(Element element) {
  return element == Element::BF16 || element == Element::F16 ? Element::F32 : element;
}

bool is_float(Element element) { return words_of(element).floating; }

std::string to_text(const Type& type) {
  std::string out = "tensor<";
  for (const std::int64_t size : type.shape) out += text(size, "x");
  return text(out, words_of(type.element).name, ">");
}

Type type_of(const TensorType& type) { return {element_of(type.dtype), type.shape}; }

std::string list_text(const std::vector<std::int64_t>& values) {
  return text("[", join(values), "]");
}

std::string_view combining(Monoid monoid, Element element) {
  if (element == Element::Bool) return monoid == Monoid::Min ? "and" : "or";
  return monoid == Monoid::Sum ? "add" : monoid == Monoid::Max ? "maximum" : "minimum";
}

std::string Functions::add(const std::string& body) {
  const auto [found, fresh] = names_.try_emplace(body, text("@f", names_.size()));
  if (fresh) text_ += text("func.func private ", found->second, body, "\n");
  return found->second;
}

void Code::append(std::string_view line) {
  text_ += text("  ", line, "\n");
  ++lines_;
}

Value Code::line(std::string_view op, const Type& type) {
  Value out(*this, fresh(), type);
  append(text(out.name(), " = ", op));
  return out;
}

Value Code::once(std::string_view op, const Type& type) {
  for (const auto& scope : known_) {
    if (const auto found = scope.find(op); found != scope.end()) return found->second;
  }
  Value out = line(op, type);
  known_.back().emplace(op, out);
  return out;
}

Value Code::constant(double value, Element element, const Shape& shape) {
  if (shape.ndim() > 0) return broadcast(constant(value, element), shape);
  return once(dense(literal(value, element), {element, {}}), {element, {}});
}

Value Code::integer(std::uint64_t value, Element element) {
  return once(dense(number_text(value), {element, {}}), {element, {}});
}

Value Code::identity(Monoid monoid, Element element, const Shape& shape) {
  if (shape.ndim() > 0) return broadcast(identity(monoid, element), shape);
  if (monoid == Monoid::Sum) return constant(0, element);
  const bool max = monoid == Monoid::Max;
  if (element == Element::Bool) return constant(max ? 0 : 1, element);
  if (is_float(element))
    return constant((max ? -1 : 1) * std::numeric_limits<double>::infinity(), element);
  return end_of_range(element, !max);
}

/// The largest or least integer.
Value Code::end_of_range(Element element, bool largest) {
  using I64 = std::numeric_limits<std::int64_t>;
  if (element == Element::I32) return constant(largest ? 0x1p31 - 1 : -0x1p31, element);
  const std::string number = number_text(largest ? I64::max() : I64::min());
  return once(dense(number, {element, {}}), {element, {}});
}

Value Code::table(const std::vector<double>& values, Element element) {
  std::vector<std::string> numbers;
  for (const double value : values) numbers.push_back(literal(value, element));
  const Type type{element, {static_cast<std::int64_t>(values.size())}};
  return once(dense(text("[", join(numbers), "]"), type), type);
}

Value Code::table(const std::vector<std::int64_t>& values) {
  const Type type{Element::I64, {static_cast<std::int64_t>(values.size())}};
  return once(dense(list_text(values), type), type);
}

Value Code::iota(const Shape& shape, int dim, Element element) {
  const Type type{element, shape};
  return once(text("stablehlo.iota dim = ", dim, " : ", type), type);
}

Value Code::convert(const Value& x, Element element) {
  if (x.element() == element) return x;
  const Type type{element, x.shape()};
  return line(text("stablehlo.convert ", x, " : (", x.type(), ") -> ", type), type);
}

Value Code::cast(const Value& x, Element element) {
  if (!is_float(x.element()) || is_float(element) || element == Element::Bool)
    return convert(x, element);
  const double top =
      element == Element::I32 ? 0x1p31 : 0x1p63;  // the first number beyond the range
  const Value number = select(ne(x, x), 0.0, x), to = convert(number, element);
  return select(number >= top, end_of_range(element, true),
                select(number <= -top, end_of_range(element, false), to));
}

Value Code::unary(std::string_view op, const Value& x) {
  return line(text("stablehlo.", op, " ", x, " : ", x.type()), x.type());
}

std::pair<Value, Value> Code::pair(const Term& a, const Term& b) {
  check(a.value || b.value, "an op on two numbers");
  const Value left = a.value ? *a.value : constant(a.number, b.value->element());
  const Value right = b.value ? *b.value : constant(b.number, a.value->element());
  check(left.element() == right.element(), "operands are ", left.type(), " and ", right.type());
  const Shape shape = tessera::broadcast(left.shape(), right.shape());
  return {broadcast(left, shape), broadcast(right, shape)};
}

Value Code::binary(std::string_view op, const Term& a, const Term& b) {
  const auto [left, right] = pair(a, b);
  return line(text("stablehlo.", op, " ", left, ", ", right, " : ", left.type()), left.type());
}

Value Code::compare(std::string_view how, const Term& a, const Term& b) {
  const auto [left, right] = pair(a, b);
  const ElementWords& words = words_of(left.element());
  const std::string_view kind = words.floating ? "FLOAT" : words.is_signed ? "SIGNED" : "UNSIGNED";
  const Type type{Element::Bool, left.shape()};
  return line(text("stablehlo.compare ", how, ", ", left, ", ", right, ", ", kind, " : (",
                   left.type(), ", ", right.type(), ") -> ", type),
              type);
}

Value Code::select(const Value& condition, const Term& a, const Term& b) {
  const auto [left, right] = pair(a, b);
  const Shape shape = tessera::broadcast(condition.shape(), left.shape());
  const Value c = broadcast(condition, shape), x = broadcast(left, shape),
              y = broadcast(right, shape);
  return line(text("stablehlo.select ", c, ", ", x, ", ", y, " : ", c.type(), ", ", x.type()),
              x.type());
}

Value Code::erf(const Value& x) {
  return line(text("chlo.erf ", x, " : ", x.type(), " -> ", x.type()), x.type());
}

Value Code::is_finite(const Value& x) {
  const Type type{Element::Bool, x.shape()};
  return line(text("stablehlo.is_finite ", x, " : (", x.type(), ") -> ", type), type);
}

namespace {

Code& code_of(const Term& a, const Term& b) { return (a.value ? a : b).value->code(); }

}  // namespace

Value operator+(const Term& a, const Term& b) { return code_of(a, b).binary("add", a, b); }
Value operator-(const Term& a, const Term& b) { return code_of(a, b).binary("subtract", a, b); }
Value operator*(const Term& a, const Term& b) { return code_of(a, b).binary("multiply", a, b); }
Value operator/(const Term& a, const Term& b) { return code_of(a, b).binary("divide", a, b); }
Value operator^(const Term& a, const Term& b) { return code_of(a, b).binary("xor", a, b); }
Value operator&(const Term& a, const Term& b) { return code_of(a, b).binary("and", a, b); }
Value operator|(const Term& a, const Term& b) { return code_of(a, b).binary("or", a, b); }
Value operator>>(const Term& a, const Term& b) {
  return code_of(a, b).binary("shift_right_logical", a, b);
}
Value operator<(const Term& a, const Term& b) { return code_of(a, b).compare("LT", a, b); }
Value operator<=(const Term& a, const Term& b) { return code_of(a, b).compare("LE", a, b); }
Value operator>(const Term& a, const Term& b) { return code_of(a, b).compare("GT", a, b); }
Value operator>=(const Term& a, const Term& b) { return code_of(a, b).compare("GE", a, b); }
Value eq(const Term& a, const Term& b) { return code_of(a, b).compare("EQ", a, b); }
Value ne(const Term& a, const Term& b) { return code_of(a, b).compare("NE", a, b); }

}  // namespace tessera::hlo
