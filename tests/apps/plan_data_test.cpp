/// `tessera plan` with data: what `train` refuses of it, plan refuses in the same words.

#include <fstream>

#include "apps/command_test.h"
#include "tessera/files/safetensors.h"

namespace tessera {
namespace {

/// 40 pictures of 8 x 8 points, of classes 0 to 9.
void write_ten_classes(const std::string& path) {
  constexpr std::int64_t kPictures = 40;
  const std::vector<float> pixels(kPictures * 3 * 8 * 8, 0.5F);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < kPictures; ++i) labels.push_back(i % 10);
  write_safetensors(
      path,
      {TensorSource::of("pixel_values", {DType::F32, {kPictures, 3, 8, 8}, {}},
                        std::as_bytes(std::span(pixels))),
       TensorSource::of("labels", {DType::I64, {kPictures}, {}}, std::as_bytes(std::span(labels)))},
      {});
}

TEST(PlanData, IsRefusedAsTrainRefusesIt) {
  const Folder folder;
  write_ten_classes(folder / "ten.safetensors");
  std::ofstream text(folder / "text.txt"), rows(folder / "rows.tsv"), other(folder / "other.tsv");
  for (int i = 0; i < 200; ++i) text << "the sea is " << i << "\n";
  rows << "text\tlabel\n", other << "text\tlabel\n";
  for (int i = 0; i < 40; ++i)
    rows << "the sea " << i << "\t" << (i % 3 == 0 ? "no" : "yes") << "\n";
  other << "the sea\tmaybe\n";
  text.close(), rows.close(), other.close();
  std::ofstream(folder / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nsea\n";
  std::ofstream docs(folder / "docs.jsonl");
  for (int i = 0; i < 400; ++i)
    docs << R"({"text": "the sea is wide and deep"})"
         << "\n";
  docs.close();
  const auto made = run(words(folder.expand(
      "preprocess_data --input @/docs.jsonl --output-prefix @/docs --tokenizer-type bytes")));
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string vit = "--family vit --image-size 8 --patch-size 4 --layers 1 ",
                    bert = "--family bert --task sequence_classification --layers 1 ",
                    gpt2 = "--preset gpt2-tiny ";
  const auto trained =
      run(words(folder.expand("train --threads 1 --steps 1 --output @/base --data @/rows.tsv " +
                              bert + "--global-batch-size 4 --epochs 0")));
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const std::string& flags : std::vector<std::string>{
           vit + "--data @/none.safetensors",
           vit + "--data @/ten.safetensors --classes 3",
           vit + "--data @/ten.safetensors --classes 10 --image-size 12",
           vit + "--data @/text.txt --classes 10",
           vit + "--data @/ten.safetensors --classes 10 --test-data @/none.safetensors",
           bert + "--data @/rows.tsv --classes 1",
           bert + "--data @/rows.tsv --test-data @/other.tsv",
           bert + "--data @/rows.tsv --valid-data @/other.tsv",
           bert + "--data @/rows.tsv --label-column tag",
           bert + "--data @/none.tsv",
           "--init-from @/base --data @/text.txt --task masked_lm --family gpt2",
           gpt2 + "--data @/ten.safetensors",
           gpt2 + "--data @/text.txt --test-data @/none.txt",
           gpt2 + "--data @/text.txt --valid-data @/none.txt",
           gpt2 + "--data @/text.txt --held-out 0.999",
           gpt2 + "--data @/text.txt --context 5000",
           gpt2 + "--data @/text.txt --vocabulary bpe",
           "--family transformer --layers 1 --vocab-size 300 --data @/docs_text_document",
           vit + "--classes 10 --data @/docs_text_document",
           gpt2 + "--vocab-size 300 --data @/docs_text_document --test-data @/text.txt",
           gpt2 + "--vocab-size 300 --data @/docs_text_document --test-data @/none",
       }) {
    SCOPED_TRACE(flags);
    const Ran train = run(words(folder.expand("train --output @/new " + flags))),
              plan = run(words(folder.expand("plan " + flags)));
    EXPECT_NE(train.code, 0);
    EXPECT_EQ(plan.code, train.code);
    EXPECT_EQ(plan.err, train.err);
  }
  const auto other_tokenizer = run(
      words(folder.expand("plan --init-from @/base --data @/rows.tsv --tokenizer @/vocab.txt")));
  EXPECT_EQ(other_tokenizer.code, static_cast<int>(Fault::Checkpoint));
  EXPECT_NE(other_tokenizer.err.find("is not the one of checkpoint"), std::string::npos)
      << other_tokenizer.err;
}

/// Labels and the vocabulary of a model that exists are those of its data, in a plan too.
TEST(PlanData, IsReadWithTheModelOfInitFrom) {
  const Folder folder;
  std::ofstream(folder / "a.txt") << std::string(900, 'a') + std::string(900, 'b');
  std::ofstream(folder / "z.txt") << std::string(1800, 'z');
  const auto trained = run(
      words(folder.expand("train --preset gpt2-tiny --threads 1 --steps 1 --global-batch-size 1 "
                          "--vocabulary characters --data @/a.txt --output @/base")));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string flags = "--init-from @/base --data @/z.txt";
  const Ran train = run(words(folder.expand("train --output @/new " + flags))),
            plan = run(words(folder.expand("plan " + flags)));
  EXPECT_NE(train.err.find("in the vocabulary of checkpoint"), std::string::npos) << train.err;
  EXPECT_EQ(plan.code, train.code);
}

TEST(PlanData, ACheckpointToGoOnFromIsNotRead) {
  const auto planned = run(words("plan --preset gpt2-tiny --vocab-size 65 --resume runs/first"));
  EXPECT_EQ(planned.code, static_cast<int>(Fault::Usage));
  EXPECT_NE(planned.err.find("--resume runs/first is a checkpoint"), std::string::npos)
      << planned.err;
  EXPECT_EQ(run(words("plan --preset gpt2-tiny --vocab-size 65 --resume auto")).code, 0);
}

}  // namespace
}  // namespace tessera
