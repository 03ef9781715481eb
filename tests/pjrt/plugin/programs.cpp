/// Programs: "identity" (results are copies of the arguments), "add" (the sum of the arguments), "sum"
/// (the sum of an argument over replicas), "step" (argument 0, which is donated, plus the sum of
/// argument 1 over replicas), all of f32. Of a module in MLIR's text only the signature is read: a
/// result that takes over an argument's memory has its value, all others are ones.

#include <array>
#include <cstring>
#include <set>
#include <sstream>

#include "pjrt/plugin/objects.h"
#include "pjrt/plugin/wire.h"

namespace tessera::pjrt::c {

namespace {

constexpr std::string_view kMark = "test program ";

/// Of CompileOptionsProto, what the plugin needs.
bool read_compile_options(std::string_view bytes, ProgramText& out) {
  const auto options = read_message(bytes);
  if (!options) return false;
  for (const WireField& field : *options) {
    const auto inner = read_message(field.bytes);
    if (!inner) return false;
    if (field.number == 7) out.flags.emplace_back(inner->at(0).bytes);
    if (field.number != 3) continue;
    for (const WireField& build : *inner) {
      if (build.number == 4) out.num_replicas = static_cast<int>(build.value);
      if (build.number != 9) continue;
      const auto assignment = read_message(build.bytes);
      if (!assignment) return false;
      for (const WireField& row : *assignment) {
        if (row.number != 3) continue;
        const auto computation = read_message(row.bytes);
        if (!computation) return false;
        std::string_view ids = computation->at(0).bytes;
        while (!ids.empty()) out.device_ids.push_back(static_cast<int>(*read_varint(ids)));
      }
    }
  }
  return true;
}

std::optional<ElementType> element_type_of(std::string_view name) {
  constexpr std::pair<std::string_view, ElementType> kTypes[] = {
      {"i1", ElementType::Pred}, {"i32", ElementType::S32},   {"i64", ElementType::S64},
      {"f16", ElementType::F16}, {"bf16", ElementType::Bf16}, {"f32", ElementType::F32},
      {"f64", ElementType::F64}};
  for (const auto& [of, type] : kTypes) {
    if (of == name) return type;
  }
  return std::nullopt;
}

/// "4x8xf32"
std::optional<TensorText> read_tensor(std::string_view text) {
  TensorText out;
  for (std::size_t at = text.find('x'); at != text.npos; at = text.find('x')) {
    out.dims.push_back(std::stoll(std::string(text.substr(0, at))));
    text.remove_prefix(at + 1);
  }
  const auto type = element_type_of(text);
  if (!type) return std::nullopt;
  out.type = *type;
  return out;
}

/// The tensors of a list, and what each is followed by up to the next.
std::optional<std::vector<std::pair<TensorText, std::string_view>>> read_tensors(
    std::string_view list) {
  constexpr std::string_view kBegin = "tensor<";
  std::vector<std::pair<TensorText, std::string_view>> out;
  for (std::size_t at = list.find(kBegin); at != list.npos;) {
    const std::size_t begin = at + kBegin.size(), end = list.find('>', begin);
    const auto tensor = read_tensor(list.substr(begin, end - begin));
    if (!tensor) return std::nullopt;
    at = list.find(kBegin, end);
    out.emplace_back(*tensor, list.substr(end, at == list.npos ? at : at - end));
  }
  return out;
}

/// False where it is no module with a main function of tensors.
bool read_signature(ProgramText& out) {
  const std::string_view text = out.text;
  constexpr std::string_view kMain = "func.func public @main(", kArrow = ") -> ";
  const std::size_t begin = text.find(kMain), arrow = text.find(kArrow, begin);
  const std::size_t end = text.find(" {\n", arrow);
  if (!text.starts_with("module @") || begin == text.npos || end == text.npos) return false;
  const auto arguments = read_tensors(text.substr(begin, arrow - begin));
  const auto results = read_tensors(text.substr(arrow, end - arrow));
  if (!arguments || !results) return false;
  out.is_module = true;
  out.results.clear();
  for (const auto& [tensor, rest] : *results) out.results.push_back(tensor);
  constexpr std::string_view kAlias = "tf.aliasing_output = ";
  for (std::size_t i = 0; i < arguments->size(); ++i) {
    const std::string_view rest = (*arguments)[i].second;
    const std::size_t at = rest.find(kAlias);
    if (at == rest.npos) continue;
    const std::size_t result = std::stoul(std::string(rest.substr(at + kAlias.size())));
    out.results.at(result).taken = static_cast<int>(i);
  }
  return true;
}

Error* read_program(const Program& program, Text options, ProgramText& out) {
  out.text.assign(program.code, program.code_size);
  const std::set<std::string> known = {"identity", "add", "sum", "step"};
  const std::set<std::string> known_flags = {"known", "xla_gpu_enable_latency_hiding_scheduler"};
  if (std::string_view(program.format.data, program.format.size) != "mlir" ||
      !(known.contains(out.text) || read_signature(out))) {
    return error(Code::InvalidArgument, "not a program: \x1b[1m" + out.text);
  }
  if (!read_compile_options({options.data, options.size}, out)) {
    return error(Code::InvalidArgument, "options are no CompileOptionsProto");
  }
  for (const std::string& flag : out.flags) {
    if (!known_flags.contains(flag))
      return error(Code::InvalidArgument, "No such compile option: " + flag);
  }
  return nullptr;
}

Error* load_program(Client* client, const ProgramText& program, LoadedExecutable*& made) {
  auto out = std::make_unique<LoadedExecutable>();
  out->program = program;
  out->client = client;
  for (int replica = 0; replica < program.num_replicas; ++replica) {
    const std::size_t at = static_cast<std::size_t>(replica);
    const int id = program.device_ids.empty() ? replica : program.device_ids.at(at);
    if (id < 0 || id >= static_cast<int>(client->devices.size())) {
      return error(Code::InvalidArgument, "No matching device found");
    }
    Device* const device = client->devices[static_cast<std::size_t>(id)];
    if (device->local) out->devices.push_back(device);
  }
  made = out.release();
  return nullptr;
}

Error* compile_for_client(ClientCompile* of) {
  ProgramText program;
  if (Error* const failed = read_program(*of->program, of->options, program)) return failed;
  return load_program(of->client, program, of->executable);
}
Error* compile_for_topology(Compile* of) {
  auto out = std::make_unique<Executable>();
  if (Error* const failed = read_program(*of->program, of->options, out->program)) return failed;
  of->executable = out.release();
  return nullptr;
}
Error* deserialize(ExecutableDeserializeAndLoad* of) {
  const std::string_view bytes(of->bytes.data, of->bytes.size);
  if (bytes.substr(0, kMark.size()) != kMark) return error(Code::Internal, "no program in there");
  std::istringstream in{std::string(bytes.substr(kMark.size()))};
  ProgramText program;
  std::size_t num_ids = 0;
  in >> program.num_replicas >> num_ids;
  for (int id = 0; num_ids > 0 && in >> id; --num_ids) program.device_ids.push_back(id);
  in.ignore();
  program.text = std::string(std::istreambuf_iterator<char>(in), {});
  read_signature(program);
  return load_program(of->client, program, of->executable);
}
Error* serialize(ExecutableSerialize* of) {
  auto* const owner = new SerializedExecutable;
  const ProgramText& program = of->of->program;
  owner->bytes = std::string(kMark) + std::to_string(program.num_replicas) + ' ' +
                 std::to_string(program.device_ids.size());
  for (const int id : program.device_ids) owner->bytes += ' ' + std::to_string(id);
  owner->bytes += "\n" + program.text;
  of->answer = {said(owner->bytes), owner,
                [](SerializedExecutable* written) -> void { delete written; }};
  return nullptr;
}

Error* destroy_executable(ExecutableDestroy* of) {
  delete of->of;
  return nullptr;
}
Error* destroy_loaded(LoadedExecutableDestroy* of) {
  delete of->of;
  return nullptr;
}
Error* inner_executable(LoadedExecutableGetExecutable* of) {
  of->answer = new Executable;
  of->answer->program = of->of->program;
  return nullptr;
}
Error* loaded_devices(LoadedExecutableAddressableDevices* of) {
  of->answer = {of->of->devices.data(), of->of->devices.size()};
  return nullptr;
}
Error* executable_name(ExecutableName* of) {
  of->answer = said(of->of->program.text);
  return nullptr;
}
Error* fingerprint(ExecutableFingerprint* of) {
  of->answer = said(of->of->program.text);
  return nullptr;
}
Error* num_replicas(ExecutableNumReplicas* of) {
  of->answer = static_cast<std::size_t>(of->of->program.num_replicas);
  return nullptr;
}
Error* num_partitions(ExecutableNumPartitions* of) {
  of->answer = 1;
  return nullptr;
}
Error* num_outputs(ExecutableNumOutputs* of) {
  of->answer = of->of->program.results.size();
  return nullptr;
}
Error* output_types(ExecutableOutputElementTypes* of) {
  std::vector<ElementType>& types = of->of->types;
  types.clear();
  for (const TensorText& result : of->of->program.results) types.push_back(result.type);
  of->answer = {types.data(), types.size()};
  return nullptr;
}
Error* output_dims(ExecutableOutputDimensions* of) {
  Executable& executable = *of->of;
  executable.dims.clear();
  executable.ndims.clear();
  for (const TensorText& result : executable.program.results) {
    executable.dims.insert(executable.dims.end(), result.dims.begin(), result.dims.end());
    executable.ndims.push_back(result.dims.size());
  }
  of->answer = {executable.ndims.size(), executable.dims.data(), executable.ndims.data()};
  return nullptr;
}
Error* output_memories(ExecutableOutputMemoryKinds* of) {
  static constexpr const char* kKinds[] = {"device"};
  static constexpr std::size_t kSizes[] = {6};
  of->answer = {1, kKinds, kSizes};
  return nullptr;
}
Error* compiled_memory(ExecutableGetCompiledMemoryStats* of) {
  of->answer = {1, 20, 30, 5, 400, 2, 3, 4, 1, 6, 700};
  return nullptr;
}
Error* cost(ExecutableGetCostAnalysis* of) {
  static NamedValue flops;
  flops.head.size = NamedValue::kSize;
  flops.name = {"flops", 5};
  flops.kind = ValueKind::Float;
  flops.float32 = 12;
  flops.count = 1;
  of->answer = {1, &flops};
  return nullptr;
}
Error* optimized(ExecutableOptimizedProgram* of) {
  const std::string& text = of->of->program.text;
  of->answer->format = {"text", 4};
  if (of->answer->code != nullptr) std::memcpy(of->answer->code, text.data(), text.size());
  of->answer->code_size = text.size();
  return nullptr;
}

using Floats = std::vector<float>;

Floats numbers(const Buffer& buffer) {
  Floats out(buffer.bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), buffer.bytes.data(), out.size() * sizeof(float));
  return out;
}
void add_to(Floats& sum, const Floats& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more.at(i);
}

/// What `device` computes.
Floats result_of(const LoadedExecutableExecute& run, std::size_t device) {
  const std::string& what = run.executable->program.text;
  Buffer* const* const arguments = run.arguments[device];
  Floats out = numbers(*arguments[0]);
  if (what == "add") {
    for (std::size_t i = 1; i < run.num_arguments; ++i) add_to(out, numbers(*arguments[i]));
  } else if (what == "sum") {
    for (std::size_t other = 0; other < run.num_devices; ++other) {
      if (other != device) add_to(out, numbers(*run.arguments[other][0]));
    }
  } else if (what == "step") {
    for (std::size_t other = 0; other < run.num_devices; ++other) {
      add_to(out, numbers(*run.arguments[other][1]));
    }
  }
  return out;
}

/// Without bytes.
Buffer* new_buffer(ElementType type, std::vector<std::int64_t> dims, Device* device) {
  auto* const out = new Buffer;
  out->type = type;
  out->dims = std::move(dims);
  out->device = device;
  out->memory = device->memory_list[0];
  return out;
}

template <typename T>
void fill(Buffer& buffer, T value) {
  for (std::size_t at = 0; at < buffer.bytes.size(); at += sizeof value)
    std::memcpy(buffer.bytes.data() + at, &value, sizeof value);
}
void fill_with_ones(Buffer& buffer) {
  switch (buffer.type) {
    case ElementType::Pred: return fill(buffer, std::uint8_t{1});
    case ElementType::S32: return fill(buffer, std::int32_t{1});
    case ElementType::S64: return fill(buffer, std::int64_t{1});
    case ElementType::F16: return fill(buffer, std::uint16_t{0x3c00});
    case ElementType::Bf16: return fill(buffer, std::uint16_t{0x3f80});
    case ElementType::F32: return fill(buffer, 1.0f);
    case ElementType::F64: return fill(buffer, 1.0);
  }
}

void run_module(const LoadedExecutableExecute& run, std::size_t device) {
  const std::vector<TensorText>& results = run.executable->program.results;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const TensorText& result = results[i];
    Buffer* const out = new_buffer(result.type, result.dims, run.executable->devices[device]);
    run.outputs[device][i] = out;
    if (result.taken < 0) {
      out->take(std::vector<char>(bytes_of(out->type, out->dims)));
      fill_with_ones(*out);
      continue;
    }
    Buffer& taken = *run.arguments[device][static_cast<std::size_t>(result.taken)];
    out->take(taken.give());
    out->memory = taken.memory;
    taken.deleted = true;
  }
}

void run_named(const LoadedExecutableExecute& run, std::size_t device, const Floats& result) {
  Buffer& first = *run.arguments[device][0];
  Buffer* const out = new_buffer(ElementType::F32, first.dims, first.device);
  out->take(std::vector<char>(bytes_of(out->type, out->dims)));
  if (!out->bytes.empty()) std::memcpy(out->bytes.data(), result.data(), out->bytes.size());
  out->memory = first.memory;
  run.outputs[device][0] = out;
  if (run.executable->program.text == "step") first.deleted = true;
}

Error* execute(LoadedExecutableExecute* run) {
  const ProgramText& program = run->executable->program;
  const std::size_t least = program.is_module ? 0 : program.text == "step" ? 2 : 1;
  if (run->num_arguments < least) return error(Code::InvalidArgument, "too few arguments");
  if (run->num_devices != run->executable->devices.size())
    return error(Code::InvalidArgument, "another number of devices");
  ++control().executions;
  std::vector<Floats> results;
  for (std::size_t device = 0; device < run->num_devices; ++device) {
    for (std::size_t i = 0; i < run->num_arguments; ++i) {
      const Buffer& argument = *run->arguments[device][i];
      if (argument.deleted) return error(Code::InvalidArgument, "deleted");
      if (program.is_module && argument.device != run->executable->devices[device])
        return error(Code::InvalidArgument, "an argument on another device");
    }
    if (!program.is_module) results.push_back(result_of(*run, device));
  }
  for (std::size_t device = 0; device < run->num_devices; ++device) {
    program.is_module ? run_module(*run, device) : run_named(*run, device, results[device]);
    if (run->done == nullptr) continue;
    run->done[device] = new Event;
    Work& work = run->done[device]->work;
    work.of_execution = true;
    work.device = run->executable->devices[device]->description.id;
    work.ready += control().late;
  }
  return nullptr;
}

}  // namespace

void add_program_calls(Api& api) {
  add<compile_for_client>(api);
  add<compile_for_topology>(api);
  add<deserialize>(api);
  add<serialize>(api);
  add<destroy_executable>(api);
  add<destroy_loaded>(api);
  add<inner_executable>(api);
  add<loaded_devices>(api);
  add<executable_name>(api);
  add<fingerprint>(api);
  add<num_replicas>(api);
  add<num_partitions>(api);
  add<num_outputs>(api);
  add<output_types>(api);
  add<output_dims>(api);
  add<output_memories>(api);
  add<compiled_memory>(api);
  add<cost>(api);
  add<optimized>(api);
  add<execute>(api);
}

}  // namespace tessera::pjrt::c
