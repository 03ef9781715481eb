/// Which columns of a table are the texts, the choices and the labels of questions.

#include "tessera/sources/choice_columns.h"

#include <gtest/gtest.h>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/config/config.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

TEST(ChoiceColumns, AreFoundByTheNamesOfPublishedFiles) {
  struct Case {
    const char *head, *texts, *choices, *label;
  };
  const Case cases[] = {
      {"video-id,sent1,sent2,ending0,ending1,ending2,ending3,label", "sent1,sent2",
       "ending0,ending1,ending2,ending3", "label"},  // SWAG
      {"premise,choice1,choice2,question,idx,label", "premise,question", "choice1,choice2",
       "label"},                                                              // COPA
      {"goal,sol1,sol2,label", "goal", "sol1,sol2", "label"},                 // PIQA
      {"id,question,choices,answerKey", "question", "choices", "answerKey"},  // ARC
      {"example_id,article,answer,question,options", "article,question", "options",
       "answer"},  // RACE
      {"question,A,B,answer,answerA,answerB,answerC,context", "context,question",
       "answerA,answerB,answerC", "answer"},
  };
  const TestFolder folder;
  for (const auto& [head, texts, choices, label] : cases) {
    write_atomically(folder / "a.csv", text(head, "\n"));
    RunConfig config;
    find_choice_columns(config, folder / "a.csv", {}, false);
    EXPECT_EQ(config.text_column, texts) << head;
    EXPECT_EQ(config.text_pair_column, choices) << head;
    EXPECT_EQ(config.label_column, label) << head;
  }
}

}  // namespace
}  // namespace tessera
