#include "tessera/train/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "train/tiny_run.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string hexadecimal(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

TEST(EventRecord, ChecksumsAreThoseOfCrc32c) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u) << "the check value of CRC-32C";
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau) << "RFC 3720, B.4";
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u) << "RFC 3720, B.4";
}

/// As tensorboard's own writer (RecordWriter) makes them.
TEST(EventRecord, BytesAreThoseOfTensorBoard) {
  EXPECT_EQ(hexadecimal(framed(version_event(0))),
            "1800000000000000a37f4b22"
            "0900000000000000001a0d627261696e2e4576656e743a32"
            "eedf28a3");
  EXPECT_EQ(hexadecimal(framed(scalars_event(1, 7, std::array{ScalarValue{"loss", 1.5F}}))),
            "1a00000000000000129bd82d"
            "09000000000000f03f10072a0d0a0b0a046c6f7373150000c03f"
            "de327097");
  EXPECT_EQ(hexadecimal(restart_event(2, 300)), "09000000000000004010ac023a020801");
}

// ---- files of runs

/// What a reader of event files finds in one, without a check of checksums: those have a test.
struct ReadScalar {
  std::int64_t step;
  std::string tag;
  float value;
};

/// Reads what EventFile writes; fields are those of scalars_event, in its order.
class EventReader {
 public:
  explicit EventReader(std::string bytes) : bytes_(std::move(bytes)) {
    for (std::size_t at = 0; at < bytes_.size();) {
      std::uint64_t size = 0;
      std::memcpy(&size, &bytes_[at], sizeof size);
      const std::string data = bytes_.substr(at + 12, size);
      EXPECT_EQ(bytes_.substr(at, size + 16), framed(data)) << "a record is whole";
      read(data);
      at += size + 16;
    }
  }
  std::vector<ReadScalar> scalars;
  std::int64_t restarts_at = 0;

 private:
  static std::uint64_t varint(std::string_view& rest) {
    std::uint64_t out = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(rest[0]);
      rest.remove_prefix(1);
      out |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return out;
    }
  }
  static std::string_view bytes_of(std::string_view& rest) {
    rest.remove_prefix(1);
    const std::uint64_t size = varint(rest);
    const std::string_view out = rest.substr(0, size);
    rest.remove_prefix(size);
    return out;
  }
  void read(std::string_view rest) {
    rest.remove_prefix(9);          // the wall time
    if (rest[0] != '\x10') return;  // the version
    rest.remove_prefix(1);
    const auto step = static_cast<std::int64_t>(varint(rest));
    if (rest[0] == '\x3a') {
      restarts_at = step;
      return;
    }
    std::string_view summary = bytes_of(rest);
    while (!summary.empty()) {
      std::string_view value = bytes_of(summary);
      const std::string tag(bytes_of(value));
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value[1], sizeof bits);
      scalars.push_back({step, tag, std::bit_cast<float>(bits)});
    }
  }
  std::string bytes_;
};

class EventFiles : public TrainerTest {
 protected:
  RunConfig told(const std::string& output) const {
    RunConfig out = config(output);
    out.steps = 6;
    out.eval_every = 3;
    out.tensorboard_dir = folder_ + "/events";
    return out;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_ + "/events"))
      out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    return out;
  }
  EventReader read(const std::string& name) const { return EventReader(file("events/" + name)); }
};

TEST_F(EventFiles, HaveWhatIsInTheMetrics) {
  const RunConfig c = told("run");
  run(c);
  const std::vector<std::string> names = files();
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(names[0].starts_with("events.out.tfevents.1")) << names[0];
  EXPECT_TRUE(names[0].ends_with(text(".", static_cast<std::int64_t>(::getpid())))) << names[0];
  const std::map<std::string, std::string> keys = {{"train/loss", "loss"},
                                                   {"train/learning_rate", "lr"},
                                                   {"train/grad_norm", "grad_norm"},
                                                   {"train/tokens_per_second", "tokens_per_s"},
                                                   {"train/step_seconds", "step_seconds"},
                                                   {"eval/loss", "loss"}};
  std::istringstream lines(file("run/metrics.jsonl"));
  std::map<std::pair<std::int64_t, std::string>, float> metrics;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    const std::string group = json.at("kind") == "train" ? "train/" : "eval/";
    for (const auto& [tag, key] : keys)
      if (tag.starts_with(group)) metrics[{json.at("step"), tag}] = json.at(key);
  }
  std::map<std::pair<std::int64_t, std::string>, float> events;
  for (const ReadScalar& scalar : read(names[0]).scalars)
    if (keys.contains(scalar.tag)) events[{scalar.step, scalar.tag}] = scalar.value;
  ASSERT_EQ(events.size(), 6u * 5 + 2);
  ASSERT_EQ(metrics.size(), events.size());
  for (const auto& [key, value] : metrics) {
    SCOPED_TRACE(text(key.second, " of step ", key.first));
    ASSERT_TRUE(events.contains(key));
    // Nine digits give an f32 back; of an f64, its nearest f32 or a neighbour.
    EXPECT_NEAR(events[key], value, 1.2e-7 * std::abs(value));
  }
}

TEST_F(EventFiles, HaveTheScoresOfEpochs) {
  EventFile events(folder_ + "/events", 0);
  events.on_eval({.epoch = 2, .step = 8, .loss = 0.5, .scores = {{"accuracy", 0.75}}});
  events.on_valid(8, 0.5, {{"accuracy", 0.75}});
  const std::vector<ReadScalar> scalars = read(files().at(0)).scalars;
  ASSERT_EQ(scalars.size(), 3u) << "what both measure is told once";
  EXPECT_EQ(scalars[2].tag, "eval/loss");
  EXPECT_EQ(scalars[0].tag, "eval/epoch");
  EXPECT_EQ(scalars[0].value, 2);
  EXPECT_EQ(scalars[1].tag, "eval/accuracy");
  EXPECT_EQ(scalars[1].value, 0.75F);
  EXPECT_EQ(scalars[1].step, 8);
}

TEST_F(EventFiles, HaveTheScoresOfTheTest) {
  EventFile events(folder_ + "/events", 0);
  events.on_test({.measured = {.step = 8, .loss = 0.5, .scores = {{"f1", 0.75}}}});
  events.on_test({.measured = {.step = 8}, .labelled = false});
  const std::vector<ReadScalar> scalars = read(files().at(0)).scalars;
  ASSERT_EQ(scalars.size(), 2u) << "without labels nothing is measured";
  EXPECT_EQ(scalars[0].tag, "test/loss");
  EXPECT_EQ(scalars[1].tag, "test/f1");
  EXPECT_EQ(scalars[1].value, 0.75F);
}

TEST_F(EventFiles, ARunThatGoesOnHasAFileOfItsOwnThatSaysWhereItBegins) {
  RunConfig c = told("run");
  c.exit_interval = 3;
  run(c);
  const std::vector<std::string> first = files();
  const std::string before = file("events/" + first.at(0));
  run(c);
  std::vector<std::string> second = files();
  ASSERT_EQ(second.size(), 2u);
  std::erase(second, first[0]);
  EXPECT_EQ(file("events/" + first[0]), before);
  const EventReader read_first = read(first[0]), read_second = read(second[0]);
  EXPECT_EQ(read_first.restarts_at, 1);
  EXPECT_EQ(read_second.restarts_at, 4);
  EXPECT_EQ(read_first.scalars.back().step, 3);
  EXPECT_EQ(read_second.scalars.front().step, 4);
}

TEST_F(EventFiles, AFolderThatCannotBeMadeIsRefusedBeforeTheFirstStep) {
  RunConfig c = told("run");
  c.tensorboard_dir = folder_ + "/text.txt/events";
  try {
    run(c);
    ADD_FAILURE() << "was not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.fault(), Fault::Resource);
    EXPECT_NE(std::string(e.what()).find(c.tensorboard_dir), std::string::npos) << e.what();
  }
}

struct EventNotices : TrainCallback {
  void on_notice(const std::string& notice) override { all.push_back(notice); }
  void on_step(const StepRecord& record) override { step = record.step; }
  std::vector<std::string> all;
  std::int64_t step = 0;
};

/// The disk takes nothing of the events while `full` says so.
FileCalls disk_of_events(const std::function<bool()>& full) {
  FileCalls calls;
  const FileCalls real;
  auto events = std::make_shared<std::atomic<int>>(-1);
  calls.open = [=](const char* path, int flags, mode_t mode) {
    const int file = real.open(path, flags, mode);
    if (std::string_view(path).find("tfevents") != std::string_view::npos) *events = file;
    return file;
  };
  calls.write = [=](int file, const void* bytes, std::size_t size) -> ssize_t {
    if (file != *events || !full()) return real.write(file, bytes, size);
    if (size > 30) return real.write(file, bytes, 30);
    errno = ENOSPC;
    return -1;
  };
  return calls;
}

TEST_F(EventFiles, WaitForRoomOnAFullDisk) {
  const RunConfig c = told("run");
  EventNotices listener;
  TrainOptions options{{&listener}};
  options.calls = disk_of_events([&] { return listener.step >= 2 && listener.step < 5; });
  run(c, options);
  const auto late = std::ranges::count_if(listener.all, [](const std::string& notice) {
    return notice.find("tfevents") != std::string::npos &&
           notice.find("No space left on device") != std::string::npos;
  });
  EXPECT_EQ(late, 1) << join(listener.all, "\n");
  EXPECT_EQ(read(files().at(0)).scalars.back().step, 6);
}

TEST_F(EventFiles, ThatLackTheirEndAreToldAtTheEnd) {
  const RunConfig c = told("run");
  EventNotices listener;
  TrainOptions options{{&listener}};
  options.calls = disk_of_events([] { return true; });
  run(c, options);
  ASSERT_FALSE(listener.all.empty());
  EXPECT_TRUE(listener.all.back().starts_with("TensorBoard's file is incomplete: cannot write '"))
      << listener.all.back();
  EXPECT_NE(read_file(c.output + "/summary.json").find("is incomplete"), std::string::npos);
  EXPECT_EQ(list_checkpoints(c.output + "/checkpoints").size(), 1u);
}

TEST_F(EventFiles, AreWrittenByRankZeroAlone) {
  RunConfig c = told("run");
  c.parallel.devices = 2;
  run_on_ranks(c);
  EXPECT_EQ(files().size(), 1u);
}

}  // namespace
}  // namespace tessera
