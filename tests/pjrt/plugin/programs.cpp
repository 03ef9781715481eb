/// Programs: "identity" (results are copies of the arguments), "add" (the sum of the arguments), "sum"
/// (the sum of an argument over replicas), "step" (argument 0, which is donated, plus the sum of
/// argument 1 over replicas). All of f32.

#include <array>
#include <cstring>
#include <set>

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

Error* read_program(const Program& program, Text options, ProgramText& out) {
  out.text.assign(program.code, program.code_size);
  const std::set<std::string> known = {"identity", "add", "sum", "step"};
  if (std::string_view(program.format.data, program.format.size) != "mlir" ||
      !known.contains(out.text)) {
    return error(Code::InvalidArgument, "not a program: \x1b[1m" + out.text);
  }
  if (!read_compile_options({options.data, options.size}, out)) {
    return error(Code::InvalidArgument, "options are no CompileOptionsProto");
  }
  for (const std::string& flag : out.flags) {
    if (flag != "known") return error(Code::InvalidArgument, "No such compile option: " + flag);
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
  ProgramText program;
  program.text = bytes.substr(kMark.size());
  return load_program(of->client, program, of->executable);
}
Error* serialize(ExecutableSerialize* of) {
  auto* const owner = new SerializedExecutable;
  owner->bytes = std::string(kMark) + of->of->program.text;
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
  of->answer = 1;
  return nullptr;
}
Error* output_types(ExecutableOutputElementTypes* of) {
  static constexpr ElementType kTypes[] = {ElementType::F32};
  of->answer = {kTypes, 1};
  return nullptr;
}
Error* output_dims(ExecutableOutputDimensions* of) {
  static constexpr std::int64_t kDims[] = {2, 3};
  static constexpr std::size_t kNumDims[] = {2};
  of->answer = {1, kDims, kNumDims};
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

Error* execute(LoadedExecutableExecute* run) {
  const std::size_t least = run->executable->program.text == "step" ? 2 : 1;
  if (run->num_arguments < least) return error(Code::InvalidArgument, "too few arguments");
  std::vector<Floats> results;
  for (std::size_t device = 0; device < run->num_devices; ++device) {
    for (std::size_t i = 0; i < run->num_arguments; ++i) {
      if (run->arguments[device][i]->deleted) return error(Code::InvalidArgument, "deleted");
    }
    results.push_back(result_of(*run, device));
  }
  for (std::size_t device = 0; device < run->num_devices; ++device) {
    Buffer& first = *run->arguments[device][0];
    auto* const out = new Buffer;
    out->dims = first.dims;
    out->bytes.resize(results[device].size() * sizeof(float));
    if (!out->bytes.empty()) {
      std::memcpy(out->bytes.data(), results[device].data(), out->bytes.size());
    }
    out->device = first.device;
    out->memory = first.memory;
    run->outputs[device][0] = out;
    if (run->done != nullptr) run->done[device] = new Event;
    if (least == 2) first.deleted = true;
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
