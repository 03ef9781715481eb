#include <algorithm>
#include <cstring>

#include "tessera/device/cpu/in_f32.h"
#include "tessera/device/cpu/kernels.h"
#include "tessera/ir/graph.h"
#include "tessera/ops/reference.h"

namespace tessera::cpu {

namespace {

/// An operand that must be copied before the reference loops may read it: dense, not
/// being overwritten.
struct Staged {
  int operand;
  bool always;          // else only where a result lies in its buffer
  std::int64_t offset;  // in the workspace
  Shape strides;
};

class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(const KernelRequest& request)
      : call_(request.call),
        function_(loops_of(request.call)),
        key_(request.key),
        seed_(request.seed),
        coordinate_(request.coordinate) {
    check(function_ != nullptr, request.call.op().name, " has no reference kernel");
    for (int i = 0; i < request.call.num_in(); ++i) {
      in_shards_.push_back(in_shard(request, i));
      ins_.push_back(operand(request.call.in(i), in_shards_.back()));
      stage(request, i);
    }
    for (int i = 0; i < request.call.num_out(); ++i) {
      out_shards_.push_back(out_shard(request, i));
      outs_.push_back(operand(request.call.out(i), out_shards_.back()));
    }
  }

  std::string_view name() const override { return "reference"; }
  std::int64_t workspace_bytes() const override { return workspace_; }

  void run(const KernelArgs& args) const override {
    place(ins_, in_shards_, args.microbatch);
    place(outs_, out_shards_, args.microbatch);
    // The loops get non-const pointers of operands, and only read them.
    for (std::size_t i = 0; i < ins_.size(); ++i) ins_[i].data = const_cast<void*>(args.ins[i]);
    for (std::size_t i = 0; i < outs_.size(); ++i) outs_[i].data = args.outs[i];
    for (const Staged& staged : staged_) copy(staged, args);
    RefCall ref(*call_, ins_, outs_, key_);
    ref.seed = seed_;
    ref.coordinate = coordinate_;
    function_(ref);
  }

 private:
  static RefFunction loops_of(const OpCall& call) {
    const Reference& reference = call.op().reference;
    for (int i = 0; i < call.num_in(); ++i) {
      if (call.in(i).dtype == DType::F64) return reference.f64;
    }
    return reference.f32;
  }

  static RefOperand operand(const TensorType& type, const ShardInfo& shard) {
    return {type, nullptr, shard.offset, type.shape, shard.global};
  }

  static void place(std::vector<RefOperand>& operands, const std::vector<ShardInfo>& shards,
                    std::int64_t microbatch) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      operands[i].offset = offset_at(shards[i], microbatch);
      operands[i].valid = valid_at(shards[i], operands[i].type.shape, operands[i].offset);
    }
  }

  void stage(const KernelRequest& request, int i) {
    const TensorType& type = request.call.in(i);
    Staged staged{i, false, workspace_, strides_of(request, i)};
    staged.always = !is_dense(request, i);
    bool overwritten = false;
    for (const InPlace& pair : request.call.op().in_place) {
      overwritten |= pair.result >= 0 && pair.operand == i;
    }
    if (!staged.always && !overwritten) return;
    workspace_ += (type.bytes() + 63) / 64 * 64;
    staged_.push_back(std::move(staged));
  }

  void copy(const Staged& staged, const KernelArgs& args) const {
    RefOperand& in = ins_[static_cast<std::size_t>(staged.operand)];
    const bool overwritten = std::any_of(
        outs_.begin(), outs_.end(), [&](const RefOperand& out) { return out.data == in.data; });
    if (!staged.always && !overwritten) return;
    const char* const from = static_cast<const char*>(in.data);
    char* const to = static_cast<char*>(args.workspace) + staged.offset;
    in.data = to;
    const auto size = static_cast<std::size_t>(size_of(in.type.dtype));
    for_each_index(in.type.shape, [&](const Shape& at, std::int64_t linear) {
      std::int64_t offset = 0;
      for (int d = 0; d < at.ndim(); ++d) offset += at[d] * staged.strides[d];
      std::memcpy(to + linear * static_cast<std::int64_t>(size),
                  from + offset * static_cast<std::int64_t>(size), size);
    });
  }

  CallInF32 call_;
  RefFunction function_;
  std::uint64_t key_, seed_;
  std::int64_t coordinate_;
  std::vector<ShardInfo> in_shards_, out_shards_;
  std::vector<Staged> staged_;
  std::int64_t workspace_ = 0;
  // Set anew by every run: kept here so that a run allocates nothing. One thread at a time, says
  // Kernel.
  mutable std::vector<RefOperand> ins_, outs_;
};

}  // namespace

std::unique_ptr<Kernel> make_reference_kernel(const KernelRequest& request) {
  return std::make_unique<ReferenceKernel>(request);
}

}  // namespace tessera::cpu
