/// Samples that are read while a step runs are those that are read when it begins.

#include "tessera/user_code/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tessera/base/error.h"

namespace tessera {

namespace {

/// Sample i is the number i. Fails where it is told to; remembers who read.
class CountedSamples final : public Samples {
 public:
  struct Reads {
    std::atomic<std::int64_t> fills = 0, elsewhere = 0, most = 0;
    std::atomic<std::int64_t> fails_at = -1;
    std::thread::id mine = std::this_thread::get_id();
  };
  explicit CountedSamples(Reads& reads) : reads_(reads) {}
  std::int64_t size() const override { return 7; }
  std::string notice() const override { return "noted"; }
  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    ++reads_.fills;
    if (std::this_thread::get_id() != reads_.mine) ++reads_.elsewhere;
    reads_.most = std::max<std::int64_t>(reads_.most, first + count);
    if (first == reads_.fails_at) fail(Fault::Data, "sample ", first, " is damaged");
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids");
    for (std::int64_t i = 0; i < count; ++i)
      ids[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(first + i);
    for (float& weight : batch.fill<float>("weights")) weight = 0.5F;
  }

 private:
  Reads& reads_;
};

std::vector<std::int32_t> filled(const Samples& samples, std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count), -1);
  std::vector<float> weights(static_cast<std::size_t>(2 * count));
  BatchInputs inputs("test");
  inputs.add("ids", {DType::I32, {count}, {}}, std::as_writable_bytes(std::span(ids)).data());
  inputs.add("weights", {DType::F32, {count, 2}, {}},
             std::as_writable_bytes(std::span(weights)).data());
  inputs.begin();
  samples.fill(first, count, inputs);
  inputs.require_filled();
  EXPECT_EQ(weights, std::vector<float>(weights.size(), 0.5F));
  return ids;
}

std::unique_ptr<Samples> ahead_of(CountedSamples::Reads& reads, std::int64_t most) {
  return read_ahead(std::make_unique<CountedSamples>(reads),
                    {{"ids", DType::I32, {}}, {"weights", DType::F32, {2}}}, most);
}

}  // namespace

TEST(ReadAhead, GivesTheSameSamplesInAnyOrder) {
  CountedSamples::Reads reads;
  const auto samples = ahead_of(reads, 100);
  EXPECT_EQ(samples->size(), 7);
  EXPECT_EQ(samples->notice(), "noted");
  // One after the other, again, backwards, of another size, and on.
  for (const auto& [first, count] : {std::pair{0, 2}, {2, 2}, {2, 2}, {0, 2}, {2, 3}, {5, 3}}) {
    std::vector<std::int32_t> expected;
    for (int i = 0; i < count; ++i) expected.push_back(first + i);
    EXPECT_EQ(filled(*samples, first, count), expected);
  }
}

TEST(ReadAhead, ReadsInAThreadOfItsOwnUpToTheEnd) {
  CountedSamples::Reads reads;
  {
    const auto samples = ahead_of(reads, 6);
    for (const int first : {0, 2, 4}) filled(*samples, first, 2);
  }
  EXPECT_EQ(reads.fills, 3);
  EXPECT_EQ(reads.elsewhere, 2) << "all but the first";
  EXPECT_EQ(reads.most, 6) << "nothing behind the last step";
}

TEST(ReadAhead, AnErrorComesWithTheSamplesThatHaveIt) {
  CountedSamples::Reads reads;
  reads.fails_at = 2;
  const auto samples = ahead_of(reads, 100);
  EXPECT_EQ(filled(*samples, 0, 2), (std::vector<std::int32_t>{0, 1}));
  EXPECT_THROW(filled(*samples, 2, 2), Error);
  EXPECT_THROW(filled(*samples, 2, 2), Error);
  EXPECT_EQ(filled(*samples, 0, 2), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(filled(*samples, 4, 2), (std::vector<std::int32_t>{4, 5})) << "nobody hears of it";
}

}  // namespace tessera
