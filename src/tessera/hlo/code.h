#pragma once
/// StableHLO text, op by op: values with broadcasting, and the function that they are written into.
/// Knows nothing of graphs.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/tensor/monoid.h"
#include "tessera/tensor/type.h"

namespace tessera::hlo {

class Code;

/// Dtypes, and unsigned integers: random words, and bytes that a plugin works in.
enum class Element : std::uint8_t { F32, F64, BF16, F16, I32, I64, Bool, U32, U64, U8 };

Element element_of(DType dtype);
/// Floats of 16 bits are computed in f32.
Element computed_in(Element element);
bool is_float(Element element);

struct Type {
  Element element = Element::F32;
  Shape shape;
  friend bool operator==(const Type&, const Type&) = default;
};
/// "tensor<2x3xf32>"
std::string to_text(const Type& type);
Type type_of(const TensorType& type);

/// An SSA value of a function that is being written. Operators broadcast as numpy does.
class Value {
 public:
  Value() = default;
  Value(Code& code, std::string name, Type type)
      : code_(&code), name_(std::move(name)), type_(type) {}

  Code& code() const { return *code_; }
  const std::string& name() const { return name_; }
  const Type& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  Element element() const { return type_.element; }
  int ndim() const { return type_.shape.ndim(); }

 private:
  Code* code_ = nullptr;
  std::string name_;
  Type type_;
};
inline const std::string& to_text(const Value& value) { return value.name(); }
using Values = std::vector<Value>;

/// A value, or a number in the element type of the other operand.
struct Term {
  Term(Value of) : value(std::move(of)) {}  // NOLINT: operands are either
  Term(double of) : number(of) {}           // NOLINT
  std::optional<Value> value;
  double number = 0;
};
Value operator+(const Term& a, const Term& b);
Value operator-(const Term& a, const Term& b);
Value operator*(const Term& a, const Term& b);
Value operator/(const Term& a, const Term& b);
Value operator^(const Term& a, const Term& b);
Value operator&(const Term& a, const Term& b);
Value operator|(const Term& a, const Term& b);
Value operator>>(const Term& a, const Term& b);  // zeros come in
Value operator<(const Term& a, const Term& b);
Value operator<=(const Term& a, const Term& b);
Value operator>(const Term& a, const Term& b);
Value operator>=(const Term& a, const Term& b);
Value eq(const Term& a, const Term& b);
Value ne(const Term& a, const Term& b);

/// How products of f32 are computed: with all digits, or with the 10 bits of TF32 where the device
/// has units for it.
enum class Products : std::uint8_t { Exact, Tf32 };

/// "add", "maximum", "minimum"; of bools "or", "or", "and".
std::string_view combining(Monoid monoid, Element element);

/// Functions of a module beside its main one, each text once.
class Functions {
 public:
  /// The name of the private function with this text behind its name: "(%a0: tensor<f32>) -> ...".
  std::string add(const std::string& body);
  const std::string& written() const { return text_; }

 private:
  std::map<std::string, std::string> names_;
  std::string text_;
};

/// The lines of one function. Every method appends what it needs and returns the value.
class Code {
 public:
  explicit Code(Functions& functions, Products products = Products::Exact)
      : functions_(functions), products_(products), known_(1) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  const std::string& written() const { return text_; }
  int lines() const { return lines_; }
  Functions& functions() { return functions_; }
  Products products() const { return products_; }

  /// "%5 = ..." of an op with one result.
  Value line(std::string_view op, const Type& type);
  /// The same, written once where it is in sight already: for constants and what is made of them.
  Value once(std::string_view op, const Type& type);

  // Constants. Floats are written by their bits.
  Value constant(double value, Element element, const Shape& shape = {});
  Value integer(std::uint64_t value, Element element);
  /// What changes nothing under the monoid.
  Value identity(Monoid monoid, Element element, const Shape& shape = {});
  /// Of one dim.
  Value table(const std::vector<double>& values, Element element);
  Value table(const std::vector<std::int64_t>& values);
  Value iota(const Shape& shape, int dim, Element element);

  /// The same values, which a compiler takes for others: what is computed of them is computed again,
  /// though it was computed of `values` before, and not until all of those are there.
  Values kept_apart(const Values& values);

  // Elementwise.
  Value convert(const Value& x, Element element);
  /// Floats are truncated to integers; those beyond the range become its ends, and NaN 0.
  Value cast(const Value& x, Element element);
  Value wide(const Value& x) { return convert(x, computed_in(x.element())); }
  Value unary(std::string_view op, const Value& x);
  Value binary(std::string_view op, const Term& a, const Term& b);
  Value compare(std::string_view how, const Term& a, const Term& b);
  Value select(const Value& condition, const Term& a, const Term& b);
  Value exp(const Value& x) { return unary("exponential", x); }
  Value log(const Value& x) { return unary("log", x); }
  Value sqrt(const Value& x) { return unary("sqrt", x); }
  Value erf(const Value& x);
  Value is_finite(const Value& x);

  // Moves.
  Value broadcast(const Value& x, const Shape& shape);
  /// Its dims are these dims of `shape`.
  Value broadcast_dims(const Value& x, const Shape& shape, const std::vector<int>& dims);
  Value reshape(const Value& x, const Shape& shape);
  /// With a last dim of size 1.
  Value column(const Value& x);
  Value transpose(const Value& x, const std::vector<std::int64_t>& order);
  Value slice(const Value& x, int dim, std::int64_t start, std::int64_t size,
              std::int64_t step = 1);
  /// `inner`: between two elements.
  Value pad(const Value& x, int dim, std::int64_t low, std::int64_t high, std::int64_t inner = 0,
            double value = 0);
  Value concat(const Values& parts, int dim);
  /// At `start` of one dim; it is clamped so that all fits.
  Value dynamic_slice(const Value& x, int dim, const Value& start, const Shape& sizes);
  Value dynamic_update(const Value& x, const Value& part, int dim, const Value& start);
  /// Rows of dim `dim` at `places`, which are clamped.
  Value gather(const Value& table, const Value& places, int dim);
  /// Adds rows; those whose place is beyond the end are dropped.
  Value scatter_add(const Value& table, const Value& places, const Value& rows, int dim);
  /// The first `k` of each row of the last dim, the largest first, equal ones in order, and their
  /// places as i32. NaN counts as the largest.
  Values top_k(const Value& x, std::int64_t k);

  // Reductions and products.
  Value reduce(const Value& x, const std::vector<std::int64_t>& dims, Monoid monoid, bool keep);
  Value sum(const Value& x, const std::vector<std::int64_t>& dims, bool keep = false) {
    return reduce(x, dims, Monoid::Sum, keep);
  }
  /// "m k, k n -> m n": 16-bit floats are summed in f32. The result is rounded to `element`.
  Value einsum(std::string_view rule, const Value& a, const Value& b, Element element);

  // Control.
  using Condition = std::function<Value(const Values&)>;
  using Body = std::function<Values(const Values&)>;
  /// While the condition holds: values = body(values). Both may read what is outside.
  Values loop(const Values& start, const Condition& condition, const Body& body);
  /// One of functions(), on these arguments.
  Values call(const std::string& function, const Values& arguments, const std::vector<Type>& types);

  struct CallResult {
    Type type;
    std::vector<std::int64_t> layout;  // the dims in memory, the innermost first
  };
  /// What the plugin has by that name. Operands are handed in the plain layout. `config`: JSON.
  Values custom_call(std::string_view target, const Values& ins, std::string_view config,
                     const std::vector<CallResult>& results);

  /// Between the replicas. There is no channel_handle: with one, a permute is between partitions,
  /// and every replica silently keeps what it has. `monoid`: of ops that combine.
  Value collective(std::string_view op, const Value& x, std::string_view attributes,
                   const Shape& shape, std::optional<Monoid> monoid = {});

 private:
  std::string fresh() { return "%" + std::to_string(count_++); }
  void append(std::string_view line);
  Value end_of_range(Element element, bool largest);
  /// Both as values of one shape.
  std::pair<Value, Value> pair(const Term& a, const Term& b);

  Functions& functions_;
  Products products_;
  std::string text_;
  int count_ = 0, lines_ = 0;
  std::vector<std::map<std::string, Value, std::less<>>> known_;  // by region around this place
};

/// "[1, 2]"
std::string list_text(const std::vector<std::int64_t>& values);

}  // namespace tessera::hlo
