#include "tessera/hlo/ops/cudnn_attention.h"

#include <span>

#include "tessera/base/text.h"

namespace tessera::hlo {

namespace {

/// A product within a kernel, as XLA is to be told of it: q, k, v, y are [b, s, heads, e], scores
/// and probabilities [b, heads, s, t]. It sums over a dim of each operand.
struct Product {
  const char* name;
  int left, right;
  const char *left_batch, *right_batch;
};
constexpr const char *kOfRows = R"("0","2")", *kOfScores = R"("0","1")";
constexpr Product kForward[] = {{"bmm1", 3, 3, kOfRows, kOfRows},     // q k
                                {"bmm2", 3, 1, kOfScores, kOfRows}},  // p v
    kBackward[] = {{"bmm1_grad_gemm1", 2, 1, kOfScores, kOfRows},     // ds q
                   {"bmm1_grad_gemm2", 3, 1, kOfScores, kOfRows},     // ds k
                   {"bmm2_grad_gemm1", 2, 1, kOfScores, kOfRows},     // p dy
                   {"bmm2_grad_gemm2", 3, 3, kOfRows, kOfRows}};      // dy v

/// [b, s, g, r, e] as [b, s, g r, e].
Shape flat(const Shape& q) { return {q[0], q[1], q[2] * q[3], q[4]}; }

/// The protobuf GpuBackendConfig of XLA, in JSON; numbers of 64 bits are strings there.
std::string config_of(const Writing& w, int first, std::span<const Product> products) {
  const Shape& q = w.in(first).shape();
  const std::int64_t keys = w.in(first + 1).shape()[1];
  std::string out = text(
      R"({"operation_queue_id":"0","cudnn_fmha_backend_config":{"algorithm":{"algo_id":"0",)",
      R"("math_type":"TENSOR_OP_MATH","tuning_knobs":{"17":"1","24":"0"},)",
      R"("is_cudnn_frontend":true,"workspace_size":"0"},"fmha_scale":)", w.call.number("scale"),
      R"(,"dropout_rate":0,"is_flash_attention":true,"max_seg_per_batch":1,"mask_type":")",
      w.call.flag("causal") ? "CAUSAL" : "NO_MASK",
      R"(","intermediate_tensor_shape":{"element_type":")",
      w.in(first).element() == Element::BF16 ? "BF16" : "F16", R"(","dimensions":[")", q[0],
      R"(",")", q[2] * q[3], R"(",")", q[1], R"(",")", keys,
      R"("],"is_dynamic_dimension":[false,false,false,false],)",
      R"("layout":{"minor_to_major":["3","2","1","0"]}})");
  for (const Product& p : products) {
    out +=
        text(R"(,")", p.name, R"(_dot_dimension_numbers":{"lhs_contracting_dimensions":[")", p.left,
             R"("],"rhs_contracting_dimensions":[")", p.right, R"("],"lhs_batch_dimensions":[)",
             p.left_batch, R"(],"rhs_batch_dimensions":[)", p.right_batch, "]}");
  }
  return out + "}}";
}

/// [b, heads, s, e], in memory [b, s, heads, e], of a kernel's `x`.
Code::CallResult rows_like(const Value& x) {
  const Shape& size = x.shape();
  return {{x.element(), {size[0], size[2], size[1], size[3]}}, {3, 1, 2, 0}};
}

Code::CallResult workspace() { return {{Element::U8, {0}}, {0}}; }

/// Of such a result, as the op has it.
Value as_rows(Code& code, const Value& x, const Shape& shape) {
  return code.reshape(code.transpose(x, {0, 2, 1, 3}), shape);
}

}  // namespace

bool cudnn_takes(const Writing& w, int first) {
  const Value &q = w.in(first), &k = w.in(first + 1);
  const std::int64_t head = q.shape()[4];
  const bool narrow = q.element() == Element::BF16 || q.element() == Element::F16;
  const Result& queries = w.operand(first);
  const bool all_queries = !queries.placement || queries.logical[1] == q.shape()[1];
  const bool same_begin = !w.call.flag("causal") || (all_queries && q.shape()[1] == k.shape()[1]);
  return w.e.options.cudnn_attention && narrow && head % 8 == 0 && head <= 128 && same_begin &&
         !w.call.flag("mask") && w.call.integer_or("window", 0) == 0 &&
         w.call.number_or("cap", 0) == 0 && !w.call.flag_or("slopes", false) &&
         !w.call.flag_or("of_logsumexp", false) && w.call.number("dropout") == 0;
}

/// (q, k, v) -> (y, logsumexp).
void write_cudnn_attention(Writing& w) {
  const Shape& shape = w.in(0).shape();
  const Value q = w.code.reshape(w.in(0), flat(shape));
  const Type statistics{Element::F32, {shape[0], shape[2] * shape[3], shape[1]}};
  const Values outs =
      w.code.custom_call("__cudnn$fmhaSoftmax", {q, w.in(1), w.in(2)}, config_of(w, 0, kForward),
                         {rows_like(q), {statistics, {2, 1, 0}}, workspace()});
  w.out(as_rows(w.code, outs[0], shape));
  w.out(w.code.reshape(outs[1], w.result(1).type.shape));
}

/// (dy, q, k, v, y, logsumexp) -> (dq, dk, dv).
void write_cudnn_attention_grad(Writing& w) {
  Code& code = w.code;
  const Shape rows = flat(w.in(1).shape());
  const Value dy = code.reshape(w.in(0), rows), q = code.reshape(w.in(1), rows), &k = w.in(2),
              &v = w.in(3), y = code.reshape(w.in(4), rows),
              logsumexp = code.reshape(w.in(5), {rows[0], rows[2], rows[1]});
  const Values outs = code.custom_call("__cudnn$fmhaSoftmaxBackward", {q, k, v, logsumexp, dy, y},
                                       config_of(w, 1, kBackward),
                                       {rows_like(q), rows_like(k), rows_like(v), workspace()});
  for (int i = 0; i < 3; ++i)
    w.out(as_rows(code, outs[static_cast<std::size_t>(i)], w.result(i).type.shape));
}

}  // namespace tessera::hlo
