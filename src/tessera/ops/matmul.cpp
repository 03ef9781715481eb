#include "tessera/ops/matmul.h"

#include <algorithm>
#include <string>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/result_dtype.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

/// The names of a rule's dims, per operand and for the result.
struct Spec {
  std::vector<std::string> a, b, out;
};

bool has_dim(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> names_of(std::string_view side, std::string_view rule) {
  std::vector<std::string> out;
  for (const std::string& name : split(trim(side), ' ')) {
    if (name.empty()) continue;
    require(name.find_first_of("().|:") == std::string::npos, "matmul: '", name, "' in rule '",
            rule, "' is not a plain name; reshape compound dims first");
    require(!has_dim(out, name), "matmul: rule '", rule, "' has ", name,
            " twice in one operand; name it twice");
    out.push_back(name);
  }
  return out;
}

Spec read_spec(std::string_view rule) {
  const std::size_t comma = rule.find(','), arrow = rule.find("->");
  require(comma != std::string_view::npos && arrow != std::string_view::npos && comma < arrow,
          "matmul: rule '", rule, "' is not like 'm k, k n -> m n'");
  Spec spec{names_of(rule.substr(0, comma), rule),
            names_of(rule.substr(comma + 1, arrow - comma - 1), rule),
            names_of(rule.substr(arrow + 2), rule)};
  for (const std::string& name : spec.out) {
    require(has_dim(spec.a, name) || has_dim(spec.b, name), "matmul: rule '", rule,
            "' has no operand with ", name, "; a result dim comes from an operand");
  }
  const auto used = [&](const std::vector<std::string>& names,
                        const std::vector<std::string>& other) {
    for (const std::string& name : names) {
      require(has_dim(other, name) || has_dim(spec.out, name), "matmul: rule '", rule, "' has ",
              name, " in one operand only; keep it in the result, or sum over it first");
    }
  };
  used(spec.a, spec.b);
  used(spec.b, spec.a);
  return spec;
}

std::int64_t size_of_dim(const std::vector<std::string>& names, const TensorType& type,
                         const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : type.shape[static_cast<int>(at - names.begin())];
}

TensorTypes matmul_type(const OpCall& c) {
  const TensorType &a = c.in(0), &b = c.in(1);
  const std::string& rule = c.string("rule");
  const Spec spec = read_spec(rule);
  require(a.dtype == b.dtype && is_float(a.dtype), "matmul: a is ", a, ", b is ", b,
          "; cast them to one floating dtype");
  const auto fits = [&](const std::vector<std::string>& names, const TensorType& type) {
    require(static_cast<int>(names.size()) == type.ndim(), "matmul: rule '", rule,
            "' does not fit: a is ", a, ", b is ", b, "; give every dim one name");
  };
  fits(spec.a, a);
  fits(spec.b, b);
  for (const std::string& name : spec.a) {
    const std::int64_t left = size_of_dim(spec.a, a, name), right = size_of_dim(spec.b, b, name);
    require(right < 0 || left == right,
            "matmul: ", has_dim(spec.out, name) ? "batch" : "contracted", " dims differ: a is ", a,
            ", b is ", b, ", ", name, " in '", rule, "' is ", left, " and ", right,
            "; transpose one of them, or check the sizes of the layer");
  }
  TensorType out{result_dtype(c, a.dtype), {}, {}};
  for (const std::string& name : spec.out) {
    out.shape.push_back(std::max(size_of_dim(spec.a, a, name), size_of_dim(spec.b, b, name)));
  }
  require(c.num_in() < 3 || c.in(2) == out, "matmul: the value to add onto is ",
          c.in(c.num_in() - 1), ", the product is ", out);
  return {out};
}

Factors factors(const OpCall& c) {
  const std::string& rule = c.string("rule");
  if (c.num_in() < 3) return Factors::parse(rule + " | each 0 1", c.ndims());
  const std::size_t arrow = rule.find("->");
  const std::string out = rule.substr(arrow + 2);
  Factors with_onto = Factors::parse(
      text(rule.substr(0, arrow), ", ", out, " -> ", out, " | joint 0 2"), c.ndims());
  // Else each part of the contraction would be added onto all of operand 2.
  for (int f = 0; f < static_cast<int>(with_onto.list.size()); ++f) {
    if (with_onto.reduces(f, 0))
      with_onto.list[static_cast<std::size_t>(f)].kind = FactorKind::Whole;
  }
  return with_onto;
}

/// `out` from two of the forward rule's operands. The one that has the result's last dim is the
/// second: rows come from the first operand and columns from the second, so that kernels need not
/// transpose the result.
Value rearranged(const std::vector<std::string>& a_names, Value a,
                 const std::vector<std::string>& b_names, Value b,
                 const std::vector<std::string>& out, NodeId forward) {
  bool swap = false;
  for (const std::string& name : out) {
    if (has_dim(a_names, name) != has_dim(b_names, name))
      swap = has_dim(a_names, name);  // the last such name decides
  }
  const std::string left = join(swap ? b_names : a_names, " "),
                    right = join(swap ? a_names : b_names, " ");
  Builder& builder = a.builder();
  const Value result =
      swap ? builder.add(kMatmul, {b, a}, {text(left, ", ", right, " -> ", join(out, " "))})
           : builder.add(kMatmul, {a, b}, {text(left, ", ", right, " -> ", join(out, " "))});
  builder.set_like(result, forward);
  return result;
}

void matmul_gradient(GradCall& g) {
  const Spec spec = read_spec(g.call.string("rule"));
  const NodeId forward = g.out(0).id().node;
  const Value dout = cast(g.dout(0), g.in(0).dtype());
  if (g.wants(0)) g.din(0) = rearranged(spec.out, dout, spec.b, g.in(1), spec.a, forward);
  if (g.wants(1)) g.din(1) = rearranged(spec.out, dout, spec.a, g.in(0), spec.b, forward);
}

/// An operand of matmul without the batch dims in which it repeats, and the names of the others.
struct BatchDims {
  std::string names;
  Shape shape;
};
BatchDims batch_dims(Value x, Value other, int batch) {
  BatchDims out;
  for (int d = 0; d < x.ndim(); ++d) {
    const int i = batch + 2 - x.ndim() + d, in_other = d + other.ndim() - x.ndim();
    const bool repeats =
        i < batch && x.shape()[d] == 1 && in_other >= 0 && other.shape()[in_other] != 1;
    if (repeats) continue;
    if (i < batch) out.names += text("b", i, " ");
    out.shape.push_back(x.shape()[d]);
  }
  return out;
}

double matmul_flops(const OpCall& c) {
  double out = 2;
  for (const Factor& factor : factors_of(c).list) out *= static_cast<double>(factor.size);
  return out;
}

/// Dims of all three are a batch of products.
ProductSize matmul_product(const OpCall& c) {
  const Spec spec = read_spec(c.string("rule"));
  ProductSize out{1, 1, 1};
  for (std::size_t d = 0; d < spec.a.size(); ++d) {
    const auto size = static_cast<double>(c.in(0).shape[static_cast<int>(d)]);
    if (!has_dim(spec.out, spec.a[d]))
      out.k *= size;
    else if (!has_dim(spec.b, spec.a[d]))
      out.m *= size;
  }
  for (std::size_t d = 0; d < spec.b.size(); ++d) {
    if (has_dim(spec.out, spec.b[d]) && !has_dim(spec.a, spec.b[d]))
      out.n *= static_cast<double>(c.in(1).shape[static_cast<int>(d)]);
  }
  return out;
}

/// Sizes of some factors with their strides in both operands: a loop nest.
struct Loops {
  Shape sizes, a, b;

  /// Calls f(offset in a, offset in b) for every index, the last dim fastest.
  template <typename F>
  void each(F&& f) const {
    Shape at = Shape::of(sizes.ndim(), 0);
    std::int64_t oa = 0, ob = 0;
    for (std::int64_t i = 0, n = sizes.numel(); i < n; ++i) {
      f(oa, ob);
      for (int d = sizes.ndim() - 1; d >= 0; --d) {
        oa += a[d], ob += b[d];
        if (++at[d] < sizes[d]) break;
        oa -= a[d] * sizes[d], ob -= b[d] * sizes[d];
        at[d] = 0;
      }
    }
  }
};

Loops loops_over(const std::vector<std::string>& names, const Spec& spec, const RefCall& c) {
  Loops out;
  const auto stride = [](const std::vector<std::string>& dims, const Shape& shape,
                         const std::string& name) {
    const auto at = std::find(dims.begin(), dims.end(), name);
    return at == dims.end() ? 0 : shape.strides()[static_cast<int>(at - dims.begin())];
  };
  for (const std::string& name : names) {
    out.sizes.push_back(std::max(size_of_dim(spec.a, c.ins[0].type, name),
                                 size_of_dim(spec.b, c.ins[1].type, name)));
    out.a.push_back(stride(spec.a, c.in_shape(0), name));
    out.b.push_back(stride(spec.b, c.in_shape(1), name));
  }
  return out;
}

template <typename T>
void matmul_reference(RefCall& c) {
  const Spec spec = read_spec(c.call.string("rule"));
  std::vector<std::string> summed;
  for (const std::string& name : spec.a) {
    if (!has_dim(spec.out, name)) summed.push_back(name);
  }
  const Loops outer = loops_over(spec.out, spec, c), inner = loops_over(summed, spec, c);
  const T *a = c.in<T>(0), *b = c.in<T>(1), *onto = c.num_in() > 2 ? c.in<T>(2) : nullptr;
  T* y = c.out<T>(0);
  outer.each([&](std::int64_t oa, std::int64_t ob) {
    T sum = onto == nullptr ? T(0) : *onto++;
    inner.each([&](std::int64_t ka, std::int64_t kb) { sum += a[oa + ka] * b[ob + kb]; });
    *y++ = sum;
  });
}

}  // namespace

constinit const OpDef kMatmul = {
    .name = "matmul",
    .doc =
        "Product of two operands as an einsum rule says, e.g. 'b m k, k n -> b m n'; added onto "
        "operand 2, if there is one.",
    .attrs = {{"rule", AttrKind::Text}, kResultDType},
    .infer = matmul_type,
    .factors = factors,
    .grad = matmul_gradient,  // operand 2 is a pass's, which comes when gradients are there
    .flops = matmul_flops,
    .product = matmul_product,
    .reference = {matmul_reference<float>, matmul_reference<double>},
    .in_place = {InPlace{0, 2}},
    .onto = 2,
    .arithmetic = Arithmetic::Narrow,
};

Value matmul(Value a, Value b, MatmulOptions options, Where where) {
  require(a.ndim() >= 2 && b.ndim() >= 2, "matmul: a is ", a.type(), ", b is ", b.type(),
          "; a needs [..., m, k], b [..., k, n]");
  const int batch = std::max(a.ndim(), b.ndim()) - 2;
  std::string lead;
  for (int i = 0; i < batch; ++i) {
    lead += text("b", i, " ");
    const int from_last = batch + 1 - i;
    if (from_last >= std::min(a.ndim(), b.ndim())) continue;
    const std::int64_t x = a.shape().back(from_last), y = b.shape().back(from_last);
    require(x == y || x == 1 || y == 1, "matmul: batch dims differ: a is ", a.type(), ", b is ",
            b.type(), "; from the last dim on, sizes must be equal, or one of them 1");
  }
  const BatchDims left = batch_dims(a, b, batch), right = batch_dims(b, a, batch);
  return einsum(text(left.names, options.trans_a ? "k m" : "m k", ", ", right.names,
                     options.trans_b ? "n k" : "k n", " -> ", lead, "m n"),
                reshape(a, left.shape, where), reshape(b, right.shape, where), where);
}

Value einsum(std::string_view rule, Value a, Value b, Where where) {
  return a.builder().add(kMatmul, {a, b}, {std::string(rule)}, where);
}

MatmulDims matmul_dims(const OpCall& call) {
  MatmulDims out;
  out.factors = factors_of(call);
  for (int f = 0; f < static_cast<int>(out.factors.list.size()); ++f) {
    const bool a = out.factors.has(out.factors.ins[0], f),
               b = out.factors.has(out.factors.ins[1], f);
    const bool kept = out.factors.has(out.factors.outs[0], f);
    (!kept ? out.k : a && b ? out.batch : a ? out.m : out.n).push_back(f);
  }
  return out;
}

}  // namespace tessera
