/// Clients, buffers and executables on a plugin of our own.

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "pjrt/test_plugin.h"
#include "tessera/pjrt/executable.h"
#include "tessera/pjrt/topology.h"

namespace tessera::pjrt {
namespace {

/// What processes tell each other, among threads.
class Board {
 public:
  KeyValueStore store() {
    KeyValueStore out;
    out.get = [this](const std::string& key, std::chrono::milliseconds time) -> std::string {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!changed_.wait_for(lock, time, [&] { return told_.contains(key); })) {
        fail(Fault::Peer, "nobody put ", key, " in ", time.count(), " ms");
      }
      return told_[key];
    };
    out.put = [this](const std::string& key, const std::string& value) -> void {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_[key] = value;
      changed_.notify_all();
    };
    out.try_get = [this](const std::string& key) -> std::optional<std::string> {
      const std::lock_guard<std::mutex> lock(mutex_);
      return told_.contains(key) ? std::optional(told_[key]) : std::nullopt;
    };
    return out;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> told_;
};

NamedValues node(std::int64_t id, std::int64_t of, std::int64_t devices) {
  return {{"node_id", id}, {"num_nodes", of}, {"device_count", devices}};
}

Buffer put_floats(const Client& client, const std::vector<float>& values, const Device& device) {
  const Shape shape = {static_cast<std::int64_t>(values.size())};
  return to_device(client, std::as_bytes(std::span(values)), DType::F32, shape, device);
}
std::vector<float> floats_of(const Buffer& buffer) {
  std::vector<float> out(static_cast<std::size_t>(buffer.type().numel()));
  buffer.read(std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(KeyValues, JoinClients) {
  const TestPlugin plugin;
  Board board;
  std::vector<std::thread> threads;
  std::vector<std::string> seen(3);
  for (int id = 0; id < 3; ++id) {
    threads.emplace_back([&, id] {
      const Client client(plugin.load(), node(id, 3, id + 1), board.store());
      std::string& text_of = seen[static_cast<std::size_t>(id)];
      for (const Device& device : client.devices())
        text_of += text(device.process, device.local, ' ');
      text_of += text("of ", client.process(), " has ", client.local_devices().size());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen[0], "0true 1false 1false 2false 2false 2false of 0 has 1");
  EXPECT_EQ(seen[1], "0false 1true 1true 2false 2false 2false of 1 has 2");
  EXPECT_EQ(seen[2], "0false 1false 1false 2true 2true 2true of 2 has 3");
  EXPECT_EQ(plugin.control().alive, 0);
}

TEST(KeyValues, FailuresReachTheCaller) {
  const TestPlugin plugin;
  const auto error = [&](KeyValueStore store) -> std::string {
    return error_of([&] { Client(plugin.load(), node(0, 2, 1), std::move(store)); });
  };
  Board board;
  EXPECT_TRUE(has(error(board.store()), "nobody put node/1 in 2000 ms"));
  KeyValueStore throws = board.store();
  throws.put = [](const std::string&, const std::string&) -> void {
    throw std::runtime_error("the wire was cut");
  };
  EXPECT_TRUE(has(error(throws), "PJRT_Client_Create: INTERNAL: the wire was cut"));
  throws.try_get = [](const std::string&) -> std::optional<std::string> { throw 3; };
  EXPECT_TRUE(has(error(throws), "the key-value store failed"));
  EXPECT_TRUE(has(error({}), "several nodes need a key-value store"));
  EXPECT_EQ(plugin.control().alive, 0);
}

TEST(Client, LivesAsLongAsItsBuffers) {
  const TestPlugin plugin;
  {
    Buffer kept;
    std::optional<Executable> program;
    {
      const Client client(plugin.load());
      kept = put_floats(client, {1, 2}, client.local_devices()[0]);
      program.emplace(compile(client, "identity"));
    }
    const Results results = program->execute({{&kept}});
    EXPECT_EQ(floats_of(results[0][0]), (std::vector<float>{1, 2}));
    EXPECT_GT(plugin.control().alive, 0);
  }
  EXPECT_EQ(plugin.control().alive, 0);
}

TEST(Client, SaysWhatIsNotThere) {
  const TestPlugin plugin;
  const Client client(plugin.load(), {{"device_count", std::int64_t{2}}});
  EXPECT_TRUE(has(error_of([&] { client.device(2); }), "no device with the id 2 among 2"));
  const Device& device = client.device(1);
  EXPECT_TRUE(has(error_of([&] { memory_of(device, "hbm"); }), "it has device, pinned_host"));
  EXPECT_EQ(*find(device.attributes, "core"), Value(std::int64_t{1}));
  const std::string option = error_of([&] { Client(plugin.load(), {{"typo", true}}); });
  EXPECT_TRUE(has(option, "INVALID_ARGUMENT: no option typo")) << option;
}

TEST(Donation, AnArgumentIsGone) {
  const TestPlugin plugin;
  const Client client(plugin.load(), {{"device_count", std::int64_t{2}}});
  CompileOptions options;
  options.num_replicas = 2;
  options.device_assignment = {{1}, {0}};
  const Executable step = compile(client, "step", options);
  EXPECT_EQ(step.devices(), (std::vector<int>{1, 0}));
  std::vector<Buffer> states, inputs;
  for (const int id : step.devices()) {
    states.push_back(put_floats(client, {0, 0}, client.device(id)));
    inputs.push_back(put_floats(client, {1, static_cast<float>(id)}, client.device(id)));
  }
  const auto run = [&] {
    return step.execute({{&states[0], &inputs[0]}, {&states[1], &inputs[1]}});
  };
  for (int steps = 0; steps < 3; ++steps) {
    Results results = run();
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(states[i].deleted());
      std::swap(states[i], results[i][0]);
    }
    const std::string error = error_of([&] { floats_of(results[0][0]); });
    EXPECT_TRUE(has(error, "was donated to an execution")) << error;
  }
  EXPECT_EQ(floats_of(states[1]), (std::vector<float>{6, 3}));
  states[1].remove();
  const std::string error = error_of(run);
  EXPECT_TRUE(has(error, "argument 0 of device 1: the buffer was donated")) << error;
}

TEST(Execute, ChecksItsArguments) {
  const TestPlugin plugin;
  const Client client(plugin.load(), {{"device_count", std::int64_t{2}}});
  CompileOptions options;
  options.num_replicas = 2;
  const Executable sum = compile(client, "sum", options);
  const Buffer a = put_floats(client, {1}, client.device(0));
  Buffer moved = put_floats(client, {2}, client.device(0));
  const Buffer b = std::move(moved);
  const auto error = [&](const Arguments& arguments) -> std::string {
    return error_of([&] { sum.execute(arguments); });
  };
  EXPECT_TRUE(has(error({{&a}}), "arguments for 1 devices, and the program runs on 2"));
  EXPECT_TRUE(has(error({{&a}, {}}), "device 1 has 0 arguments, and the first device 1"));
  EXPECT_TRUE(has(error({{&a}, {nullptr}}), "no argument 0 for device 1"));
  EXPECT_TRUE(has(error({{&a}, {&moved}}), "no buffer"));
  EXPECT_EQ(floats_of(sum.execute({{&a}, {&b}})[1][0]), (std::vector<float>{3}));
}

TEST(Compile, RefusesWhatItDoesNotKnow) {
  const TestPlugin plugin;
  const Client client(plugin.load());
  const std::string text_error = error_of([&] { compile(client, "frobnicate"); });
  EXPECT_TRUE(has(text_error, "INVALID_ARGUMENT: not a program")) << text_error;
  CompileOptions options;
  options.flags = {{"known", true}, {"typo", 1.5f}};
  const std::string flag = error_of([&] { compile(client, "add", options); });
  EXPECT_TRUE(has(flag, "No such compile option: typo")) << flag;
  EXPECT_TRUE(has(error_of([&] { load(client, "damaged"); }), "compile the program again"));
}

TEST(Buffers, CheckTheirSizes) {
  const TestPlugin plugin;
  const Client client(plugin.load());
  const Device& device = client.local_devices()[0];
  std::vector<std::byte> bytes(12);
  const auto put = [&](DType dtype, const Shape& shape) {
    return to_device(client, bytes, dtype, shape, device);
  };
  EXPECT_TRUE(
      has(error_of([&] { put(DType::F32, {4}); }), "f32[4] has 16 bytes, and 12 are given"));
  EXPECT_EQ(put(DType::BF16, {2, 3}).type().dtype, DType::BF16);
  const Buffer buffer = put(DType::I32, {3});
  const std::string error = error_of([&] { buffer.read(std::span(bytes).first(8)); });
  EXPECT_TRUE(has(error, "reading a buffer of i32[3], 12 bytes, into 8")) << error;
  bytes.clear();
  EXPECT_EQ(put(DType::F64, {0, 5}).type().shape, (Shape{0, 5}));
}

}  // namespace
}  // namespace tessera::pjrt
