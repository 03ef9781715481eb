#include "tessera/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/train/product_rate.h"

namespace tessera {
namespace {

TEST(Metrics, NineDigitsGiveAnF32Back) {
  for (const float value : {1.0f / 3, 4.18140888f, 1e-38f, 3.40282347e38f, 0.0f, -1.5f}) {
    EXPECT_EQ(std::strtof(json_number(value).c_str(), nullptr), value) << json_number(value);
  }
  EXPECT_EQ(json_number(std::nan("")), "null") << "JSON has no word for it";
  EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()), "null");
}

TEST(Metrics, SummaryIsAStableListOfKeys) {
  Summary s;
  s.steps = 3;
  s.train_loss = 1.5;
  s.seconds = 2;
  s.parameters = 10;
  EXPECT_EQ(to_json(s),
            "{\n  \"steps\": 3,\n  \"skipped_steps\": 0,\n  \"train_loss\": 1.5,\n"
            "  \"val_loss\": null,\n  \"seconds\": 2,\n  \"tokens_per_s\": 0,\n"
            "  \"flops_per_step\": 0,\n  \"recomputed_flops_per_step\": 0,\n  "
            "\"product_flops_per_s\": 0,\n  \"mfu\": 0,\n"
            "  \"parameters\": 10,\n  \"planned_peak_bytes\": 0,\n"
            "  \"lower_bound_bytes\": 0,\n  \"planned_host_bytes\": 0,\n"
            "  \"planned_file_bytes\": 0,\n"
            "  \"recompute_granularity\": \"none\",\n  \"recompute_layers\": \"none\",\n"
            "  \"micro_batch_size\": 0,\n  \"offload\": [],\n"
            "  \"save_copy_bytes\": 0,\n  \"huge_page_bytes\": 0,\n"
            "  \"outside_arena_bytes\": {\"program\": 0, \"text\": 0, \"plan\": 0, "
            "\"steps\": 0},\n"
            "  \"sent_bytes_per_step\": {},\n"
            "  \"peak_rss_bytes\": 0,\n"
            "  \"memory\": {\"parameters\": 0, \"gradients\": 0, \"optimizer\": 0, "
            "\"caches\": 0, \"activations\": 0, \"packed_weights\": 0, "
            "\"temporaries\": 0, \"inputs\": 0},\n"
            "  \"devices\": 1,\n  \"mesh\": \"\",\n  \"notices\": []\n}\n");
  s.notices = {"a \"b\""};
  EXPECT_NE(to_json(s).find(R"("notices": ["a \"b\""])"), std::string::npos);
  s.sent = {{"cp.tp", 12}, {"dp", 5}};
  EXPECT_NE(to_json(s).find("\"sent_bytes_per_step\": {\"cp.tp\": 12, \"dp\": 5},"),
            std::string::npos);
  s.mfu = utilization(3e9, 1, 4e9);
  EXPECT_NE(to_json(s).find("\"mfu\": 0.75,"), std::string::npos);
  s.mfu = utilization(3e9, 1, 1e9);
  EXPECT_NE(to_json(s).find("\"mfu\": null,"), std::string::npos) << "the rate is not the device's";
  s.measured_peak_bytes = 7;
  EXPECT_NE(to_json(s).find("\"measured_peak_bytes\": 7,"), std::string::npos);
}

TEST(Metrics, ARunThatGoesOnKeepsItsOwnWholeLines) {
  const std::string train = R"({"kind":"train","step":10,"loss":4.5,"lr":0.1})", deep(100'000, '['),
                    valid = R"({"kind":"valid","step":10,"loss":3.5})",
                    late = R"({"kind":"train","step":11,"loss":1})", other = R"({"step":1})",
                    nested = text(R"({"kind":"train","step":9,"x":)", deep,
                                  std::string(deep.size(), ']'), "}");
  const KeptMetrics kept = keep_metrics(
      text(nested, "\n", train, "\n", valid, "\n", late, "\n", other, "\n", deep, "\n", R"({"kin)"),
      10);
  EXPECT_EQ(kept.lines, text(nested, "\n", train, "\n", valid, "\n"));
  EXPECT_EQ(kept.train_loss, 4.5);
  EXPECT_EQ(kept.valid_loss, 3.5);
  EXPECT_EQ(kept.valid_step, 10);
}

/// A type of entity is any text, and a program's task may call a mean as a line calls its own.
TEST(Metrics, LinesAreJsonWhateverScoresAreCalled) {
  const TestFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsFile(path, 0).eval(
      {.epoch = 1, .step = 4, .loss = 0.5, .scores = {{"f1_\"X\"", 0.25}, {"step", 7}}});
  const std::string lines = read_file(path);
  EXPECT_EQ(lines, R"({"kind":"eval","epoch":1,"step":4,"loss":0.5,"f1_\"X\"":0.25,"task_step":7})"
                   "\n");
  EXPECT_EQ(keep_metrics(lines, 4).lines, lines);
}

/// There is one test, at the end: a run that goes on makes its own.
TEST(Metrics, ATestIsNotKept) {
  const TestFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsFile file(path, 0);
  file.valid(4, 2.5);
  file.test({.measured = {.step = 4, .loss = 0.5, .scores = {{"weights", 7}}}, .best = true});
  const std::string lines = read_file(path),
                    valid = "{\"kind\":\"valid\",\"step\":4,\"loss\":2.5}\n";
  EXPECT_EQ(lines, valid +
                       R"({"kind":"test","step":4,"weights":"best","loss":0.5,"task_weights":7})"
                       "\n");
  EXPECT_EQ(keep_metrics(lines, 4).lines, valid);
}

TEST(Metrics, MemoryOfThisProcessIsSomething) {
  EXPECT_GT(resident_bytes(), 1 << 20);
  EXPECT_GE(peak_rss_bytes(), resident_bytes() - (1 << 20)) << "the system counts in strides";
}

}  // namespace
}  // namespace tessera
