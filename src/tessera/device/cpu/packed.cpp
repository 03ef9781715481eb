#include "tessera/device/cpu/packed.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tessera/base/round_up.h"
#include "tessera/device/cpu/matmul.h"
#include "tessera/gemm/tile_gemm.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/pack.h"

namespace tessera::cpu {

namespace {

constexpr std::string_view kTag = "onednn";
constexpr std::int64_t kPackedGrain = 16;  // columns: a cache line of f32

/// What a tag says: the product that the weights are packed for, and into how many parts of columns
/// it is cut, one per thread. Both the pack and the product are made from it alone, so they agree.
struct Form {
  GemmShape shape;
  std::int64_t parts = 0;

  std::array<std::int64_t, 9> numbers() const {
    return {shape.m,     shape.n,     shape.k,     shape.a_row, shape.a_col,
            shape.b_row, shape.b_col, shape.c_row, parts};
  }
  std::string tag() const { return text(kTag, ".", join(numbers(), ".")); }
  static std::optional<Form> parse(const std::string& tag) {
    const std::vector<std::string> words = split(tag, '.');
    std::array<std::int64_t, 9> v{};
    if (words.size() != v.size() + 1 || words[0] != kTag) return std::nullopt;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const std::string& word = words[i + 1];
      std::from_chars(word.data(), word.data() + word.size(), v[i]);
    }
    return Form{{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], false}, v[8]};
  }
};

/// A part of the columns and where its packed weights lie.
struct Part {
  std::int64_t first = 0, offset = 0;
  std::size_t product = 0;
};

class Parts {
 public:
  explicit Parts(const Form& form) {
    const std::int64_t n = form.shape.n,
                       step = round_up((n + form.parts - 1) / form.parts, kPackedGrain);
    std::vector<std::int64_t> widths;
    for (std::int64_t first = 0; first < n; first += step) {
      GemmShape shape = form.shape;
      shape.n = std::min(step, n - first);
      const auto found = std::find(widths.begin(), widths.end(), shape.n);
      list.push_back({first, bytes, static_cast<std::size_t>(found - widths.begin())});
      if (found == widths.end()) {
        widths.push_back(shape.n);
        products.emplace_back(shape, Weights::Packed);
        scratch = std::max(scratch, round_up(products.back().scratch_bytes(), 64));
      }
      bytes += round_up(products[list.back().product].packed_bytes(), 64);
    }
  }
  const Gemm& product(const Part& part) const { return products[part.product]; }

  std::vector<Part> list;
  std::vector<Gemm> products;
  std::int64_t bytes = 0, scratch = 0;  // scratch: of one part
};

class PackKernel final : public Kernel {
 public:
  PackKernel(const Form& form, Pool& pool) : b_col_(form.shape.b_col), parts_(form), pool_(pool) {}
  std::string_view name() const override { return "onednn:pack"; }
  std::int64_t workspace_bytes() const override { return parts_.scratch * count(); }
  std::int64_t packed_bytes() const { return parts_.bytes; }

  void run(const KernelArgs& args) const override {
    pool_.run(static_cast<int>(count()), [&](int i) {
      const Part& part = parts_.list[static_cast<std::size_t>(i)];
      parts_.product(part).pack(static_cast<const float*>(args.ins[0]) + part.first * b_col_,
                                static_cast<char*>(args.outs[0]) + part.offset,
                                static_cast<char*>(args.workspace) + i * parts_.scratch);
    });
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(parts_.list.size()); }
  std::int64_t b_col_;
  Parts parts_;
  Pool& pool_;
};

class PackedMatmulKernel final : public Kernel {
 public:
  PackedMatmulKernel(const Form& form, bool swapped, Pool& pool)
      : swapped_(swapped), parts_(form), pool_(pool) {}
  std::string_view name() const override { return "onednn:matmul_packed"; }
  std::int64_t workspace_bytes() const override { return parts_.scratch * count(); }
  std::int64_t packed_bytes() const { return parts_.bytes; }

  void run(const KernelArgs& args) const override {
    pool_.run(static_cast<int>(count()), [&](int i) {
      const Part& part = parts_.list[static_cast<std::size_t>(i)];
      parts_.product(part).execute(
          static_cast<const float*>(args.ins[swapped_ ? 1 : 0]),
          static_cast<const char*>(args.ins[swapped_ ? 0 : 1]) + part.offset,
          static_cast<float*>(args.outs[0]) + part.first,
          static_cast<char*>(args.workspace) + i * parts_.scratch);
    });
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(parts_.list.size()); }
  bool swapped_;
  Parts parts_;
  Pool& pool_;
};

std::unique_ptr<Kernel> make_pack(const KernelRequest& request, Pool& pool) {
  const std::optional<Form> form = Form::parse(request.call.string("tag"));
  if (!form) return nullptr;
  auto kernel = std::make_unique<PackKernel>(*form, pool);
  check(kernel->packed_bytes() <= request.call.out(0).bytes(), "pack: ", request.call.out(0),
        " is too small for ", kernel->packed_bytes(), " bytes");
  return kernel;
}

std::unique_ptr<Kernel> make_packed_matmul(const KernelRequest& request, Pool& pool) {
  const OpCall& call = request.call;
  const bool first = !call.in(0).layout.plain();
  const std::optional<Form> form = Form::parse(call.in(first ? 0 : 1).layout.tag);
  if (!form) return nullptr;
  const std::optional<SingleProduct> product = single_product(request);
  check(product && product->swapped == first && product->shape == form->shape,
        "matmul: packed for another product: ", call.in(0), ", ", call.in(1));
  return std::make_unique<PackedMatmulKernel>(*form, first, pool);
}

constexpr std::array<KernelEntry, 2> kPackedKernels = {
    {{&kPack, make_pack}, {&kMatmul, make_packed_matmul}}};

KernelRequest dense_request(const OpCall& call) {
  KernelRequest request{call, {}, {}, {}, 0};
  const auto whole = [](const TensorType& type) {
    return ShardInfo{type.shape, Shape::of(type.ndim(), 0), Shape::of(type.ndim(), 0), type.shape};
  };
  for (int i = 0; i < call.num_in(); ++i) {
    request.in_strides.push_back(call.in(i).shape.strides());
    request.ins.push_back(whole(call.in(i)));
  }
  for (int i = 0; i < call.num_out(); ++i) request.outs.push_back(whole(call.out(i)));
  return request;
}

/// Fewer rows of A do not make up for the packing.
constexpr std::int64_t kLeastRows = 512;

}  // namespace

std::optional<Layout> packed_layout(const OpCall& call, int operand, std::int64_t uses,
                                    const Packing& packing) {
  const bool always = packing.always;
  if (&call.op() != &kMatmul || !(always || (packing.pays && uses >= 2))) return std::nullopt;
  const std::optional<SingleProduct> product = single_product(dense_request(call));
  if (!product || operand != (product->swapped ? 0 : 1)) return std::nullopt;
  const GemmShape& s = product->shape;
  if (s.m == 1 || s.n == 1 || s.k == 1) return std::nullopt;
  if (packing.amx && !always && AmxGemm::pays(s.m, s.n, s.k, packing.threads)) return std::nullopt;
  if (!always && s.m * uses < kLeastRows) return std::nullopt;
  const Form form{s, packing.threads};
  const Parts parts(form);
  // The type rule counts elements: the packed form is at least as large.
  const std::int64_t plain = call.in(operand).numel() * size_of(DType::F32);
  return Layout{form.tag(), std::max(parts.bytes, plain)};
}

std::span<const KernelEntry> packed_kernels() { return kPackedKernels; }

}  // namespace tessera::cpu
