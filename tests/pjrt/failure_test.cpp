/// Each call fails, is missing, or is not implemented: one clear error, and nothing leaks.

#include <gtest/gtest.h>

#include <future>
#include <set>

#include "pjrt/test_plugin.h"
#include "tessera/pjrt/executable.h"
#include "tessera/pjrt/topology.h"

namespace tessera::pjrt {
namespace {

constexpr float kNumbers[] = {1, 2, 3, 4, 5, 6};

Buffer put_numbers(const Client& client, const Device& device, std::string_view kind = {}) {
  return to_device(client, std::as_bytes(std::span(kNumbers)), DType::F32, {2, 3}, device, kind);
}

void use_buffer(const Client& client) {
  const Device& device = client.local_devices()[0];
  Buffer buffer = put_numbers(client, device, "pinned_host");
  EXPECT_EQ(buffer.type(), (TensorType{DType::F32, {2, 3}, {}}));
  EXPECT_EQ(buffer.device_bytes(), 24);
  EXPECT_EQ(buffer.device(), 0);
  EXPECT_EQ(buffer.memory_kind(), "pinned_host");
  const Event ready = buffer.ready();
  std::promise<std::exception_ptr> told;
  ready.tell([&](std::exception_ptr failure) { told.set_value(std::move(failure)); });
  EXPECT_EQ(told.get_future().get(), nullptr);
  ready.wait();
  EXPECT_EQ(buffer.copy_to(client.local_devices()[1]).device(), 1);
  EXPECT_EQ(buffer.copy_to(device, "device").memory_kind(), "device");
  float back[6] = {};
  buffer.read(std::as_writable_bytes(std::span(back)));
  EXPECT_TRUE(std::equal(back, back + 6, kNumbers));
  buffer.remove();
  EXPECT_TRUE(buffer.deleted());
}

void use_compiled(const Compiled& compiled) {
  EXPECT_EQ(compiled.name(), "step");
  EXPECT_EQ(compiled.num_replicas(), 2);
  EXPECT_EQ(compiled.num_partitions(), 1);
  EXPECT_EQ(compiled.output_types(), (TensorTypes{{DType::F32, {2, 3}, {}}}));
  EXPECT_LE(compiled.output_memory_kinds().size(), 1u);
  const CompiledMemory memory = compiled.memory();
  EXPECT_EQ(memory.device_peak(), 20 + 30 - 5 + 400);
  EXPECT_EQ(memory.host_peak(), 3 + 4 - 1 + 6);
  EXPECT_EQ(memory.compiler_peak, 700);
  EXPECT_EQ(compiled.optimized().code, "step");
  EXPECT_LE(compiled.cost().size(), 1u);
  EXPECT_EQ(compiled.fingerprint().value_or("step"), "step");
}

/// Makes every call of the interface that this room makes.
void whole_story(const TestPlugin& from) {
  const Plugin& plugin = from.load();
  const Client client(plugin, {{"device_count", std::int64_t{2}}});
  const std::optional<MemoryStats> stats = client.memory_stats(client.local_devices()[0]);
  EXPECT_TRUE(!stats || stats->limit == 1000);
  use_buffer(client);
  CompileOptions options;
  options.num_replicas = 2;
  const Executable step = compile(client, "step", options);
  use_compiled(step.compiled());
  Buffer states[] = {put_numbers(client, client.local_devices()[0]),
                     put_numbers(client, client.local_devices()[1])};
  const Buffer inputs[] = {put_numbers(client, client.local_devices()[0]),
                           put_numbers(client, client.local_devices()[1])};
  const Results results = step.execute({{&states[0], &inputs[0]}, {&states[1], &inputs[1]}});
  float sum[6] = {};
  results[1][0].read(std::as_writable_bytes(std::span(sum)));
  EXPECT_EQ(sum[5], 18);
  load(client, step.compiled().serialize());
  const Topology topology(plugin, "two", {{"device_count", std::int64_t{2}}});
  EXPECT_EQ(topology.platform_name() + topology.platform_version(), "testtest 1");
  EXPECT_EQ(topology.devices().at(1).kind, "test");
  use_compiled(topology.compile("step", options));
}

/// Nothing can be told of a destructor that fails, nor of an error whose code is not to be had.
bool is_silent(std::string_view name) { return has(std::string(name), "Destroy"); }
bool is_of_errors(std::string_view name) { return has(std::string(name), "PJRT_Error_"); }
const std::set<std::string_view> kOptional = {
    "PJRT_Plugin_Attributes",      "PJRT_DeviceDescription_Attributes",
    "PJRT_Device_MemoryStats",     "PJRT_Executable_OutputMemoryKinds",
    "PJRT_Executable_Fingerprint", "PJRT_Executable_GetCostAnalysis"};

TEST(Failure, NothingFails) {
  const TestPlugin plugin;
  whole_story(plugin);
  EXPECT_EQ(plugin.control().alive, 0);
}

TEST(Failure, OfEachCall) {
  for (const c::CallName& row : c::call_names()) {
    SCOPED_TRACE(row.name);
    const TestPlugin plugin;
    plugin.control().fail_at = row.name;
    const std::string error = error_of([&] { whole_story(plugin); });
    EXPECT_EQ(plugin.control().alive, 0);
    if (is_silent(row.name) || is_of_errors(row.name)) {
      EXPECT_EQ(error, "");
      continue;
    }
    EXPECT_TRUE(has(error, plugin.file() + ": " + std::string(row.name))) << error;
    EXPECT_TRUE(has(error, "INTERNAL: as the test wants it; ")) << error;
  }
}

/// The second of each call too: what the first made must not leak.
TEST(Failure, OfTheSecondOfEachCall) {
  for (const c::CallName& row : c::call_names()) {
    SCOPED_TRACE(row.name);
    const TestPlugin plugin;
    plugin.control().fail_at = row.name;
    plugin.control().passing = 1;
    error_of([&] { whole_story(plugin); });
    EXPECT_EQ(plugin.control().alive, 0);
  }
}

TEST(Failure, CallsThatAreMissing) {
  for (const c::CallName& row : c::call_names()) {
    if (is_of_errors(row.name) || is_silent(row.name)) continue;
    SCOPED_TRACE(row.name);
    const TestPlugin plugin;
    plugin.control().api->calls[static_cast<std::size_t>(row.call)] = nullptr;
    const std::string error = error_of([&] { whole_story(plugin); });
    if (kOptional.contains(row.name)) {
      EXPECT_EQ(error, "");
      continue;
    }
    EXPECT_TRUE(has(error, "its interface 0.106 has no " + std::string(row.name))) << error;
    EXPECT_EQ(plugin.control().alive, 0);
  }
}

TEST(Failure, CallsThatAreNotImplemented) {
  for (const std::string_view name : kOptional) {
    SCOPED_TRACE(name);
    const TestPlugin plugin;
    plugin.control().fail_at = name;
    plugin.control().fail_code = c::Code::Unimplemented;
    EXPECT_EQ(error_of([&] { whole_story(plugin); }), "");
    EXPECT_EQ(plugin.control().alive, 0);
  }
}

/// An older plugin's table ends earlier: what is behind its end is not read.
TEST(Failure, AnOlderTable) {
  const TestPlugin plugin;
  const auto last = static_cast<std::size_t>(c::Call::ExecutableGetCompiledMemoryStats);
  plugin.control().api->head.size = offsetof(c::Api, calls) + last * sizeof(void*);
  const std::string error = error_of([&] { whole_story(plugin); });
  EXPECT_TRUE(has(error, "has no PJRT_Executable_GetCompiledMemoryStats")) << error;
  EXPECT_EQ(plugin.control().alive, 0);
}

struct CodeCase {
  c::Code code;
  const char* call;
  Fault fault;
  const char* words;
};
const CodeCase kCodes[] = {
    {c::Code::FailedPrecondition, "PJRT_Client_Create", Fault::Resource, "is its driver loaded"},
    {c::Code::InvalidArgument, "PJRT_Client_Create", Fault::Usage, "which options this plugin"},
    {c::Code::ResourceExhausted, "PJRT_Client_BufferFromHostBuffer", Fault::Resource,
     "RESOURCE_EXHAUSTED: as the test wants it; out of memory"},
    {c::Code::ResourceExhausted, "PJRT_LoadedExecutable_Execute", Fault::Resource, "recompute"},
    {c::Code::Unavailable, "PJRT_Event_Await", Fault::Peer, "resume from the last checkpoint"},
    {c::Code::Unknown, "PJRT_Client_Compile", Fault::Usage, "cannot read the module"},
    {c::Code::Unimplemented, "PJRT_Client_Compile", Fault::Usage, "cannot do that"},
    {c::Code::InvalidArgument, "PJRT_Executable_DeserializeAndLoad", Fault::Usage,
     "compile the program again"},
    {static_cast<c::Code>(99), "PJRT_Client_Create", Fault::Resource, "UNKNOWN"},
};

TEST(Failure, CodesSayWhatToDo) {
  for (const CodeCase& row : kCodes) {
    SCOPED_TRACE(row.words);
    const TestPlugin plugin;
    plugin.control().fail_at = row.call;
    plugin.control().fail_code = row.code;
    const std::string error = error_of([&] { whole_story(plugin); });
    EXPECT_TRUE(has(error, row.words)) << error;
    EXPECT_EQ(fault_of([&] { whole_story(plugin); }), row.fault);
  }
}

TEST(Failure, MessagesAreMadeHarmless) {
  const TestPlugin plugin;
  plugin.control().fail_at = "PJRT_Client_Create";
  plugin.control().message = std::string("red \x1b[31m and \0 nul", 19) + std::string(10'000, 'x');
  const std::string error = error_of([&] { whole_story(plugin); });
  EXPECT_FALSE(has(error, "\x1b"));
  EXPECT_TRUE(has(error, "nul"));
  EXPECT_LT(error.size(), 5000u);
  plugin.control().message = "";
  EXPECT_TRUE(has(error_of([&] { whole_story(plugin); }), "INTERNAL: no message"));
}

/// As callers without a Control make it fail.
TEST(Failure, ByAnOption) {
  const TestPlugin plugin;
  const std::string error = error_of([&] {
    const Client client(plugin.load(), {{"fail_at", std::string("PJRT_Client_Compile")},
                                        {"fail_code", std::int64_t{8}}});
    compile(client, "add");
  });
  EXPECT_TRUE(has(error, "PJRT_Client_Compile: RESOURCE_EXHAUSTED")) << error;
  EXPECT_EQ(plugin.control().alive, 0);
}

}  // namespace
}  // namespace tessera::pjrt
