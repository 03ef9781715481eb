#include "tessera/pjrt/compiled.h"

#include "tessera/pjrt/c/call.h"
#include "tessera/pjrt/c/element_type.h"

namespace tessera::pjrt {

namespace {

/// What a plugin wrote, deleted by the plugin.
struct DeleteSerialized {
  const c::Serialized* written;
  ~DeleteSerialized() {
    if (written->delete_owner != nullptr) written->delete_owner(written->owner);
  }
};

}  // namespace

std::string Compiled::name() const {
  return c::get_text<c::ExecutableName>(executable_.plugin(), executable_.get());
}
int Compiled::num_replicas() const {
  return static_cast<int>(
      c::get<c::ExecutableNumReplicas>(executable_.plugin(), executable_.get()));
}
int Compiled::num_partitions() const {
  return static_cast<int>(
      c::get<c::ExecutableNumPartitions>(executable_.plugin(), executable_.get()));
}
int Compiled::num_outputs() const {
  return static_cast<int>(c::get<c::ExecutableNumOutputs>(executable_.plugin(), executable_.get()));
}

TensorTypes Compiled::output_types() const {
  const Plugin& plugin = executable_.plugin();
  const auto dtypes =
      c::checked(plugin, c::Call::ExecutableOutputElementTypes,
                 c::get<c::ExecutableOutputElementTypes>(plugin, executable_.get()));
  constexpr c::Call kDims = c::Call::ExecutableOutputDimensions;
  const auto dims = c::get<c::ExecutableOutputDimensions>(plugin, executable_.get());
  const auto ndims = c::checked(plugin, kDims, c::List<std::size_t>{dims.ndims, dims.count});
  if (ndims.size() != dtypes.size()) {
    c::fail_answer(plugin, kDims, text(ndims.size(), " outputs for ", dtypes.size(), " types"));
  }
  TensorTypes out;
  const std::int64_t* at = dims.dims;
  for (std::size_t i = 0; i < ndims.size(); ++i) {
    const auto own = c::checked(plugin, kDims, c::List<std::int64_t>{at, ndims[i]});
    out.push_back({c::dtype_of(plugin, dtypes[i]), c::shape_of(plugin, kDims, own), {}});
    at += ndims[i];
  }
  return out;
}

std::vector<std::string> Compiled::output_memory_kinds() const {
  const Plugin& plugin = executable_.plugin();
  auto kinds = c::arguments<c::ExecutableOutputMemoryKinds>();
  kinds.of = executable_.get();
  if (!c::call_if_there(plugin, kinds)) return {};
  constexpr c::Call kCall = c::Call::ExecutableOutputMemoryKinds;
  const c::OutputKinds& answer = kinds.answer;
  const auto texts = c::checked(plugin, kCall, c::List<const char*>{answer.kinds, answer.count});
  const auto sizes = c::checked(plugin, kCall, c::List<std::size_t>{answer.sizes, answer.count});
  std::vector<std::string> out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    out.push_back(c::copy(plugin, kCall, c::Text{texts[i], sizes[i]}));
  }
  return out;
}

CompiledMemory Compiled::memory() const {
  const auto stats =
      c::get<c::ExecutableGetCompiledMemoryStats>(executable_.plugin(), executable_.get());
  constexpr std::int64_t kMost = std::int64_t{1} << 50;  // sums of a few stay far from overflow
  for (const std::int64_t bytes : {stats.argument, stats.output, stats.alias, stats.temp,
                                   stats.generated_code, stats.host_argument, stats.host_output,
                                   stats.host_alias, stats.host_temp, stats.host_generated_code}) {
    if (bytes < 0 || bytes > kMost)
      c::fail_answer(executable_.plugin(), c::Call::ExecutableGetCompiledMemoryStats,
                     text(bytes, " bytes of memory"));
  }
  CompiledMemory out;
  out.argument = stats.argument, out.output = stats.output, out.alias = stats.alias;
  out.temp = stats.temp, out.code = stats.generated_code;
  out.host_argument = stats.host_argument, out.host_output = stats.host_output;
  out.host_alias = stats.host_alias, out.host_temp = stats.host_temp;
  out.host_code = stats.host_generated_code;
  out.compiler_peak = stats.peak;
  return out;
}

std::string Compiled::serialize() const {
  auto serialize = c::arguments<c::ExecutableSerialize>();
  serialize.of = executable_.get();
  c::call(executable_.plugin(), serialize);
  const DeleteSerialized owner{&serialize.answer};
  return c::copy(executable_.plugin(), c::Call::ExecutableSerialize, serialize.answer.bytes);
}

std::optional<std::string> Compiled::fingerprint() const {
  auto fingerprint = c::arguments<c::ExecutableFingerprint>();
  fingerprint.of = executable_.get();
  if (!c::call_if_there(executable_.plugin(), fingerprint)) return std::nullopt;
  return c::copy(executable_.plugin(), c::Call::ExecutableFingerprint, fingerprint.answer);
}

Compiled::Optimized Compiled::optimized() const {
  const Plugin& plugin = executable_.plugin();
  constexpr c::Call kCall = c::Call::ExecutableOptimizedProgram;
  c::Program program;
  program.head.size = c::Program::kSize;
  auto ask = c::arguments<c::ExecutableOptimizedProgram>();
  ask.of = executable_.get();
  ask.answer = &program;
  c::call(plugin, ask);  // its size
  Optimized out;
  constexpr std::size_t kMost = std::size_t{1} << 34;
  if (program.code_size > kMost) {
    c::fail_answer(plugin, kCall, text("a program of ", program.code_size, " bytes"));
  }
  out.code.resize(program.code_size);
  program.code = out.code.data();
  c::call(plugin, ask);
  if (program.code_size > out.code.size()) {
    c::fail_answer(plugin, kCall, "another size than before");
  }
  out.code.resize(program.code_size);
  out.format = c::copy(plugin, kCall, program.format);
  return out;
}

NamedValues Compiled::cost() const {
  auto cost = c::arguments<c::ExecutableGetCostAnalysis>();
  cost.of = executable_.get();
  if (!c::call_if_there(executable_.plugin(), cost)) return {};
  return c::copy(executable_.plugin(), c::Call::ExecutableGetCostAnalysis,
                 {cost.answer.items, cost.answer.count});
}

}  // namespace tessera::pjrt
