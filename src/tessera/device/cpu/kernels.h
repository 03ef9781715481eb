#pragma once
/// The kernel list of the CPU: per op the makers in order of preference. A maker returns null where
/// it does not accept.

#include <memory>
#include <span>

#include "tessera/device/cpu/pool.h"
#include "tessera/device/device.h"

namespace tessera::cpu {

using KernelMaker = std::unique_ptr<Kernel> (*)(const KernelRequest&, Pool&);

struct KernelEntry {
  const OpDef* op;  // nullptr: any
  KernelMaker make;
  Isa isa = Isa::Baseline;  // the least that it needs
  bool any_dtype = false;  // it takes 16-bit floats too, or alone: others run on copies (widened.h)
  F32Products f32_products = F32Products::Fma;  // Amx: only devices that choose it have this entry
  bool is_for(const OpDef& other) const { return op == nullptr || op == &other; }
};

/// All entries, in order of preference within an op; cpu/kernels.cpp lists the families.
std::span<const KernelEntry> kernel_list();

/// Strides of operand `i` in elements, dense where the request says nothing.
Shape strides_of(const KernelRequest& request, int i);
/// True where operand `i` lies dense and row-major.
bool is_dense(const KernelRequest& request, int i);
/// The shard of operand or result `i`; the whole tensor where the request says nothing.
ShardInfo in_shard(const KernelRequest& request, int i);
ShardInfo out_shard(const KernelRequest& request, int i);

/// Logical index of the first element, as this micro-batch sees it.
Shape offset_at(const ShardInfo& shard, std::int64_t microbatch);
/// Elements of a local `shape` at `offset` that lie inside the logical extents.
Shape valid_at(const ShardInfo& shard, const Shape& shape, const Shape& offset);

/// The reference kernel on one thread: accepts everything, strided and padded operands included.
std::unique_ptr<Kernel> make_reference_kernel(const KernelRequest& request);

}  // namespace tessera::cpu
