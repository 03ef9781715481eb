/// Whether there is memory for the indices of a run.

#include "tessera/token_files/index_room.h"

#include <gtest/gtest.h>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/token_files/gpt_dataset.h"
#include "tessera/token_files/indexed_dataset_writer.h"

namespace tessera {
namespace {

template <typename Act>
std::string resource_refusal(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Resource);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST(IndexRoom, IsWhatTheArraysTakeWhileTheyAreMade) {
  const GptIndexRequest request{.first = 10, .last = 20, .context = 4};
  const std::int64_t begins = 4 * 2 * 101, order = 4 * 100;
  EXPECT_EQ(gpt_index_bytes(request, {.epochs = 1, .samples = 100}), 4 * 10 + 2 * begins);
  EXPECT_EQ(gpt_index_bytes(request, {.epochs = 1000, .samples = 100}),
            2 * 4 * 10'000 + begins + order);
  // More than 32 bits can number.
  const std::int64_t many = 5'000'000'000;
  EXPECT_EQ(gpt_index_bytes(request, {.epochs = 1, .samples = many}),
            4 * 10 + 4 * 2 * (many + 1) + 2 * 8 * many);
}

TEST(IndexRoom, MoreThanIsFreeIsRefused) {
  const auto refusal = [](std::int64_t bytes, std::int64_t free) {
    return resource_refusal([&] { require_room_for_indices("of 'books'", 900, bytes, free); });
  };
  EXPECT_EQ(refusal(1000, 1000), "none");
  EXPECT_EQ(refusal(1000, 0), "none") << "nobody knows how many are free";
  EXPECT_EQ(refusal(22LL << 30, 8LL << 30),
            text("the run takes 900 samples of 'books', whose indices take ",
                 bytes_text(22LL << 30), " of memory, but only ", bytes_text(8LL << 30),
                 " is free; give fewer steps, or a smaller batch"));
}

TEST(IndexRoom, ARunOfVeryManyStepsIsRefusedAtOnce) {
  const TestFolder folder;
  IndexedDatasetWriter writer(folder / "books", TokenType::U16);
  for (int document = 0; document < 10; ++document) {
    writer.add_sequence(std::vector<std::int32_t>(1000, document));
    writer.end_document();
  }
  writer.finish();
  const auto files = std::make_shared<const IndexedDataset>(folder / "books");
  const GptDatasetChoice choice{.split = "1",
                                .context = 1,
                                .vocabulary = 100,
                                .samples = 20'000'000'000'000,
                                .cache = folder / "kept"};
  std::vector<std::string> notices;
  const std::string said = resource_refusal([&] { GptDataset(files, choice, notices); });
  EXPECT_TRUE(said.starts_with("the run takes 20000000")) << said;
  EXPECT_FALSE(std::filesystem::exists(folder / "kept"));
}

}  // namespace tessera
