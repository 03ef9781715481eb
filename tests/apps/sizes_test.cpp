/// Models that no machine can hold are refused at once, before anything is compiled or written.

#include "apps/command_test.h"

namespace tessera {
namespace {

struct SizeCase {
  const char* flags;
  const char* message;  // part of it
};

const SizeCase kSizes[] = {
    {"--width 1000000000", "is above 2^62, more than any machine has"},
    {"--width 9223372036854775807", "width is 9223372036854775807; it must be at most"},
    {"--width 72057594037927936 --heads 1", "width is 72057594037927936; it must be at most"},
    {"--context 9223372036854775807", "context is 9223372036854775807; it must be at most"},
    {"--context 900000000000000", "context is 900000000000000; it must be at most 1000000000"},
    {"--family transformer --source-context 99999999999",
     "source-context is 99999999999; it must be at most 1000000000"},
    {"--layers 2000000000", "layers is 2000000000; it must be at most 100000"},
    {"--layers 100001", "layers is 100001; it must be at most 100000"},
    {"--heads 9223372036854775807", "heads is 9223372036854775807; it must be at most"},
    {"--heads 1000000000", "heads 1000000000 are more than the width 64"},
    {"--heads 10000000001", "heads is 10000000001; it must be at most 10000000000"},
    {"--kv-heads 4611686018427387904", "kv-heads is 4611686018427387904; it must be at most"},
    {"--ffn-width 1000000000000", "ffn-width is 1000000000000; it must be at most 10000000000"},
    {"--ffn-width 9000000000 --layers 10000 --width 4096", "bytes of feed-forward layers"},
    {"--global-batch-size 1000000000 --context 900000000 --micro-batch-size 1",
     "bytes of logits (samples x context x vocabulary x 4): 1000000000 x 900000000 x 64 x 4"},
    {"--family llama --width 9223372036854775800", "width is 9223372036854775800"},
    {"--family mixtral --num-experts 9000000000000000000",
     "num-experts is 9000000000000000000; it must be at most 10000000000"},
    {"--family mixtral --num-experts 9000000000 --width 1024", "bytes of experts"},
    {"--family mixtral --num-experts 4 --moe-shared-expert-intermediate-size 99999999999",
     "moe-shared-expert-intermediate-size is 99999999999; it must be at most 10000000000"},
    {"--family qwen2_moe --num-experts 9000000000 --moe-router-topk 9000000000 "
     "--ffn-width 9000000000 --width 4 --heads 1",
     "bytes of experts"},
};

TEST(Sizes, OfModelsThatCannotExist) {
  const Folder folder;
  folder.write("text.txt", some_text());
  for (const SizeCase& c : kSizes) {
    SCOPED_TRACE(c.flags);
    const Ran plan = run(words(text("plan --preset gpt2-tiny --vocab-size 64 ", c.flags)));
    const Ran train = run(words(folder.expand(text(
        "train --preset gpt2-tiny --data @/text.txt --vocab-size 64 --output @/new ", c.flags))));
    for (const Ran& ran : {plan, train}) {
      EXPECT_EQ(ran.code, 2) << ran.err;
      EXPECT_NE(ran.err.find(c.message), std::string::npos) << ran.err;
      EXPECT_EQ(ran.err.find(" -"), std::string::npos) << ran.err;
    }
    EXPECT_EQ(plan.err.find("problems"), std::string::npos) << "said once: " << plan.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  }
}

}  // namespace
}  // namespace tessera
