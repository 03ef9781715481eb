/// Runs whose data is read while they train: the same on any mesh, and after a resume.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "files/packed.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

struct StreamNotices final : TrainCallback {
  void on_notice(const std::string& text) override { all += text + "\n"; }
  void on_start(const RunStart& start) override { about = join(start.about, "\n"); }
  std::string all, about;
};

class StreamRun : public TrainerTest {
 protected:
  StreamRun() {
    for (const char name : std::string("ab")) {
      std::string lines;
      for (int i = 0; i < 900; ++i)
        lines += text("{\"text\": \"", name, i * 7919 % 1000, std::string(i % 50, name), "\"}\n");
      std::ofstream(folder_ + "/part-" + name + ".jsonl") << lines;
      std::ofstream(folder_ + "/part-" + name + ".jsonl.gz") << packed_by_gzip(lines);
    }
    std::ofstream(folder_ + "/valid.jsonl") << "{\"text\": \"" << std::string(100, 'v') << "\"}\n";
  }

  RunConfig on_stream(const std::string& output) const {
    RunConfig out = config(output);
    out.stream = true;
    out.data = {folder_ + "/part-*.jsonl"};
    out.valid_data = {folder_ + "/valid.jsonl"};
    out.vocabulary = VocabularyKind::Bytes;
    out.model.context = 32;
    out.shuffle_buffer = 10;
    out.sample_order = SampleOrder::ShuffledWindows;
    out.eval_every = 4;
    return out;
  }
};

TEST_F(StreamRun, AnInterruptedRunIsTheUndisturbedOneBitByBit) {
  RunConfig packed = on_stream(""), mixture = on_stream(""), plain = on_stream(""),
            kinds = on_stream("");
  packed.data = {folder_ + "/part-*.gz"};
  mixture.stream = false;  // weights say it
  mixture.data = {"0.7", folder_ + "/part-a.jsonl", "0.3", folder_ + "/part-b.jsonl.gz"};
  kinds.data = {"1", folder_ + "/part-a.jsonl", "2", folder_ + "/text.txt"};
  kinds.valid_data = {folder_ + "/text.txt"};
  kinds.test_data = {folder_ + "/valid.jsonl"};
  std::vector<std::string> digests;
  for (const auto& [name, config] :
       {std::pair("plain", plain), {"packed", packed}, {"mixture", mixture}, {"kinds", kinds}}) {
    SCOPED_TRACE(name);
    RunConfig whole = config;
    whole.output = folder_ + "/" + name;
    StreamNotices seen;
    EXPECT_EQ(run(whole, {.callbacks = {&seen}}).ending, Ending::Finished);
    EXPECT_NE(seen.about.find("data: a stream of 2 files"), std::string::npos) << seen.about;
    RunConfig parts = whole;
    parts.output += "-parts";
    parts.exit_interval = 5;
    EXPECT_EQ(run(parts).ending, Ending::Interval);
    parts.exit_interval = 0;
    StreamNotices resumed;
    EXPECT_EQ(run(parts, {.callbacks = {&resumed}}).ending, Ending::Finished);
    const bool has_packed = join(config.data).find(".gz") != std::string::npos;
    EXPECT_EQ(resumed.all.find("packed files are read again") != std::string::npos, has_packed)
        << resumed.all;
    EXPECT_EQ(digest_of(text(name, "-parts")), digest_of(name));
    EXPECT_EQ(losses(text(name, "-parts")), losses(name));
    EXPECT_NE(losses(name).find("\"kind\":\"valid\""), std::string::npos);
    digests.push_back(digest_of(name));
  }
  EXPECT_NE(digests[0], digests[2]) << "weights are other samples";
}

TEST_F(StreamRun, EveryMeshSeesTheSameSamples) {
  RunConfig one = on_stream("one");
  one.model.dropout = 0;
  run(one);
  const double loss = last("one", "train").at("loss");
  for (const bool data_parallel : {true, false}) {
    RunConfig two = one;
    two.output = folder_ + (data_parallel ? "/dp" : "/tp");
    two.parallel.devices = 2;
    if (!data_parallel) two.parallel.tensor = 2;
    run_on_ranks(two);
    EXPECT_NEAR(last(data_parallel ? "dp" : "tp", "train").at("loss").get<double>(), loss,
                1e-5 * loss);
  }
}

TEST_F(StreamRun, WhatAStreamCannotDoIsRefusedBeforeTraining) {
  const auto refused = [&](auto change) {
    RunConfig config = on_stream("run");
    change(config);
    return refusal(config);
  };
  const std::string a = folder_ + "/part-a.jsonl", b = folder_ + "/part-b.jsonl";
  for (const char* const weight : {"0", "-1", "nan", "inf"}) {
    const std::string said = refused([&](RunConfig& c) { c.data = {weight, a, "1", b}; });
    EXPECT_NE(said.find(text("data has weight ", weight)), std::string::npos) << said;
  }
  EXPECT_NE(refused([&](RunConfig& c) {
              c.data = {folder_ + "/none-*.jsonl"};
            }).find("no file fits the pattern"),
            std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) {
              c.vocabulary = VocabularyKind::Characters;
            }).find("is made of the whole text"),
            std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) { c.epochs = 1; }).find("give steps"), std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) { c.packing = "none"; }).find("needs all documents at once"),
            std::string::npos);
  // Of files whose column nobody named: rows of another kind are no text, nor are dialogues.
  std::ofstream(folder_ + "/rows.csv") << "text,label\na,1\n";
  EXPECT_NE(refused([&](RunConfig& c) {
              c.data = {folder_ + "/rows.csv"};
            }).find("rows.csv' is a table of another kind than JSON lines"),
            std::string::npos);
  std::ofstream(folder_ + "/chat.jsonl") << R"({"messages": [{"role": "user", "content": "a"}]})"
                                         << "\n";
  EXPECT_NE(refused([&](RunConfig& c) {
              c.data = {folder_ + "/chat.jsonl"};
            }).find("chat.jsonl' has dialogues, which a stream does not take"),
            std::string::npos);
  RunConfig offsets = on_stream("offsets");
  offsets.sample_order = SampleOrder::RandomOffsets;
  offsets.exit_interval = 1;
  StreamNotices seen;
  run(offsets, {.callbacks = {&seen}});
  EXPECT_NE(seen.all.find("sample-order random-offsets does nothing with a stream"),
            std::string::npos)
      << seen.all;
  RunConfig large = on_stream("large");
  large.shuffle_buffer = 1'000'000'000'000;
  EXPECT_NE(refusal(large).find("half of the free memory is"), std::string::npos) << refusal(large);
  RunConfig changed = on_stream("changed");
  changed.exit_interval = 2;
  run(changed);
  changed.shuffle_buffer = 11;
  EXPECT_NE(refusal(changed).find("shuffle-buffer is 10 there and 11 here"), std::string::npos)
      << refusal(changed);
  std::ofstream(a, std::ios::app) << "{\"text\": \"more\"}\n";
  changed.shuffle_buffer = 10;
  EXPECT_NE(refusal(changed).find("the data's digest"), std::string::npos) << refusal(changed);
}

/// Places in the files of before say nothing of other files: bytes in the middle of a line, or in a
/// source that there was not.
TEST_F(StreamRun, OtherDataGoesOnWithItsOwnNextSamples) {
  const std::string a = folder_ + "/part-a.jsonl", b = folder_ + "/part-b.jsonl";
  RunConfig first = on_stream("first");
  first.data = {a};
  first.exit_interval = 5;
  first.shuffle_buffer = 3;  // the next block does not begin with the file
  run(first);
  const auto other = [&](const auto& change) {
    std::filesystem::remove_all(folder_ + "/other");
    std::filesystem::copy(
        folder_ + "/first", folder_ + "/other",
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    RunConfig config = first;
    config.output = folder_ + "/other";
    config.exit_interval = 0;
    config.allow_changes = true;
    change(config);
    StreamNotices seen;
    EXPECT_EQ(run(config, {.callbacks = {&seen}}).ending, Ending::Finished);
    EXPECT_NE(seen.all.find("the stream is read from its start"), std::string::npos) << seen.all;
  };
  other([&](RunConfig& c) { c.data = {b}; });
  other([&](RunConfig& c) { c.data = {"1", b, "1", a}; });
  other([&](RunConfig& c) { c.seed += 1; });
  RunConfig more = first;
  more.data = {"1", b, "1", a};
  const std::string said = refusal(more);
  EXPECT_NE(said.find("the data's digest"), std::string::npos) << said;
  EXPECT_EQ(said.find("sources"), std::string::npos) << said;
}

}  // namespace
}  // namespace tessera
