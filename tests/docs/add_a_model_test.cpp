/// Documents show the code of examples that the tests run: docs/add-a-model.md that of
/// own_family.cpp, docs/coming-from.md that of parallel_transformer.cpp, docs/user-scripts.md those
/// of rapidformer/.

#include <gtest/gtest.h>

#include "docs/shown.h"

namespace tessera::test {

TEST(AddAModel, TheDocumentShowsTheExample) {
  expect_shown("docs/add-a-model.md", "examples/own_family.cpp");
}

TEST(ComingFrom, TheDocumentShowsMindSporesTutorial) {
  expect_shown("docs/coming-from.md", "examples/parallel_transformer.cpp");
}

TEST(UserScripts, TheDocumentShowsTheExamples) {
  for (const char* example : {"pretrainer", "finetuner", "own_loop"})
    expect_shown("docs/user-scripts.md", std::string("examples/rapidformer/") + example + ".cpp");
}

}  // namespace tessera::test
