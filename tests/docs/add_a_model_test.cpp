/// Documents show the code of examples that the tests run: docs/guides/cpp-family.md that of
/// own_family.cpp, docs/from/mindspore.md that of parallel_transformer.cpp, docs/guides/cpp-script.md those
/// of rapidformer/.

#include <gtest/gtest.h>

#include "docs/shown.h"

namespace tessera::test {

TEST(AddAModel, TheDocumentShowsTheExample) {
  expect_shown("docs/guides/cpp-family.md", "examples/own_family.cpp");
}

TEST(ComingFrom, TheDocumentShowsMindSporesTutorial) {
  expect_shown("docs/from/mindspore.md", "examples/parallel_transformer.cpp");
}

TEST(UserScripts, TheDocumentShowsTheExamples) {
  for (const char* example : {"pretrainer", "finetuner", "own_loop"})
    expect_shown("docs/guides/cpp-script.md",
                 std::string("examples/rapidformer/") + example + ".cpp");
  expect_shown("docs/guides/cpp-script.md", "tests/user_code/collate_test.cpp");
}

}  // namespace tessera::test
