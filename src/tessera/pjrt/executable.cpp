#include "tessera/pjrt/executable.h"

#include "tessera/pjrt/c/call.h"
#include "tessera/pjrt/c/program.h"

namespace tessera::pjrt {

namespace {

Compiled compiled_of(const Client& client, const Handle<c::LoadedExecutable>& loaded) {
  c::Executable* const inner =
      c::get<c::LoadedExecutableGetExecutable>(client.plugin(), loaded.get());
  return Compiled(Handle<c::Executable>(client.plugin(), inner, client.life()));
}

std::vector<int> devices_of(const Client& client, const Handle<c::LoadedExecutable>& loaded) {
  constexpr c::Call kCall = c::Call::LoadedExecutableAddressableDevices;
  const Plugin& plugin = client.plugin();
  const auto devices = c::get<c::LoadedExecutableAddressableDevices>(plugin, loaded.get());
  std::vector<int> out;
  for (c::Device* const device : c::checked(plugin, kCall, devices)) {
    c::DeviceDescription* const about = c::get<c::DeviceGetDescription>(plugin, device);
    out.push_back(c::get<c::DeviceDescriptionId>(plugin, about));
  }
  return out;
}

/// The plugin's buffers of all devices, behind each other. Errors: see Executable::execute.
std::vector<c::Buffer*> objects_of(const Arguments& arguments, std::size_t num_devices) {
  check(arguments.size() == num_devices, "arguments for ", arguments.size(),
        " devices, and the program runs on ", num_devices);
  std::vector<c::Buffer*> out;
  for (std::size_t device = 0; device < num_devices; ++device) {
    const std::size_t count = arguments[device].size();
    check(count == arguments[0].size(), "device ", device, " has ", count,
          " arguments, and the first device ", arguments[0].size());
    for (std::size_t i = 0; i < count; ++i) {
      const Buffer* const buffer = arguments[device][i];
      check(buffer != nullptr, "no argument ", i, " for device ", device);
      out.push_back(buffer->deleted() ? buffer->usable(text("argument ", i, " of device ", device))
                                      : buffer->usable("argument"));
    }
  }
  return out;
}

/// What the plugin is to fill: handles from the first moment, so that none is lost.
Execution take(const Client& client, const std::vector<c::Buffer*>& outputs,
               const std::vector<c::Event*>& done, std::size_t num_outputs) {
  Execution out;
  for (std::size_t device = 0; device < done.size(); ++device) {
    out.done.emplace_back(Handle<c::Event>(client.plugin(), done[device], client.life()),
                          "an execution");
    std::vector<Buffer>& results = out.results.emplace_back();
    for (std::size_t i = 0; i < num_outputs; ++i) {
      c::Buffer* const buffer = outputs[device * num_outputs + i];
      results.emplace_back(Handle<c::Buffer>(client.plugin(), buffer, client.life()));
    }
  }
  return out;
}

}  // namespace

void Execution::wait() const {
  for (const Event& event : done) event.wait();
}

Executable::Executable(Client client, Handle<c::LoadedExecutable> loaded)
    : client_(std::move(client)),
      loaded_(std::move(loaded)),
      compiled_(compiled_of(client_, loaded_)),
      devices_(devices_of(client_, loaded_)),
      num_outputs_(static_cast<std::size_t>(compiled_.num_outputs())) {}

Results Executable::execute(const Arguments& arguments) const {
  Execution execution = start(arguments);
  execution.wait();
  return std::move(execution.results);
}

Execution Executable::start(const Arguments& arguments) const {
  const std::size_t num_devices = devices_.size();
  std::vector<c::Buffer*> inputs = objects_of(arguments, num_devices);
  std::vector<c::Buffer*> outputs(num_devices * num_outputs_);
  std::vector<c::Event*> done(num_devices);
  const std::size_t num_arguments = num_devices == 0 ? 0 : arguments[0].size();
  std::vector<c::Buffer* const*> input_lists;
  std::vector<c::Buffer**> output_lists;
  for (std::size_t device = 0; device < num_devices; ++device) {
    input_lists.push_back(inputs.data() + device * num_arguments);
    output_lists.push_back(outputs.data() + device * num_outputs_);
  }
  c::ExecuteOptions options;
  options.head.size = c::ExecuteOptions::kSize;
  auto run = c::arguments<c::LoadedExecutableExecute>();
  run.executable = loaded_.get();
  run.options = &options;
  run.arguments = input_lists.data();
  run.num_devices = num_devices;
  run.num_arguments = num_arguments;
  run.outputs = output_lists.data();
  run.done = done.data();
  c::call(client_.plugin(), run);
  return take(client_, outputs, done, num_outputs_);
}

Executable compile(const Client& client, std::string_view mlir, const CompileOptions& options) {
  const std::string bytes = to_bytes(options);
  const c::Program program = c::mlir_program(mlir);
  auto compile = c::arguments<c::ClientCompile>();
  compile.client = client.object();
  compile.program = &program;
  compile.options = c::view(bytes);
  c::call(client.plugin(), compile);
  return {client, Handle<c::LoadedExecutable>(client.plugin(), compile.executable, client.life())};
}

Executable load(const Client& client, std::string_view bytes) {
  auto load = c::arguments<c::ExecutableDeserializeAndLoad>();
  load.client = client.object();
  load.bytes = c::view(bytes);
  c::call(client.plugin(), load);
  return {client, Handle<c::LoadedExecutable>(client.plugin(), load.executable, client.life())};
}

}  // namespace tessera::pjrt
