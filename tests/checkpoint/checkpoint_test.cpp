#include "tessera/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "files/test_data.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/files/safetensors.h"
#include "tessera/report/inspect.h"
#include "tessera/tensor/shard_copy.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Tensors that own their bytes.
struct Model {
  std::vector<TensorEntry> entries;
  std::vector<std::vector<std::byte>> bytes;

  void add(std::string name, TensorType type, Role role, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> data(static_cast<std::size_t>(type.bytes()));
    for (std::byte& b : data) b = static_cast<std::byte>(random());
    entries.push_back({std::move(name), std::move(type), role});
    bytes.push_back(std::move(data));
  }
  std::vector<CheckpointTensor> tensors() const {
    std::vector<CheckpointTensor> out;
    for (std::size_t i = 0; i < entries.size(); ++i)
      out.push_back({entries[i].name, entries[i].type, entries[i].role, bytes[i]});
    return out;
  }
};

/// Each dtype width, a scalar, an empty tensor, names that JSON escapes; in no order.
Model small_model(std::uint64_t seed) {
  Model m;
  m.add("wte.weight", {DType::F32, {13, 6}, {}}, Role::Parameter, seed + 1);
  m.add("wte.weight.m", {DType::F32, {13, 6}, {}}, Role::Moment, seed + 2);
  m.add("h.0.bias", {DType::BF16, {7}, {}}, Role::Parameter, seed + 3);
  m.add("update", {DType::I64, {}, {}}, Role::Counter, seed + 4);
  m.add("mask", {DType::Bool, {3, 3}, {}}, Role::Parameter, seed + 5);
  m.add("none", {DType::F32, {0, 4}, {}}, Role::Parameter, seed + 6);
  m.add("a \"quoted\" \\ n\xc3\xa4me", {DType::F64, {2, 1, 2}, {}}, Role::Parameter, seed + 7);
  return m;
}

CheckpointRecord record_at(std::int64_t step) {
  return {
      step,
      step * 12,
      {{"config", "hidden = 8 # \"quoted\"\n"}, {"vocabulary", "{\"a\":[1,2]}"}, {"empty", ""}}};
}

std::string save(const std::string& folder, std::int64_t step, const Model& model,
                 const SaveOptions& options = {}) {
  return save_checkpoint(folder, record_at(step), model.tensors(), options);
}

/// The calls of the system, without waiting for the disk.
FileCalls unflushed() {
  FileCalls calls;
  calls.fsync = [](int) { return 0; };
  return calls;
}

void expect_equal(const std::string& path, std::int64_t step, const Model& model) {
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.record(), record_at(step));
  ASSERT_EQ(checkpoint.tensors().size(), model.entries.size());
  for (std::size_t i = 0; i < model.entries.size(); ++i) {
    const TensorEntry& entry = model.entries[i];
    SCOPED_TRACE(entry.name);
    const TensorEntry* found = checkpoint.find(entry.name);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, entry);
    std::vector<std::byte> read(model.bytes[i].size());
    checkpoint.read(entry.name, read);
    EXPECT_EQ(read, model.bytes[i]);
  }
  EXPECT_EQ(verify(checkpoint), std::vector<std::string>{});
}

std::string bytes_of(const std::string& path) { return read_file(path); }
void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Checkpoint, ComesBackAsItWas) {
  const TestFolder folder;
  const Model model = small_model(0);
  const std::string path = save(folder / "out/checkpoints", 20, model);
  EXPECT_EQ(path, folder / "out/checkpoints/step-00000020");
  for (const std::string& given : {path, path + "/", folder / "out/checkpoints", folder / "out"})
    expect_equal(given, 20, model);
  EXPECT_EQ(latest_checkpoint(folder / "out/checkpoints"), path);
  EXPECT_EQ(latest_checkpoint(folder / "elsewhere"), std::nullopt);
  EXPECT_EQ(verify_checkpoints(folder / "out"), std::vector<std::string>{});
}

TEST(Checkpoint, NoTensors) {
  const TestFolder folder;
  expect_equal(save(folder.path(), 0, Model()), 0, Model());
}

TEST(Checkpoint, SlicesOfAnySizeGiveTheSameTensorsAndDigest) {
  const Model model = small_model(0);
  std::set<std::string> digests;
  std::set<std::size_t> file_counts;
  for (const std::int64_t file_bytes : {1, 8, 24, 64, 100, 312, 1000, 1 << 30}) {
    SCOPED_TRACE(file_bytes);
    const TestFolder folder;
    const std::string path = save(folder.path(), 5, model, {.file_bytes = file_bytes});
    expect_equal(path, 5, model);
    digests.insert(digest(Checkpoint::open(path)));
    file_counts.insert(files_in(path).size());
  }
  EXPECT_EQ(digests.size(), 1u);
  EXPECT_GE(file_counts.size(), 6u) << "the sizes did not slice differently";
}

TEST(Checkpoint, DigestChangesWithEachPartOfATensorAndNothingElse) {
  const auto digest_of = [](const Model& model, std::int64_t step) {
    const TestFolder folder;
    return digest(Checkpoint::open(save(folder.path(), step, model)));
  };
  const std::string before = digest_of(small_model(0), 5);
  Model turned = small_model(0);
  std::reverse(turned.entries.begin(), turned.entries.end());
  std::reverse(turned.bytes.begin(), turned.bytes.end());
  EXPECT_EQ(digest_of(turned, 6), before) << "the order of the caller and the step are no tensors";

  Model name = small_model(0), dtype = small_model(0), shape = small_model(0),
        byte = small_model(0);
  name.entries[0].name += "x";
  dtype.entries[0].type.dtype = DType::I32;
  shape.entries[0].type.shape = {6, 13};
  byte.bytes[0].back() ^= std::byte{1};
  for (const Model& other : {name, dtype, shape, byte}) EXPECT_NE(digest_of(other, 5), before);
}

TEST(Checkpoint, DigestIsWhatTheDocumentSays) {
  const TestFolder folder;
  Model model;
  model.add("b", {DType::F32, {2, 3}, {}}, Role::Parameter, 1);
  model.add("a", {DType::I64, {}, {}}, Role::Counter, 2);
  StreamHash hash;
  const auto add = [&](const std::string& line) {
    const std::uint64_t size = line.size();
    hash.update(&size, 8);
    hash.update(line);
  };
  add("a");
  add("i64[]");
  hash.update(model.bytes[1].data(), 8);
  add("b");
  add("f32[2,3]");
  hash.update(model.bytes[0].data(), 24);
  EXPECT_EQ(digest(Checkpoint::open(save(folder.path(), 1, model))), hash.text());
}

TEST(Checkpoint, DataFilesAreOrdinarySafetensors) {
  const TestFolder folder;
  const Model model = small_model(0);
  const std::string whole = save(folder.path(), 1, model);
  const SafetensorsFile file(whole + "/data-00000.safetensors");
  for (std::size_t i = 0; i < model.entries.size(); ++i) {
    const HostTensor tensor = file.load(model.entries[i].name);
    EXPECT_EQ(tensor.type(), model.entries[i].type);
    EXPECT_TRUE(std::equal(tensor.bytes().begin(), tensor.bytes().end(), model.bytes[i].begin()));
  }
  const std::string sliced = save(folder.path(), 2, model, {.file_bytes = 64});
  std::set<std::string> names;
  for (const std::string& name : files_in(sliced)) {
    if (name == kManifestName) continue;
    const SafetensorsFile part(sliced + "/" + name);
    for (const StoredTensor& t : part.tensors()) names.insert(t.name);
  }
  EXPECT_TRUE(names.contains("wte.weight[2:4,0:6]")) << join(names);
}

/// Version 1 cut a tensor into runs of its elements in one row, wherever a row of it ends.
TEST(Checkpoint, OfVersionOneIsReadAsItWas) {
  const TestFolder folder;
  Model model;
  model.add("w", {DType::F32, {13, 6}, {}}, Role::Parameter, 1);
  const std::string good = save(folder / "now", 1, model);
  Model row = model;
  row.entries[0].type.shape = {78};
  const std::string path = save(folder / "then", 1, row, {.file_bytes = 40});  // 10 elements
  const std::string manifest = path + "/" + kManifestName;
  const Manifest now = parse_manifest(bytes_of(manifest), manifest);
  nlohmann::json then = nlohmann::json::parse(to_text(now));
  then.erase("hash");
  then["version"] = 1;
  then["tensors"][0].erase("cuts");
  then["tensors"][0]["shape"] = {13, 6};
  std::int64_t first = 0;
  for (std::size_t i = 0; i < now.tensors[0].slices.size(); ++i) {
    then["tensors"][0]["slices"][i]["first"] = first;
    then["tensors"][0]["slices"][i]["bytes"] = now.tensors[0].slices[i].bytes;
    first += now.tensors[0].slices[i].bytes;
  }
  put(manifest, seal_manifest(then.dump(1)));
  expect_equal(path, 1, model);
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(digest(checkpoint), digest(Checkpoint::open(good)));
  const Mesh mesh({{"a", 2}, {"b", 3}});
  for (const char* line : {"[a,b]", "[b,a]", "[-,b.a]", "[a,-]"}) {
    const Sharding sharding = parse_sharding(line);
    for (std::int64_t r = 0; r < mesh.ranks(); ++r) {
      const Coordinates at = coordinates_of(mesh, r);
      const auto bytes = static_cast<std::size_t>(local_shape({13, 6}, sharding, mesh).numel() * 4);
      std::vector<std::byte> want(bytes), got(bytes, std::byte{7});
      cut_shard(model.bytes[0], {13, 6}, DType::F32, sharding, mesh, at, want);
      checkpoint.read_shard("w", sharding, mesh, at, got);
      EXPECT_EQ(got, want) << line << " rank " << r;
    }
  }
}

TEST(Checkpoint, SeveralBlocksOfATensor) {
  const TestFolder folder;
  Model model;
  model.add("w", {DType::F32, {5'000'001}, {}}, Role::Parameter, 1);  // 2.4 blocks of 8 MiB
  const std::string path = save(folder.path(), 1, model);
  expect_equal(path, 1, model);
  const std::string data = path + "/data-00000.safetensors";
  std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\0').put('\0').flush();  // the last byte, and one more
  const std::string grown = message_of([&] { Checkpoint::open(path); });
  EXPECT_NE(grown.find(data + "': it has "), grown.npos) << grown;
  fs::resize_file(data, fs::file_size(data) - 1);

  const Checkpoint checkpoint = Checkpoint::open(path);
  std::vector<std::byte> into(model.bytes[0].size());
  const std::string message = message_of([&] { checkpoint.read("w", into); });
  EXPECT_NE(message.find(data + "': damaged: bytes "), message.npos) << message;
  EXPECT_NE(message.find(" of tensor 'w', have the hash "), message.npos) << message;
  ASSERT_EQ(verify(checkpoint).size(), 1u) << "one block of three is damaged";
  EXPECT_EQ(verify(checkpoint)[0], message);
}

/// Changes one byte in place: files are not written anew thousands of times.
void put_byte(const std::string& path, std::size_t at, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at)).put(byte);
}

/// All bytes of all files: each flipped bit and each cut is found, by a message with the file's
/// name, by verifying and by loading.
TEST(Checkpoint, AShardIsReadFromTheBlocksInWhichItLies) {
  const TestFolder folder;
  Model model;  // of three blocks in two slices
  model.add("w", {DType::F32, {6, 700, 1001}, {}}, Role::Parameter, 3);
  const TensorType type = model.entries[0].type;
  SaveOptions options;
  options.file_bytes = 10'000'000;
  const std::string path = save(folder.path(), 1, model, options);
  const Mesh mesh({{"a", 2}, {"b", 3}});
  for (const char* line : {"[a,-,-]", "[-,b,-]", "[-,-,b.a]", "[b,a,-]", "[-,-,-]"}) {
    SCOPED_TRACE(line);
    const Sharding sharding = parse_sharding(line);
    const Checkpoint checkpoint = Checkpoint::open(path);
    for (std::int64_t r = 0; r < mesh.ranks(); ++r) {
      const Coordinates at = coordinates_of(mesh, r);
      const auto bytes =
          static_cast<std::size_t>(local_shape(type.shape, sharding, mesh).numel() * 4);
      std::vector<std::byte> want(bytes), got(bytes, std::byte{7});
      cut_shard(model.bytes[0], type.shape, type.dtype, sharding, mesh, at, want);
      checkpoint.read_shard("w", sharding, mesh, at, got);
      EXPECT_TRUE(got == want) << "rank " << r;
    }
  }
  // Damage where another rank reads is that one's affair.
  std::string last;
  for (const std::string& name : files_in(path)) {
    if (name != kManifestName) last = path + "/" + name;
  }
  std::string bytes = bytes_of(last);
  bytes[bytes.size() - 1] ^= 1;
  put(last, bytes);
  const Checkpoint checkpoint = Checkpoint::open(path);
  const Sharding halves = parse_sharding("[a,-,-]");
  std::vector<std::byte> half(static_cast<std::size_t>(type.bytes() / 2));
  EXPECT_NO_THROW(checkpoint.read_shard("w", halves, mesh, {{"a", 0}}, half));
  EXPECT_THROW(checkpoint.read_shard("w", halves, mesh, {{"a", 1}}, half), Error);
  half.pop_back();
  EXPECT_THROW(checkpoint.read_shard("w", halves, mesh, {{"a", 0}}, half), Error);
}

TEST(Checkpoint, EveryFlippedBitAndEveryCutIsRefused) {
  const TestFolder folder;
  const std::string path = save(folder.path(), 20, small_model(0), {.file_bytes = 320});
  const auto load = [&] {
    const Checkpoint checkpoint = Checkpoint::open(path);
    for (const TensorEntry& entry : checkpoint.tensors()) {
      std::vector<std::byte> into(static_cast<std::size_t>(entry.type.bytes()));
      checkpoint.read(entry.name, into);
    }
  };
  const std::vector<std::string> files = files_in(path);
  ASSERT_GE(files.size(), 4u);
  std::mt19937 random(1);
  int tried = 0;
  for (const std::string& name : files) {
    const std::string file = path + "/" + name, good = bytes_of(file);
    const auto expect_refused = [&] {
      const std::vector<std::string> problems = verify_checkpoints(folder.path());
      ASSERT_FALSE(problems.empty()) << name;
      for (const std::string& problem : problems)
        ASSERT_NE(problem.find(file), problem.npos) << problem;
      const std::string message = message_of(load);
      ASSERT_NE(message.find(file), message.npos) << name << ": " << message;
      ++tried;
    };
    for (std::size_t i = 0; i < good.size(); ++i) {
      SCOPED_TRACE(text(name, " byte ", i));
      put_byte(file, i, static_cast<char>(good[i] ^ (1 << (random() % 8))));
      expect_refused();
      put_byte(file, i, good[i]);
      if (HasFatalFailure()) return;
    }
    for (std::size_t size = good.size(); size-- > 0;) {
      SCOPED_TRACE(text(name, " cut to ", size));
      fs::resize_file(file, size);
      expect_refused();
      if (HasFatalFailure()) return;
    }
    put(file, good + '\n');
    expect_refused();
    put(file, good);
  }
  EXPECT_GE(tried, 6000);
  EXPECT_EQ(message_of(load), "");
}

TEST(Checkpoint, MissingAndStrangeFiles) {
  const TestFolder folder;
  const std::string path = save(folder.path(), 20, small_model(0), {.file_bytes = 320});
  const std::string one = path + "/data-00000.safetensors", two = path + "/data-00001.safetensors";
  put(path + "/notes.txt", "mine");
  EXPECT_EQ(verify(Checkpoint::open(path)),
            std::vector<std::string>{"'" + path +
                                     "/notes.txt' does not belong to the checkpoint; "
                                     "move it elsewhere"});
  fs::remove(path + "/notes.txt");
  fs::rename(one, folder / "one");
  fs::rename(two, folder / "two");
  const std::string both = message_of([&] { Checkpoint::open(path); });
  EXPECT_NE(both.find("no file '" + one), both.npos) << both;
  EXPECT_NE(both.find("\nno file '" + two), both.npos) << both;
  EXPECT_EQ(verify_checkpoints(path).size(), 2u);
  fs::create_directory(one);
  const std::string kind = message_of([&] { Checkpoint::open(path); });
  EXPECT_NE(kind.find(one + "' is a folder"), kind.npos) << kind;
}

TEST(Checkpoint, WhatIsNoCheckpoint) {
  const TestFolder folder;
  fs::create_directories(folder / "run/checkpoints/.tmp-step-00000020-1-0");
  fs::create_directories(folder / "step-00000007");
  put(folder / "file", "x");
  struct Case {
    const char *path, *message;
  };
  const Case cases[] = {
      {"runs", "no checkpoint 'F/runs'; near names in 'F': run"},
      {"run",
       "'F/run' holds no checkpoint (1 unfinished); name a folder step-NNNNNNNN, a folder "
       "of them or the folder of a run that saved one"},
      {"file",
       "'F/file' is a file where a checkpoint is expected; name its folder, "
       "step-NNNNNNNN, or the folder of the run"},
      {"step-00000007",
       "checkpoint 'F/step-00000007' has no manifest.json; restore it from a copy or use another "
       "checkpoint"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    std::string message = message_of([&] { Checkpoint::open(folder / c.path); });
    for (std::size_t at; (at = message.find(folder.path())) != message.npos;)
      message.replace(at, folder.path().size(), "F");
    EXPECT_EQ(message, c.message);
  }
}

TEST(Checkpoint, ReadErrors) {
  const TestFolder folder;
  const Checkpoint checkpoint = Checkpoint::open(save(folder.path(), 1, small_model(0)));
  std::vector<std::byte> into(312);
  EXPECT_EQ(message_of([&] { checkpoint.read("wte.weigth", into); }),
            text("checkpoint '", checkpoint.path(),
                 "' has no tensor 'wte.weigth' among its 7; near names: wte.weight, wte.weight.m"));
  into.resize(311);
  EXPECT_EQ(message_of([&] { checkpoint.read("wte.weight", into); }),
            text("checkpoint '", checkpoint.path(),
                 "': tensor 'wte.weight' is f32[13,6] of 312 bytes but 311 are expected; it "
                 "belongs to another model"));
}

// ---- which one is newest, and what goes

TEST(CheckpointFolder, Names) {
  EXPECT_EQ(to_text(StepName{0, 20}), "step-00000020");
  EXPECT_EQ(to_text(StepName{2, 1'234'567'890}), "step-1234567890.2");
  EXPECT_EQ(to_text(StepName{1, 20, CheckpointNames::Iteration}), "iter_0000020.1");
  for (const char* name : {"step-00000020", "step-00000020.1", "step-123456789", "step-00000000",
                           "iter_0000020", "iter_0000020.1", "iter_12345678"})
    EXPECT_EQ(to_text(parse_step_name(name).value()), name);
  for (const char* name :
       {"", "step-", "step-20", "step-000000020", "step-0000002x", "step-00000020.",
        "step-00000020.0", "step-00000020.01", "step-00000020.1x", "step--0000020",
        "step-00000020-1", "Step-00000020", "step-99999999999999999999", ".tmp-step-00000020",
        "step-00000020.-1", "iter_00000020", "iter-0000020", "step_00000020"})
    EXPECT_EQ(parse_step_name(name), std::nullopt) << name;
}

TEST(CheckpointFolder, KeepsTheLast) {
  const TestFolder folder;
  const Model model = small_model(0);
  std::vector<std::string> notices;
  for (int step = 10; step <= 60; step += 10)
    save(folder.path(), step, model, {.keep_last = 2, .notices = &notices});
  EXPECT_EQ(files_in(folder.path()), (std::vector<std::string>{"step-00000050", "step-00000060"}));
  EXPECT_TRUE(notices.empty()) << join(notices);
}

/// As Megatron-LM calls them; the file beside them says which was saved last.
TEST(CheckpointFolder, NamesOfIterations) {
  const TestFolder folder;
  SaveOptions options{.names = CheckpointNames::Iteration, .keep_last = 2};
  for (const int step : {10, 20, 30}) save(folder.path(), step, small_model(step), options);
  EXPECT_EQ(list_checkpoints(folder.path()),
            (std::vector<std::string>{folder / "iter_0000020", folder / "iter_0000030"}));
  EXPECT_EQ(bytes_of(folder / kTrackerFile), "30\n");
  EXPECT_EQ(save(folder.path(), 25, small_model(9), options), folder / "iter_0000025.1");
  EXPECT_EQ(bytes_of(folder / kTrackerFile), "25\n");
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "iter_0000025.1");
  expect_equal(folder.path(), 25, small_model(9));
}

/// After a resume from an older checkpoint the run goes back; what it saves then is newer than all
/// that was there, and nothing that was committed is written over.
TEST(CheckpointFolder, GoingBackBeginsABranch) {
  const TestFolder folder;
  for (const int step : {10, 20, 30}) save(folder.path(), step, small_model(0), {.keep_last = 4});
  const std::string before = bytes_of(folder / "step-00000020/manifest.json");
  EXPECT_EQ(save(folder.path(), 20, small_model(9), {.keep_last = 4}), folder / "step-00000020.1");
  EXPECT_EQ(bytes_of(folder / "step-00000020/manifest.json"), before);
  expect_equal(folder.path(), 20, small_model(9));
  save(folder.path(), 25, small_model(8), {.keep_last = 4});
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "step-00000025.1");
  EXPECT_EQ(list_checkpoints(folder.path()),
            (std::vector<std::string>{folder / "step-00000020", folder / "step-00000030",
                                      folder / "step-00000020.1", folder / "step-00000025.1"}));
}

TEST(CheckpointFolder, LatestPassesOverDamagedAndUnfinished) {
  const TestFolder folder;
  for (const int step : {10, 20, 30}) save(folder.path(), step, small_model(step));
  fs::copy(folder / "step-00000010", folder / ".tmp-step-00000040-1-0");
  fs::remove(folder / "step-00000030/manifest.json");
  const std::string data = folder / "step-00000020/data-00000.safetensors";
  std::string bytes = bytes_of(data);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(data, bytes);

  std::vector<std::string> notices;
  EXPECT_EQ(latest_checkpoint(folder.path(), &notices), folder / "step-00000010");
  ASSERT_EQ(notices.size(), 3u) << join(notices, "\n");
  EXPECT_EQ(notices[0], "'" + folder / ".tmp-step-00000040-1-0" +
                            "' is an unfinished checkpoint: skipped, and removed by the next save");
  EXPECT_NE(notices[1].find("step-00000030' has no manifest.json"), notices[1].npos) << notices[1];
  EXPECT_NE(notices[2].find(data), notices[2].npos) << notices[2];
  // Named by the user, the newest is refused, not replaced by an older one.
  EXPECT_NE(message_of([&] { Checkpoint::open(folder.path()); }), "");

  // The next save is newer than the damaged ones; the leftover goes.
  // One that opens, and has another byte, is known by its name.
  EXPECT_EQ(save(folder.path(), 20, small_model(1), {.keep_last = 2, .damaged = {"step-00000020"}}),
            folder / "step-00000020.1");
  EXPECT_EQ(files_in(folder.path()),
            (std::vector<std::string>{"step-00000010", "step-00000020", "step-00000020.1",
                                      "step-00000030"}));
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "step-00000020.1");

  fs::remove(folder / "step-00000020.1/manifest.json");
  const std::string none = message_of([&] { latest_checkpoint(folder.path()); });
  EXPECT_EQ(none, "");
  // Damaged ones that are older than those that count go.
  for (const int step : {40, 50}) save(folder.path(), step, small_model(1), {.keep_last = 2});
  EXPECT_EQ(files_in(folder.path()),
            (std::vector<std::string>{"step-00000040.1", "step-00000050.1"}));
  for (const char* name : {"step-00000040.1", "step-00000050.1"})
    fs::remove(folder / name + "/manifest.json");
  const std::string all = message_of([&] { latest_checkpoint(folder.path()); });
  EXPECT_NE(all.find("none of the 2 checkpoints in"), all.npos) << all;
}

/// A writer that hashed one thing and wrote another: reading would refuse what the file's hash
/// calls intact.
TEST(CheckpointFolder, LatestPassesOverWrongHashesOfBlocks) {
  const TestFolder folder;
  save(folder.path(), 10, small_model(0));
  const std::string newest = save(folder.path(), 20, small_model(1));
  const std::string path = newest + "/" + kManifestName;
  Manifest manifest = parse_manifest(bytes_of(path), path);
  std::string& hash = manifest.tensors.back().slices.front().blocks.front();
  hash.front() = hash.front() == '0' ? '1' : '0';
  put(path, to_text(manifest));
  const std::vector<std::string> problems = verify_checkpoints(newest);
  ASSERT_EQ(problems.size(), 1u) << join(problems, "\n");
  EXPECT_NE(problems[0].find("'wte.weight.m'"), problems[0].npos) << problems[0];
  std::vector<std::string> notices;
  EXPECT_EQ(latest_checkpoint(folder.path(), &notices), folder / "step-00000010");
  EXPECT_EQ(notices.size(), 1u);
}

TEST(CheckpointFolder, AnOpenOneOutlivesItsPruning) {
  const TestFolder folder;
  const Model model = small_model(3);
  const Checkpoint reader = Checkpoint::open(save(folder.path(), 1, model));
  save(folder.path(), 2, small_model(4), {.keep_last = 1});
  EXPECT_FALSE(fs::exists(folder / "step-00000001"));
  std::vector<std::byte> into(model.bytes[0].size());
  reader.read(model.entries[0].name, into);
  EXPECT_EQ(into, model.bytes[0]);
}

/// Two processes may save and prune in one folder; neither takes the other's work for a leftover.
TEST(CheckpointFolder, TwoSaversDoNotDisturbEachOther) {
  const TestFolder folder;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 20; ++i)
        save(folder.path(), i, small_model(writer), {.keep_last = 1000, .calls = unflushed()});
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(scan_checkpoints(folder.path()).committed.size(), 40u);
  EXPECT_EQ(scan_checkpoints(folder.path()).leftover.size(), 0u);
  EXPECT_EQ(verify_checkpoints(folder.path()), std::vector<std::string>{});
}

/// A run beside it removes its older ones: that is no damage.
TEST(CheckpointFolder, WhatGoesWhileItIsVerifiedIsNotDamaged) {
  const TestFolder folder;
  for (int step = 1; step <= 3; ++step)
    save(folder.path(), step, small_model(0), {.keep_last = 3, .calls = unflushed()});
  const std::string first = folder / "step-00000001", second = folder / "step-00000002";
  std::vector<std::string> gone;
  const CheckpointJudge prunes = [&](const Checkpoint& checkpoint) {
    if (checkpoint.path() != first) return;
    fs::remove_all(second);  // before it is read
    fs::remove_all(first);   // while it is
    fail(Fault::Checkpoint, "a file is missing");
  };
  EXPECT_EQ(verify_checkpoints(folder.path(), prunes, &gone), std::vector<std::string>{});
  EXPECT_EQ(gone, (std::vector<std::string>{first, second}));
  const std::string all = message_of([&] {
    verify_checkpoints(folder.path(), [&](const Checkpoint& checkpoint) {
      fs::remove_all(checkpoint.path());
      fail(Fault::Checkpoint, "a file is missing");
    });
  });
  EXPECT_NE(all.find("were removed while they were read"), std::string::npos) << all;
}

// ---- failures of the system

/// The calls of the system, of which one fails; a count and a log of all.
struct Fault1 {
  int fail_at = -1, error = 0, count = 0;
  std::vector<std::string> log;
  FileCalls calls;

  bool fails(const std::string& line) {
    log.push_back(line);
    const bool now = count++ == fail_at;
    if (now) errno = error;
    return now;
  }
  static std::string named(const std::string& path) { return fs::path(path).filename().string(); }

  Fault1() {
    const FileCalls real = unflushed();
    calls.open = [=, this](const char* path, int flags, mode_t mode) {
      if (fails("open " + named(path))) return -1;
      const int file = real.open(path, flags, mode);
      paths[file] = named(path);
      return file;
    };
    calls.write = [=, this](int file, const void* bytes, std::size_t size) -> ssize_t {
      if (fails("write " + paths[file])) return -1;
      return real.write(file, bytes, size > 1000 ? size / 2 : size);  // a short write is no failure
    };
    calls.fsync = [=, this](int file) {
      return fails("fsync " + paths[file]) ? -1 : real.fsync(file);
    };
    calls.close = [=, this](int file) {  // closes even where it reports a failure
      const bool bad = fails("close " + paths[file]);
      const int error_now = errno, closed = real.close(file);
      errno = error_now;
      return bad ? -1 : closed;
    };
    calls.mkdir = [=, this](const char* path, mode_t mode) {
      return fails("mkdir " + named(path)) ? -1 : real.mkdir(path, mode);
    };
    calls.rename = [=, this](const char* from, const char* to) {
      return fails("rename " + named(to)) ? -1 : real.rename(from, to);
    };
    calls.remove = [=, this](const char* path) {
      return fails("remove " + named(path)) ? -1 : real.remove(path);
    };
  }
  std::map<int, std::string> paths;
};

/// How many calls it takes to save this model over an old one that is pruned.
int calls_of_a_save(const Model& model, std::int64_t file_bytes) {
  const TestFolder folder;
  Fault1 good;
  save(folder.path(), 10, model);
  save(folder.path(), 20, model, {.keep_last = 1, .file_bytes = file_bytes, .calls = good.calls});
  return good.count;
}

/// Every call of a save fails once: the save before it stays whole, the error says what, and the
/// next save goes well and clears the leftovers.
TEST(CheckpointFaults, EachCallFailsOnce) {
  const Model old = small_model(1), model = small_model(2);
  const int total = calls_of_a_save(model, 320);
  int refused = 0, noticed = 0;
  for (int at = 0; at < total; ++at) {
    for (const int error : {ENOSPC, EIO, EINTR}) {
      const TestFolder folder;
      const std::string before = save(folder.path(), 10, old, {.calls = unflushed()});
      Fault1 fault;
      fault.fail_at = at;
      fault.error = error;
      std::vector<std::string> notices;
      std::string message, saved;
      try {
        saved =
            save(folder.path(), 20, model,
                 {.keep_last = 1, .file_bytes = 320, .calls = fault.calls, .notices = &notices});
      } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::Resource);
        message = e.what();
      }
      ASSERT_GT(fault.log.size(), static_cast<std::size_t>(at));
      const std::string call = fault.log[static_cast<std::size_t>(at)];
      SCOPED_TRACE(text("call ", at, " ", call, ", error ", error));
      const bool retried = error == EINTR && call.starts_with("write");
      const bool committed = fs::exists(folder / "step-00000020");
      if (!message.empty()) {
        ++refused;
        EXPECT_NE(message.find(folder.path()), message.npos) << message;
        EXPECT_NE(message.find(std::generic_category().message(error)), message.npos) << message;
        expect_equal(before, 10, old);
        EXPECT_EQ(latest_checkpoint(folder.path()), committed ? folder / "step-00000020" : before);
        EXPECT_EQ(files_in(folder.path()).size(), committed ? 2u : 1u) << "left something behind";
      } else {
        expect_equal(saved, 20, model);
        EXPECT_EQ(latest_checkpoint(folder.path()), saved);
        noticed += notices.empty() ? 0 : 1;
        EXPECT_EQ(notices.size(), retried ? 0u : 1u) << "a failure that nobody hears of: " << call;
      }
      save(folder.path(), 30, old, {.keep_last = 1, .calls = unflushed()});
      EXPECT_EQ(files_in(folder.path()), std::vector<std::string>{"step-00000030"});
    }
  }
  EXPECT_GE(refused, 60);
  EXPECT_GE(noticed, 9) << "pruning did not fail";
}

/// A disk that stays full: clearing up fails too.
TEST(CheckpointFaults, EachCallAndAllAfterItFail) {
  const Model old = small_model(1), model = small_model(2);
  const int total = calls_of_a_save(model, 1 << 30);
  for (int at = 0; at < total; ++at) {
    const TestFolder folder;
    const std::string before = save(folder.path(), 10, old, {.calls = unflushed()});
    Fault1 fault;
    const FileCalls one = fault.calls;
    bool failing = false;
    const auto broken = [&] { return failing = failing || fault.count >= at; };
    const auto no_space = [] {
      errno = ENOSPC;
      return -1;
    };
    fault.calls.open = [&](const char* path, int flags, mode_t mode) {
      return broken() ? no_space() : one.open(path, flags, mode);
    };
    fault.calls.write = [&](int file, const void* bytes, std::size_t size) -> ssize_t {
      return broken() ? no_space() : one.write(file, bytes, size);
    };
    fault.calls.fsync = [&](int file) { return broken() ? no_space() : one.fsync(file); };
    fault.calls.mkdir = [&](const char* path, mode_t mode) {
      return broken() ? no_space() : one.mkdir(path, mode);
    };
    fault.calls.rename = [&](const char* from, const char* to) {
      return broken() ? no_space() : one.rename(from, to);
    };
    fault.calls.remove = [&](const char* path) { return broken() ? no_space() : one.remove(path); };
    const std::string message =
        message_of([&] { save(folder.path(), 20, model, {.keep_last = 1, .calls = fault.calls}); });
    SCOPED_TRACE(at);
    if (!message.empty()) expect_equal(before, 10, old);
    const auto latest = latest_checkpoint(folder.path());
    ASSERT_TRUE(latest.has_value());
    if (*latest != before) expect_equal(*latest, 20, model);
    save(folder.path(), 30, old, {.keep_last = 1, .calls = unflushed()});
    EXPECT_EQ(files_in(folder.path()), std::vector<std::string>{"step-00000030"});
  }
}

/// What a power cut may undo is only what was not flushed: all is flushed before the name that
/// makes it count, and that name before anything older goes.
TEST(CheckpointFaults, EverythingIsFlushedBeforeItCounts) {
  const TestFolder folder;
  save(folder.path(), 10, small_model(1));
  Fault1 fault;
  save(folder.path(), 20, small_model(2),
       {.keep_last = 1, .file_bytes = 320, .calls = fault.calls});
  const auto& log = fault.log;
  const auto index = [&](const std::string& begin) {
    return std::find_if(log.begin(), log.end(),
                        [&](const auto& l) { return l.starts_with(begin); }) -
           log.begin();
  };
  std::ptrdiff_t data_files = 0;
  for (const std::string& line : log) data_files += line.starts_with("open data-") ? 1 : 0;
  EXPECT_GE(data_files, 3);
  for (std::ptrdiff_t i = 0; i < data_files; ++i)
    EXPECT_LT(index(text("fsync data-0000", i)), index("open manifest.json"));
  EXPECT_LT(index("fsync manifest.json"), index("fsync .tmp-step-00000020"));
  EXPECT_LT(index("fsync .tmp-step-00000020"), index("rename step-00000020"));
  EXPECT_LT(index("rename step-00000020"), index("fsync " + Fault1::named(folder.path())));
  EXPECT_LT(index("fsync " + Fault1::named(folder.path())), index("rename .trash-step-00000010"));
  EXPECT_LT(index("rename .trash-step-00000010"), index("remove "));
}

TEST(CheckpointFaults, NewFoldersAreFlushedToo) {
  const TestFolder folder;
  Fault1 fault;
  save(folder / "run/checkpoints", 20, small_model(2), {.calls = fault.calls});
  const std::string all = join(fault.log, "\n");
  EXPECT_NE(all.find("mkdir run\n"), all.npos) << all;
  EXPECT_NE(all.find("mkdir checkpoints\nopen run\nfsync run\n"), all.npos) << all;
}

TEST(CheckpointFaults, ASaveThatCannotFitIsNotBegun) {
  constexpr std::size_t kHuge = std::size_t{1} << 45;  // 32 TiB of addresses, no memory
  void* const nothing =
      ::mmap(nullptr, kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const TestFolder folder;
  if (nothing == MAP_FAILED || fs::space(folder.path()).available >= kHuge)
    GTEST_SKIP() << "no 32 TiB of addresses, or as much disk";
  const CheckpointTensor huge{"w",
                              {DType::Bool, {std::int64_t{1} << 45}, {}},
                              Role::Parameter,
                              {static_cast<const std::byte*>(nothing), kHuge}};
  const std::string message =
      message_of([&] { save_checkpoint(folder.path(), {}, std::span(&huge, 1)); });
  ::munmap(nothing, kHuge);
  EXPECT_NE(message.find("it takes "), message.npos) << message;
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

/// Processes that do nothing but save are killed at random moments.
TEST(CheckpointFaults, KilledAtAnyMoment) {
  const TestFolder folder;
  const Model model = small_model(0);
  save(folder.path(), 0, model);
  std::mt19937 random(3);
  for (int kill = 0; kill < 40; ++kill) {
    const std::int64_t step = scan_checkpoints(folder.path()).committed.back().step;
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::int64_t next = step + 1;; ++next)
        save(folder.path(), next, model, {.keep_last = 2, .file_bytes = 64});
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 20'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saver ended by itself, status " << status;
    ASSERT_EQ(verify_checkpoints(folder.path()), std::vector<std::string>{});
    const auto latest = latest_checkpoint(folder.path());
    ASSERT_TRUE(latest.has_value());
    ASSERT_GE(Checkpoint::open(*latest).record().step, step) << "a committed save was lost";
  }
  save(folder.path(), 1'000'000, model, {.keep_last = 2});
  EXPECT_EQ(files_in(folder.path()).size(), 2u) << join(files_in(folder.path()));
}

// ---- the manifest

Manifest tiny_manifest() {
  const std::string hash = "0123456789abcdef0123456789abcdef";
  Manifest m;
  m.record = record_at(3);
  m.files = {{"data-00000.safetensors", 124, 100, hash, hash}};
  m.tensors = {
      {{"a", {DType::F32, {2, 2}, {}}, Role::Moment},
       TensorGrid::whole({2, 2}),
       {{0, 100, 16, {hash}}}},
      {{"b", {DType::F64, {}, {}}, Role::Counter}, TensorGrid::whole({}), {{0, 116, 8, {hash}}}}};
  return m;
}

TEST(CheckpointManifest, TextRoundTrip) {
  EXPECT_EQ(parse_manifest(to_text(tiny_manifest()), "m"), tiny_manifest());
}

TEST(CheckpointManifest, FieldsThatDoNotFit) {
  struct Case {
    const char *name, *from, *to, *message;
  };
  const std::string long_name(244, 'a');  // and ".safetensors"
  const Case cases[] = {
      {"another format", "tessera checkpoint", "other", "the manifest: it is of another format"},
      {"a newer version", "\"version\": 2", "\"version\": 3",
       "its format has version 3 but this tessera reads up to 2; use a newer tessera"},
      {"a negative step", "\"step\": 3", "\"step\": -3", "the manifest: its 'step' is not a count"},
      {"a fraction", "\"step\": 3", "\"step\": 3.0", "the manifest: its 'step' is not a count"},
      {"more than 63 bits", "\"step\": 3", "\"step\": 9223372036854775808",
       "'step' is not a count"},
      {"more than 64 bits", "\"step\": 3", "\"step\": 1e999", "it is not JSON"},
      {"no step", "\"step\": 3", "\"stop\": 3", "the manifest: its 'step' is missing"},
      {"a key twice", "\"step\": 3", "\"step\": 3, \"step\": 3",
       "its JSON has the key 'step' twice"},
      {"a key twice, deep", "\"at\": 100", "\"at\": 100, \"at\": 100", "has the key 'at' twice"},
      {"a text that is a number", "\"empty\": \"\"", "\"empty\": 1",
       "the text 'empty' is not a string"},
      {"texts that are a list", "\"texts\": {", "\"texts\": [], \"other\": {", "is not an object"},
      {"a larger block size", "8388608", "8388609",
       "'block_bytes' is 8388609, not from 1 to 8388608"},
      {"smaller blocks", "8388608", "15", "it has 1 hashes of blocks where 2 belong"},
      {"a name that leaves the folder", "data-00000", "../data", "is not a name of a data file"},
      {"a hidden name", "data-00000", ".data", "is not a name of a data file"},
      {"a name that is too long", "data-00000", long_name.c_str(), "is not a name of a data file"},
      {"the manifest's own name", "data-00000.safetensors", "manifest.json",
       "is not a name of a data"},
      {"a header longer than its file", "\"header_bytes\": 100", "\"header_bytes\": 125",
       "file 0: its 'header_bytes' is 125, not from 8 to 124"},
      {"a huge file", "\"bytes\": 124", "\"bytes\": 9223372036854775807",
       "leave a gap at byte 124"},
      {"a file that is too short", "\"bytes\": 124", "\"bytes\": 123",
       "'at' is 116, not from 0 to 115"},
      {"a short hash", "\"hash\": \"0", "\"hash\": \"", "a hash is not of 32 hexadecimal digits"},
      {"a hash in capitals", "\"hash\": \"0", "\"hash\": \"A", "a hash is not of 32"},
      {"tensors out of order", "\"name\": \"a\"", "\"name\": \"c\"",
       "'b' is twice or out of order"},
      {"a tensor twice", "\"name\": \"a\"", "\"name\": \"b\"", "'b' is twice or out of order"},
      {"an unknown dtype", "\"f32\"", "\"f8\"", "'f8' is not a dtype that this tessera knows"},
      {"an unknown role", "\"moment\"", "\"role\"", "'role' is not a role"},
      {"a role that is not saved", "\"moment\"", "\"cache\"", "'cache' is not a role of a saved"},
      {"a shape that overflows", "    2,\n    2\n", "4611686018427387904, 2\n",
       "its shape has more than 1152921504606846976 bytes"},
      {"a shape whose strides overflow", "    2,\n    2\n", "0, 4611686018427387904, 2\n",
       "its shape has more than 1152921504606846976 bytes"},
      {"too many dims", "    2,\n    2\n", "2,2,1,1,1,1,1,1,1,1,1,1,1,1,1,1\n", "too many dims"},
      {"a tensor that is too large", "    2,\n    2\n", "2,3\n", "leave a gap at byte 124"},
      {"a tensor that is too small", "    2,\n    2\n", "2,1\n", "leave a gap at byte 108"},
      {"a tensor larger than its file", "    2,\n    2\n", "200,3\n",
       "tensor 'a' slice 0: its 2400 bytes are more than its file has"},
      {"more cells than slices", "\"slices\": [", "\"cuts\": [[1], []], \"slices\": [",
       "tensor 0: its cuts give more cells than slices"},
      {"more cells than slices, of a row", "\"slices\": [", "\"cuts\": [[1]], \"slices\": [",
       "tensor 0: its cuts give more cells than slices"},
      {"fewer cells than slices", "\"slices\": [",
       "\"slices\": [{\"file\": 0, \"at\": 100, \"blocks\": []}, ",
       "tensor 0: it has 2 slices where 1 belong"},
      {"slices of a tensor without elements", "    2,\n    2\n", "0,2\n",
       "tensor 0: it has 1 slices where 0 belong"},
      {"a cut at the begin", "\"slices\": [", "\"cuts\": [[0], []], \"slices\": [",
       "tensor 0: the cuts of dim 0 are not ascending from 1 to 1"},
      {"a cut at the end", "\"slices\": [", "\"cuts\": [[], [2]], \"slices\": [",
       "tensor 0: the cuts of dim 1 are not ascending from 1 to 1"},
      {"a cut twice", "\"slices\": [", "\"cuts\": [[1, 1], []], \"slices\": [",
       "tensor 0: the cuts of dim 0 are not ascending from 1 to 1"},
      {"cuts of another number of dims", "\"slices\": [", "\"cuts\": [[], [], []], \"slices\": [",
       "tensor 0: it has cuts of 3 dims where it has 2"},
      {"cuts that are no lists", "\"slices\": [", "\"cuts\": [1, []], \"slices\": [",
       "tensor 0: the cuts of a dim are not a list"},
      {"no such file", "\"file\": 0", "\"file\": 1", "'file' is 1, not from 0 to 0"},
      {"slices that overlap", "\"at\": 116", "\"at\": 108", "overlap or leave a gap at byte 116"},
      {"a slice in the header", "\"at\": 100", "\"at\": 99", "overlap or leave a gap at byte 100"},
      {"no hash of a block", "\"blocks\": [", "\"blocks\": [], \"x\": [",
       "it has 0 hashes of blocks where 1 belong"},
      {"a tensor that is a string", "\"tensors\": [", "\"tensors\": [\"x\", ",
       "tensor 0: it is not an object"},
      {"nesting", "\"empty\": \"\"", "\"empty\": [[[[[[[[[[[]]]]]]]]]]]", "nested deeper than 8"},
  };
  const std::string good = to_text(tiny_manifest());
  const std::string body = good.substr(0, good.find(",\n \"hash\": \"", good.size() - 60)) + "}";
  EXPECT_EQ(seal_manifest(body), good);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::string bad = body;
    const std::size_t at = bad.find(c.from);
    ASSERT_NE(at, bad.npos) << body;
    bad.replace(at, std::string(c.from).size(), c.to);
    const std::string message = message_of([&] { parse_manifest(seal_manifest(bad), "M"); });
    EXPECT_NE(message.find(c.message), message.npos) << message;
    EXPECT_TRUE(message.starts_with("checkpoint file 'M': ")) << message;
  }
  // Version 1, whose slices are runs of bytes.
  const std::string one = bytes_of(repo_file("tests/fuzz/corpus/manifest/tiny.json"));
  EXPECT_EQ(parse_manifest(seal_manifest(one), "M").tensors, tiny_manifest().tensors);
  const Case old_cases[] = {
      {"slices that are too few", "    2,\n    2\n", "2,3\n",
       "its slices hold 16 bytes but a f32[2,3] has 24"},
      {"slices that are too many", "    2,\n    2\n", "2,1\n", "'bytes' is 16, not from 1 to 8"},
      {"a slice without bytes", "\"slices\": [",
       "\"slices\": [{\"file\":0,\"first\":0,\"bytes\":0,\"at\":100,\"blocks\":[]},",
       "a slice of tensor 'a': its 'bytes' is 0, not from 1 to 16"},
      {"a slice without bytes at the end", "\"at\": 100,",
       "\"at\": 100, \"blocks\": [\"00000000000000000000000000000000\"]}, {\"file\": 0, "
       "\"first\": 16, \"bytes\": 0, \"at\": 116,",
       "a slice of tensor 'a': its 'bytes' is 0, not from 1 to 0"},
      {"half an element", "\"bytes\": 16", "\"bytes\": 15",
       "its 15 bytes are not a whole number of f32"},
      {"a slice that skips", "\"first\": 0", "\"first\": 4", "'first' is 4, not from 0 to 0"},
  };
  for (const Case& c : old_cases) {
    SCOPED_TRACE(c.name);
    std::string bad = one;
    const std::size_t at = bad.find(c.from);
    ASSERT_NE(at, bad.npos);
    bad.replace(at, std::string(c.from).size(), c.to);
    const std::string message = message_of([&] { parse_manifest(seal_manifest(bad), "M"); });
    EXPECT_NE(message.find(c.message), message.npos) << message;
  }
  const std::string unknown = seal_manifest("{\"new\": [{}]," + body.substr(1));
  EXPECT_EQ(parse_manifest(unknown, "M"), tiny_manifest())
      << "unknown fields are for later versions";
}

/// A name is part of many messages and keys; one without a limit would cost its length each time.
TEST(CheckpointManifest, NamesHaveALimit) {
  Manifest manifest = tiny_manifest();
  manifest.tensors[0].entry.name = std::string(4096, 'a');
  EXPECT_EQ(parse_manifest(to_text(manifest), "M"), manifest);
  const std::string name = manifest.tensors[0].entry.name;
  std::string longer = to_text(manifest);
  longer = longer.substr(0, longer.find(",\n \"hash\": \"", longer.size() - 60)) + "}";
  longer.insert(longer.find(name), "a");
  EXPECT_EQ(message_of([&] { parse_manifest(seal_manifest(longer), "M"); }),
            "checkpoint file 'M': tensor 0: its name has 4097 bytes but at most 4096 are allowed; "
            "restore it from a copy or use another checkpoint");
  manifest.tensors[0].entry.name += "a";
  EXPECT_EQ(message_of([&] { to_text(manifest); }),
            "checkpoint: a tensor's name has 4097 bytes but at most 4096 are allowed; shorten it");
}

/// What could not be saved at its end is not to begin: a tokenizer may have any size.
TEST(CheckpointManifest, TextsLeaveRoomForTensors) {
  CheckpointRecord record{0, 0, {{"config", "[]"}, {"vocabulary", std::string(44'000'000, '"')}}};
  require_room_for_tensors(record);
  record.texts["vocabulary"] += std::string(2'000'000, '"');
  EXPECT_EQ(message_of([&] { require_room_for_tensors(record); }),
            "the texts to record in each checkpoint take 92000006 bytes (config 4, vocabulary "
            "92000002) but at most 90000000 are allowed; give a smaller tokenizer or config.json");
}

TEST(CheckpointManifest, NoJsonAtAll) {
  const std::string deep = "{\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const std::string cases[] = {"",
                               "{",
                               "{}\n",
                               "\xef\xbb\xbf{}",
                               "[]",
                               seal_manifest("{\"a\":1 x}"),
                               seal_manifest("[\"a\":1}"),
                               seal_manifest(deep),
                               seal_manifest(std::string("{\"a\":1}\0}", 9)),
                               seal_manifest("{\"\xff\":1}"),
                               seal_manifest("{\"a\":1},{}")};
  for (const std::string& c : cases) {
    SCOPED_TRACE(c.substr(0, 60));
    const std::string message = message_of([&] { parse_manifest(c, "M"); });
    EXPECT_TRUE(message.starts_with("checkpoint file 'M': ")) << message;
  }
}

TEST(CheckpointManifest, TextsAreUtf8) {
  const TestFolder folder;
  const CheckpointRecord record{1, 1, {{"config", "\xff"}}};
  EXPECT_EQ(message_of([&] { save_checkpoint(folder.path(), record, {}); }),
            "checkpoint: a text is not UTF-8");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// ---- another model, and what people see

TEST(TensorMismatch, OneMessageOfThreeLists) {
  const TensorEntry a{"a", {DType::F32, {4}, {}}}, b{"b", {DType::F32, {2, 2}, {}}},
      c{"c", {DType::I64, {}, {}}, Role::Counter};
  TensorEntry b2 = b;
  b2.type.shape = {4};
  b2.role = Role::Moment;
  EXPECT_EQ(tensor_mismatch(std::vector{a, b}, std::vector{b, a}), "");
  EXPECT_EQ(
      tensor_mismatch(std::vector{a, b}, std::vector{b2, c}),
      "its 2 tensors are not the 2 of the model; use the configuration that it was saved with\n"
      "    missing (1): a f32[4]\n"
      "    unexpected (1): c i64[]\n"
      "    of another type or shape (1): b is f32[4] but the model wants f32[2,2]");
  std::vector<TensorEntry> many;
  for (int i = 0; i < 30; ++i) many.push_back({text("t", 10 + i), {DType::F32, {}, {}}});
  const std::string message = tensor_mismatch(many, {});
  EXPECT_NE(message.find("missing (30): t10 f32[], "), message.npos) << message;
  EXPECT_TRUE(message.ends_with("t29 f32[], ...")) << message;
}

/// The newest that can be read is described, and what is above it is named.
TEST(Inspect, ADamagedCheckpointIsNamedAndAnotherDescribed) {
  const TestFolder folder;
  Model model;
  model.add("w", {DType::F32, {4}, {}}, Role::Parameter, 1);
  for (const int step : {1, 2, 3}) save(folder / "checkpoints", step, model);
  fs::remove(folder / "checkpoints/step-00000003/manifest.json");
  const std::string one = inspect(folder.path()).text;
  for (const char* told :
       {"step-00000003  damaged: ", "\nstep-00000003 is damaged; this is the newest that is not",
        "/checkpoints/step-00000002\n  step        2\n"})
    EXPECT_NE(one.find(told), one.npos) << told << one;
  const std::string two = inspect(folder.path(), [](const Checkpoint& checkpoint) {
                            if (checkpoint.record().step == 2)
                              fail(Fault::Checkpoint, "not this one\n  at all");
                          }).text;
  for (const char* told : {"step-00000002  refused: not this one\n",
                           "step-00000002, step-00000003 are damaged or refused;",
                           "/checkpoints/step-00000001\n  step        1\n"})
    EXPECT_NE(two.find(told), two.npos) << told << two;
  const std::string none = message_of(
      [&] { inspect(folder.path(), [](const Checkpoint&) { fail(Fault::Checkpoint, "none"); }); });
  EXPECT_TRUE(
      none.starts_with("all checkpoints are damaged or refused; restore one from a copy\n3 "))
      << none;
}

TEST(Inspect, Checkpoints) {
  const TestFolder folder;
  Model model;
  model.add("w", {DType::F32, {400, 3}, {}}, Role::Parameter, 1);
  model.add("w.m", {DType::F32, {400, 3}, {}}, Role::Moment, 2);
  save(folder / "checkpoints", 1000, model);
  save(folder / "checkpoints", 2000, model);
  fs::remove(folder / "checkpoints/step-00001000/manifest.json");
  EXPECT_EQ(inspect(folder.path()).text,
            "2 checkpoints, oldest first\n"
            "  step-00001000  damaged: checkpoint '" +
                folder.path() +
                "/checkpoints/step-00001000' has no manifest.json; restore it from a copy or use "
                "another checkpoint\n"
                "  step-00002000  step 2,000, 24,000 samples\n"
                "\n"
                "checkpoint " +
                folder.path() +
                "/checkpoints/step-00002000\n"
                "  step        2,000\n"
                "  samples     24,000\n"
                "  parameters  1,200\n"
                "  tensors     2, 9.38 KiB\n"
                "  config      22 B\n"
                "  empty       0 B\n"
                "  vocabulary  {\"a\":[1,2]}\n"
                "\n"
                "  w    f32[400,3]  parameter\n"
                "  w.m  f32[400,3]  moment\n");
}

TEST(Inspect, Files) {
  const TestFolder folder;
  const std::vector<std::byte> bytes(16);
  write_safetensors(folder / "m.safetensors",
                    {TensorSource::of("w", {DType::F32, {2, 2}, {}}, bytes)}, {{"format", "pt"}});
  EXPECT_EQ(inspect(folder / "m.safetensors").text, "safetensors file " + folder / "m.safetensors" +
                                                        "\n"
                                                        "  tensors   1, 16 B\n"
                                                        "  elements  4\n"
                                                        "  format  pt\n"
                                                        "\n"
                                                        "  w  f32[2,2]  16 B\n");
  put(folder / "zip.pt", std::string("PK\3\4\0\0\10\10xxxxxxxxxxx", 19));
  put(folder / "old.bin", std::string("\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8", 12));
  for (const char* name : {"zip.pt", "old.bin"}) {
    const std::string message = message_of([&] { inspect(folder / name); });
    EXPECT_NE(message.find("looks like a PyTorch pickle"), message.npos) << message;
  }
  EXPECT_NE(message_of([&] { inspect(folder / "m.safetensor"); }).find("near names"),
            std::string::npos);
}

TEST(Inspect, Graphs) {
  const TestFolder folder;
  put(folder / "train.1.source.txt",
      "graph global\n"
      "%0 = batch() name=\"x\" dtype=f32 shape=[8,16] : f32[8,16]\n"
      "%1 = state() path=\"w\" dtype=f32 shape=[16,4] : f32[16,4]\n"
      "state \"w\" = %1 parameter normal=0.02\n"
      "%2 = matmul(%0, %1) rule=\"m k, k n -> m n\" : f32[8,4]\n"
      "metric \"out\" = %2\n");
  EXPECT_EQ(inspect(folder / "train.1.source.txt").text, "graph " + folder / "train.1.source.txt" +
                                                             "\n"
                                                             "  form    global\n"
                                                             "  nodes   3\n"
                                                             "  states  1, 256 B\n"
                                                             "  work    1.02e-06 GFLOP\n"
                                                             "  batch   x    f32[8,16]\n"
                                                             "  metric  out  f32[8,4]\n"
                                                             "\n"
                                                             "  batch   1  0 GFLOP\n"
                                                             "  matmul  1  1.02e-06 GFLOP\n"
                                                             "  state   1  0 GFLOP\n");
  put(folder / "notes.txt", "graph global\n%0 = nothing() : f32[]\n");
  const std::string message = message_of([&] { inspect(folder / "notes.txt"); });
  EXPECT_NE(message.find("notes.txt' is neither a safetensors file nor a graph that can be read: "
                         "graph text, line 2, column "),
            message.npos)
      << message;
}

}  // namespace
}  // namespace tessera
