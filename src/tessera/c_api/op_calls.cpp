/// The ops of ops/ops.h.

#include <cmath>
#include <limits>

#include "tessera/c_api/graph_calls.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/ops.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/ops/top_k.h"

namespace tessera {

namespace {

using Values = std::vector<Value>;

/// A number beside a value of `dtype`, which must hold it.
Value number_beside(CallArguments& c, const char* name, DType dtype) {
  const double number = c.number(name);
  require(dtype != DType::Bool, c.what(), ": ", name, " is ", number,
          ", and the other operand is bool; give two values of bool, or cast it");
  const double most = dtype == DType::I32   ? std::numeric_limits<std::int32_t>::max()
                      : dtype == DType::I64 ? 9007199254740992.0
                      : dtype == DType::F32 ? std::numeric_limits<float>::max()
                                            : std::numeric_limits<double>::max();
  const bool fits = is_float(dtype) ? !(std::isfinite(number) && std::abs(number) > most)
                                    : std::abs(number) <= most && number == std::floor(number);
  require(fits, c.what(), ": ", name, " is ", number, ", which no ", dtype,
          " holds; cast the other operand, or give another number");
  return c.graph.builder.constant(number, dtype, c.where);
}

struct Operands {
  Value a, b;
};
/// The operands a and b, of which one may be a number.
Operands operands(CallArguments& c) {
  const auto is_value = [&](const char* name) {
    const CallJson* json = c.find(name);
    return json == nullptr || (json->is_string() && json->get<std::string>().starts_with('%'));
  };
  require(is_value("a") || is_value("b"), c.what(),
          " is of two numbers; give a value of the graph for one of them");
  if (!is_value("b")) {
    const Value a = c.value("a");
    return {a, number_beside(c, "b", a.dtype())};
  }
  const Value b = c.value("b");
  return {is_value("a") ? c.value("a") : number_beside(c, "a", b.dtype()), b};
}

/// Of two operands.
template <Value (*kFunction)(At, Value)>
Values binary(CallArguments& c) {
  const auto [a, b] = operands(c);
  return {kFunction(At(a, c.where), b)};
}

template <Value (*kFunction)(At)>
Values unary(CallArguments& c) {
  return {kFunction(c.at("x"))};
}

constexpr Value (*kPlus)(At, Value) = operator+;
constexpr Value (*kMinus)(At, Value) = operator-;
constexpr Value (*kTimes)(At, Value) = operator*;
constexpr Value (*kOver)(At, Value) = operator/;

using Reduction = Value (*)(At, std::vector<std::int64_t>, KeepDim);
template <Reduction kFunction>
Values reduce(CallArguments& c) {
  const At x = c.at("x");
  std::vector<std::int64_t> dims;
  if (c.find("dims") == nullptr) {
    for (int dim = 0; dim < x.ndim(); ++dim) dims.push_back(dim);
  } else {
    dims = c.dims("dims", x);
  }
  return {kFunction(x, dims, c.flag("keep") ? KeepDim::Yes : KeepDim::No)};
}

Shape shape_of(CallArguments& c) { return c.need<Shape>("shape"); }

AttentionOptions attention_options(CallArguments& c) {
  AttentionOptions out;
  out.causal = c.flag("causal");
  out.window = c.integer("window");
  out.scale = c.number("scale");
  out.cap = c.number("cap");
  out.slopes = c.maybe("slopes");
  out.dropout = c.number("dropout");
  return out;
}

constexpr GraphCall kOpCalls[] = {
    // Elementwise.
    {"add", "a b", binary<kPlus>},
    {"sub", "a b", binary<kMinus>},
    {"mul", "a b", binary<kTimes>},
    {"div", "a b", binary<kOver>},
    {"maximum", "a b", binary<maximum>},
    {"minimum", "a b", binary<minimum>},
    {"power", "a b", binary<power>},
    {"negate", "x", [](CallArguments& c) -> Values { return {-c.at("x")}; }},
    {"exp", "x", unary<exp>},
    {"log", "x", unary<log>},
    {"sqrt", "x", unary<sqrt>},
    {"rsqrt", "x", unary<rsqrt>},
    {"tanh", "x", unary<tanh>},
    {"erf", "x", unary<erf>},
    {"cos", "x", unary<cos>},
    {"abs", "x", unary<abs>},
    {"sigmoid", "x", unary<sigmoid>},
    {"relu", "x", unary<relu>},
    {"silu", "x", unary<silu>},
    {"gelu", "x form=\"tanh\"",
     [](CallArguments& c) -> Values {
       GeluForm form = GeluForm::Tanh;
       c.get_word("form", std::array<std::string_view, 2>{"erf", "tanh"}, form);
       return {gelu(c.at("x"), form)};
     }},
    {"equal", "a b", binary<equal>},
    {"not_equal", "a b", binary<not_equal>},
    {"less", "a b", binary<less>},
    {"less_equal", "a b", binary<less_equal>},
    {"logical_and", "a b", binary<logical_and>},
    {"logical_or", "a b", binary<logical_or>},
    {"logical_not", "x", unary<logical_not>},
    {"is_finite", "x", unary<is_finite>},
    {"select", "condition a b",
     [](CallArguments& c) -> Values {
       const auto [a, b] = operands(c);
       return {select(c.value("condition"), a, b)};
     }},
    {"cast", "x dtype",
     [](CallArguments& c) -> Values { return {cast(c.value("x"), c.need<DType>("dtype"))}; }},
    {"identity", "x", [](CallArguments& c) -> Values { return {identity(c.value("x"))}; }},
    {"whole_batch", "x", [](CallArguments& c) -> Values { return {whole_batch(c.value("x"))}; }},
    {"stop_gradient", "x",
     [](CallArguments& c) -> Values { return {stop_gradient(c.value("x"))}; }},
    {"constant", "value dtype=\"f32\"",
     [](CallArguments& c) -> Values {
       return {number_beside(c, "value", c.need<DType>("dtype"))};
     }},
    // Reductions and broadcasting.
    {"sum", "x dims=null keep=false", reduce<static_cast<Reduction>(sum)>},
    {"max", "x dims=null keep=false", reduce<static_cast<Reduction>(max)>},
    {"min", "x dims=null keep=false", reduce<static_cast<Reduction>(min)>},
    {"mean", "x dims=null keep=false", reduce<mean>, "sum"},
    {"any", "x dims=null keep=false", reduce<any>, "max"},
    {"all", "x dims=null keep=false", reduce<all>, "min"},
    {"sum_squares", "x", [](CallArguments& c) -> Values { return {sum_squares(c.value("x"))}; }},
    {"broadcast_to", "x shape",
     [](CallArguments& c) -> Values { return {broadcast_to(c.value("x"), shape_of(c))}; },
     "broadcast"},
    {"add_n", "values", [](CallArguments& c) -> Values { return {add_n(c.values("values"))}; }},
    // Shape.
    {"reshape", "x shape",
     [](CallArguments& c) -> Values { return {reshape(c.value("x"), shape_of(c), c.where)}; }},
    {"transpose", "x permutation",
     [](CallArguments& c) -> Values {
       return {transpose(c.value("x"), c.need<std::vector<std::int64_t>>("permutation"), c.where)};
     }},
    {"slice", "x dim start size",
     [](CallArguments& c) -> Values {
       const Value x = c.value("x");
       return {slice(x, c.dim("dim", x), c.integer("start"), c.integer("size"), c.where)};
     }},
    {"strided_slice", "x dim start size step",
     [](CallArguments& c) -> Values {
       const Value x = c.value("x");
       return {strided_slice(x, c.dim("dim", x), c.integer("start"), c.integer("size"),
                             c.integer("step"), c.where)};
     },
     "slice"},
    {"dynamic_slice", "x dim start size",
     [](CallArguments& c) -> Values {
       const Value x = c.value("x");
       return {dynamic_slice(x, c.dim("dim", x), c.value("start"), c.integer("size"), c.where)};
     }},
    {"dynamic_update", "x update dim start",
     [](CallArguments& c) -> Values {
       const Value x = c.value("x");
       return {dynamic_update(x, c.value("update"), c.dim("dim", x), c.value("start"), c.where)};
     }},
    {"concat", "values dim",
     [](CallArguments& c) -> Values {
       const Values values = c.values("values");
       return {concat(values, c.dim("dim", values[0]), c.where)};
     }},
    {"pad", "x dim start size",
     [](CallArguments& c) -> Values {
       const Value x = c.value("x");
       return {pad(x, c.dim("dim", x), c.integer("start"), c.integer("size"), c.where)};
     }},
    // Index.
    {"gather", "ids table dim=0",
     [](CallArguments& c) -> Values {
       const Value table = c.value("table");
       const int dim = c.dim("dim", table);
       if (dim == 0) return {gather(c.value("ids"), table, c.where)};
       return {gather(c.value("ids"), table, dim, c.where)};
     }},
    {"scatter_add", "ids dy rows",
     [](CallArguments& c) -> Values {
       return {scatter_add(c.value("ids"), c.value("dy"), c.integer("rows"), c.where)};
     }},
    {"gather_nd", "indices x",
     [](CallArguments& c) -> Values {
       return {gather_nd(c.value("indices"), c.value("x"), c.where)};
     },
     "gather"},
    {"pick", "x ids",
     [](CallArguments& c) -> Values { return {pick(c.value("x"), c.value("ids"), c.where)}; }},
    {"place", "ids dy size",
     [](CallArguments& c) -> Values {
       return {place(c.value("ids"), c.value("dy"), c.integer("size"), c.where)};
     }},
    {"take_along", "x ids",
     [](CallArguments& c) -> Values {
       return {take_along(c.value("x"), c.value("ids"), c.where)};
     }},
    {"add_along", "ids dy size",
     [](CallArguments& c) -> Values {
       return {add_along(c.value("ids"), c.value("dy"), c.integer("size"), c.where)};
     }},
    {"top_k", "x k",
     [](CallArguments& c) -> Values {
       const TopKResult out = top_k(c.value("x"), c.integer("k"), c.where);
       return {out.values, out.ids};
     }},
    {"within_capacity", "ids keys capacity",
     [](CallArguments& c) -> Values {
       return {within_capacity(c.value("ids"), c.value("keys"), c.integer("capacity"), c.where)};
     }},
    {"arg_max", "x dim=-1",
     [](CallArguments& c) -> Values {
       const Value x = c.value("x");
       return {arg_max(x, c.dim("dim", x), c.where)};
     },
     "top_k"},
    {"one_hot", "ids size dtype=\"f32\"",
     [](CallArguments& c) -> Values {
       return {one_hot(c.value("ids"), c.integer("size"), c.need<DType>("dtype"), c.where)};
     }},
    {"iota", "shape dim dtype=\"i32\"",
     [](CallArguments& c) -> Values {
       const Shape shape = shape_of(c);
       const std::int64_t dim = c.integer("dim");
       require(dim >= 0 && dim < shape.ndim(), "iota: dim is ", dim, ", but the shape is ", shape,
               "; give one of its dims, from 0");
       return {
           iota(c.graph.builder, shape, static_cast<int>(dim), c.need<DType>("dtype"), c.where)};
     }},
    // Random.
    {"dropout", "x step p name",
     [](CallArguments& c) -> Values {
       return {
           dropout(c.value("x"), c.value("step"), c.number("p"), c.plain_name("name"), c.where)};
     }},
    {"random_uniform", "shape step name",
     [](CallArguments& c) -> Values {
       return {random_uniform(c.graph.builder, shape_of(c), c.value("step"), c.plain_name("name"),
                              c.where)};
     }},
    {"random_normal", "shape step name",
     [](CallArguments& c) -> Values {
       return {random_normal(c.graph.builder, shape_of(c), c.value("step"), c.plain_name("name"),
                             c.where)};
     }},
    {"random_truncated_normal", "shape step name",
     [](CallArguments& c) -> Values {
       return {random_truncated_normal(c.graph.builder, shape_of(c), c.value("step"),
                                       c.plain_name("name"), c.where)};
     }},
    // Products, norms, attention, losses.
    {"matmul", "a b trans_a=false trans_b=false",
     [](CallArguments& c) -> Values {
       return {matmul(c.value("a"), c.value("b"),
                      {.trans_a = c.flag("trans_a"), .trans_b = c.flag("trans_b")}, c.where)};
     }},
    {"einsum", "rule a b",
     [](CallArguments& c) -> Values {
       return {einsum(c.text_of("rule"), c.value("a"), c.value("b"), c.where)};
     },
     "matmul"},
    {"grouped_matmul", "ids x w trans_w=false",
     [](CallArguments& c) -> Values {
       return {grouped_matmul(c.value("ids"), c.value("x"), c.value("w"),
                              {.trans_w = c.flag("trans_w")}, c.where)};
     }},
    {"layer_norm", "x weight bias=null eps=1e-05",
     [](CallArguments& c) -> Values {
       const LayerNormResult out =
           layer_norm(c.value("x"), c.value("weight"), c.maybe("bias"), c.number("eps"), c.where);
       return {out.y, out.mean, out.rstd};
     }},
    {"rms_norm", "x weight eps=1e-05",
     [](CallArguments& c) -> Values {
       const RmsNormResult out =
           rms_norm(c.value("x"), c.value("weight"), c.number("eps"), c.where);
       return {out.y, out.rstd};
     }},
    {"softmax", "x dim=-1",
     [](CallArguments& c) -> Values {
       const Value x = c.value("x");
       return {softmax(x, c.dim("dim", x), c.where)};
     }},
    {"log_softmax", "x dim=-1",
     [](CallArguments& c) -> Values {
       const Value x = c.value("x");
       return {log_softmax(x, c.dim("dim", x), c.where)};
     }},
    {"cross_entropy", "logits labels ignore_index=-100",
     [](CallArguments& c) -> Values {
       const CrossEntropyResult out =
           cross_entropy(c.value("logits"), c.value("labels"), c.integer("ignore_index"), c.where);
       return {out.loss, out.logsumexp};
     }},
    {"attention",
     "q k v mask=null step=null causal=true window=0 scale=0.0 cap=0.0 slopes=null "
     "dropout=0.0 "
     "name=\"dropout\"",
     [](CallArguments& c) -> Values {
       AttentionOptions options = attention_options(c);
       const std::string name = c.plain_name("name");
       options.name = name;
       const AttentionResult out = attention(c.value("q"), c.value("k"), c.value("v"),
                                             c.maybe("mask"), c.maybe("step"), options, c.where);
       return {out.y, out.logsumexp};
     }},
    {"rope", "x positions base=10000.0 inverse=false",
     [](CallArguments& c) -> Values {
       return {
           rope(c.value("x"), c.value("positions"), c.number("base"), c.flag("inverse"), c.where)};
     }},
};

}  // namespace

std::span<const GraphCall> op_calls() { return kOpCalls; }

}  // namespace tessera
