#include "tessera/base/toml/parse_toml.h"

#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.h"

namespace tessera {
namespace {

std::string parts(int count, const std::string& part = "a") {
  std::string out = part;
  for (int i = 1; i < count; ++i) out += "." + part;
  return out;
}

// The library frees tables within tables by recursion: 200,000 parts end the process.
TEST(ParseToml, KeysOfManyPartsAreRefused) {
  const struct {
    std::string name, toml, refused;  // at this line; empty: read
  } cases[] = {
      {"a key", "b = 1\n" + parts(200'000) + " = 1\n", "2"},
      {"a table", "[" + parts(200'000) + "]\n", "1"},
      {"quoted, with blanks", "\n\n" + parts(50, "\"a=\" . 'b'\t") + " = 1\n", "3"},
      {"behind a string of several lines",
       "b = {c = \"\"\"\n\\\"\"\"\n\"\"\", " + parts(33) + " = 1}", "3"},
      {"one less", parts(32) + " = 1\n", ""},
      {"in strings", "b = \"" + parts(50) + "\"\nc = '''\n" + parts(50) + "'''\n", ""},
      {"in a comment", "# \"" + parts(50) + "\nb = 1 # " + parts(50), ""},
      {"numbers", "b = [1.5" + parts(50, "5, 1") + "]\n", ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    std::string message;
    try {
      parse_toml(c.toml, "x.toml");
    } catch (const Error& error) {
      message = error.what();
    }
    const std::string expected =
        "x.toml:" + c.refused +
        ": a key has more than 32 parts separated by dots; no key has that many";
    EXPECT_EQ(message, c.refused.empty() ? "" : expected);
  }
}

}  // namespace
}  // namespace tessera
