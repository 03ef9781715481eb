/// Files of questions in the whole command: of its rooms every one is linked.

#include "apps/command_test.h"

namespace tessera {
namespace {

TEST(QuestionFiles, AnAnswerThatIsNotThereIsToldWithItsPlace) {
  const Folder folder;
  const std::string right = R"({"id":"1","question":"q","context":"a bc d",)";
  folder.write("right.jsonl", right + R"("answers":{"text":["d"],"answer_start":[5]}})" + "\n");
  folder.write("wrong.jsonl", right + R"("answers":{"text":["d"],"answer_start":[1]}})" + "\n");
  const std::string train =
      "train --threads 1 --family bert --task question_answering --layers 1 --heads 2 --width 16 "
      "--context 32 --doc-stride 8 --epochs 1 --global-batch-size 4 --output @/run ";
  for (const char* data :
       {"--data @/wrong.jsonl", "--data @/right.jsonl --valid-data @/wrong.jsonl"}) {
    const Ran ran = run(words(folder.expand(train + data)));
    EXPECT_EQ(ran.code, 3);
    EXPECT_NE(ran.err.find("line 1 has the answer 'd' at character 1, where the context has ' '"),
              std::string::npos)
        << ran.err;
  }
}

}  // namespace
}  // namespace tessera
