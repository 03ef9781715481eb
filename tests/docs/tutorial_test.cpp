/// docs/guides/cpp-model.md shows the code of examples/tutorial.cpp, which the tests run.

#include <gtest/gtest.h>

#include "docs/shown.h"

namespace tessera::test {

TEST(Tutorial, TheDocumentShowsTheExample) {
  expect_shown("docs/guides/cpp-model.md", "examples/tutorial.cpp");
}

}  // namespace tessera::test
