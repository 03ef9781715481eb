#include "tessera/files/text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "files/test_data.h"
#include "tessera/base/utf8.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TEST(Utf8, FindsTheFirstBadByte) {
  constexpr std::size_t kNone = std::string_view::npos;
  struct Case {
    const char* name;
    std::string bytes;
    std::size_t bad;
  };
  const Case cases[] = {
      {"empty", "", kNone},
      {"one to four bytes", "a\u00e9\u20ac\U0001F600", kNone},
      {"the largest", "\xF4\x8F\xBF\xBF", kNone},
      {"above the largest", "\xF4\x90\x80\x80", 0},
      {"a byte that never occurs", "ab\xFF", 2},
      {"a continuation alone", "a\x80", 1},
      {"cut short", "a\xE2\x82", 1},
      {"interrupted", "\xE2\x82z", 0},
      {"overlong slash", "\xC0\xAF", 0},
      {"overlong of three", "\xE0\x80\xAF", 0},
      {"a surrogate", "\xED\xA0\x80", 0},
      {"five bytes", "\xF8\x88\x80\x80\x80", 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(find_invalid_utf8(c.bytes), c.bad);
  }
}

TEST(Utf8, EveryCodePointComesBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;  // surrogates are none
    std::string bytes;
    append_utf8(bytes, c);
    const CodePoint back = code_point_at(bytes, 0);
    ASSERT_EQ(back.value, c);
    ASSERT_EQ(static_cast<std::size_t>(back.size), bytes.size());
  }
}

/// As b"...".decode("utf-8", errors="replace") of Python.
TEST(Utf8, WhatIsNoneIsReplaced) {
  struct Case {
    const char* name;
    std::string bytes, text;
  };
  const Case cases[] = {
      {"good text stays", "a\u00e9\u20ac\U0001F600\uFFFD", "a\u00e9\u20ac\U0001F600\uFFFD"},
      {"bytes that never occur", "a\xFF\xFE", "a\uFFFD\uFFFD"},
      {"continuations alone", "\x80\xBFz", "\uFFFD\uFFFDz"},
      {"a character cut at the end", "a\xE2\x82", "a\uFFFD"},
      {"cut by another", "\xF0\x9F\x98\u00e9", "\uFFFD\u00e9"},
      {"cut twice", "\xE2\xE2\x82z", "\uFFFD\uFFFDz"},
      {"an overlong slash", "\xC0\xAF", "\uFFFD\uFFFD"},
      {"overlong of three", "\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},
      {"overlong of four", "\xF0\x8F\xBF\xBF", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"a surrogate", "\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"above the largest", "\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"the largest, cut", "\xF4\x8F\xBF", "\uFFFD"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(replaced_utf8(c.bytes), c.text);
  }
}

TEST(Text, Normalises) {
  struct Case {
    const char *name, *in, *out;
    std::int64_t marks, crlf;
  };
  const Case cases[] = {
      {"plain", "ab\ncd", "ab\ncd", 0, 0},
      {"byte order mark",
       "\xEF\xBB\xBF"
       "ab",
       "ab", 1, 0},
      {"a mark inside is text", "a\xEF\xBB\xBF", "a\xEF\xBB\xBF", 0, 0},
      {"line ends of another system", "a\r\nb\r\n", "a\nb\n", 0, 2},
      {"a carriage return alone is text", "a\rb\r", "a\rb\r", 0, 0},
  };
  const TestFolder folder;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    write_atomically(folder / "a", c.in);
    const Text got = load_text({folder / "a"});
    EXPECT_EQ(got.bytes, c.out);
    EXPECT_EQ(got.byte_order_marks, c.marks);
    EXPECT_EQ(got.crlf, c.crlf);
  }
}

TEST(Text, FolderIsReadInOrderOfNamesAndOnce) {
  const TestFolder folder;
  write_atomically(folder / "b.txt", "second\n");
  write_atomically(folder / "a.txt", "first");  // gets a newline, as another file follows
  write_atomically(folder / "c.txt", "");
  write_atomically(folder / "d.txt", "last");
  write_atomically(folder / ".hidden", "x");
  fs::create_directory(folder / "inner");
  fs::create_symlink("b.txt", folder / "0-link");
  fs::create_symlink("nowhere", folder / "broken");
  const Text got = load_text({folder.path()});
  EXPECT_EQ(got.bytes, "first\nsecond\nlast");
  ASSERT_EQ(got.files.size(), 4u);
  EXPECT_EQ(got.files[0].path, folder / "a.txt");
  EXPECT_EQ(got.files[0].bytes, 5);
  EXPECT_EQ(line_name(got.files, 0), "line 1 of '" + (folder / "a.txt") + "'");
  EXPECT_EQ(line_name(got.files, 1), "line 1 of '" + (folder / "b.txt") + "'");
  EXPECT_EQ(line_name(got.files, 2), "line 1 of '" + (folder / "d.txt") + "'") << "c.txt has none";
  EXPECT_EQ(line_name(got.files, 9), "line 8 of '" + (folder / "d.txt") + "'");
}

TEST(Text, Errors) {
  const TestFolder folder;
  const std::string in = "'" + folder.path();
  write_atomically(folder / "empty.txt", "");
  write_atomically(folder / "latin.txt", "one\r\ntwo\r\ncaf\xE9\n");
  fs::create_directories(folder / "empty/only-folders");
  fs::create_directory(folder / "nothing");
  write_atomically(folder / "nothing/a", "");
  struct Case {
    const char* name;
    std::string path, message;
  };
  const Case cases[] = {
      {"missing", folder / "latin.tx",
       "no file " + in + "/latin.tx'; near names in " + in + "': latin.txt"},
      {"empty", folder / "empty.txt",
       "text file " + in + "/empty.txt' is empty; give a file with text"},
      {"a folder without files", folder / "empty",
       "folder " + in +
           "/empty' has no text files, only folders; give one of those; hidden files are ignored"},
      {"a folder of empty files", folder / "nothing",
       "the files of folder " + in + "/nothing' are all empty; give a folder with text"},
      {"the offset is that of the file, before line ends are changed", folder / "latin.txt",
       "text file " + in +
           "/latin.txt', line 3, byte offset 13: byte 0xe9 is not UTF-8; convert the file to "
           "UTF-8, or leave it out"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(message_of([&] { load_text({c.path}); }), c.message);
  }
}

TEST(Text, LinesOfAFile) {
  using Lines = std::vector<std::string>;
  struct Case {
    const char* name;
    std::string bytes;
    Lines lines;
  };
  const Case cases[] = {
      {"the last without an end", "a\nb", {"a", "b"}},
      {"the last with one", "a\nb\n", {"a", "b"}},
      {"empty ones", "\n\na\n\n", {"", "", "a", ""}},
      {"another system's",
       "\xEF\xBB\xBF"
       "a\r\n\r\nb\r",
       {"a", "", "b\r"}},
      {"other ends are text", "a\u2028b\fc\u0085\n", {"a\u2028b\fc\u0085"}},
  };
  const TestFolder folder;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    write_atomically(folder / "a", c.bytes);
    EXPECT_EQ(read_lines(folder / "a"), c.lines);
  }
  EXPECT_EQ(message_of([&] { read_lines(folder.path()); }),
            "'" + folder.path() + "' is a folder where a file is expected; give a file in it");
  for (const char* nothing : {"", "\xEF\xBB\xBF"}) {
    write_atomically(folder / "a", nothing);
    EXPECT_EQ(message_of([&] { read_lines(folder / "a"); }),
              "'" + (folder / "a") + "' is empty; give a file with one text per line");
  }
}

TEST(Text, KeepsWhenAsked) {
  const TestFolder folder;
  write_atomically(folder / "a",
                   "\xEF\xBB\xBF"
                   "a\xFF\xFE\r\n");
  EXPECT_EQ(load_text({folder / "a"}, {InvalidUtf8::Keep}).bytes,
            "\xEF\xBB\xBF"
            "a\xFF\xFE\r\n");
}

TEST(TextFiles, APatternMeansWhatFitsIt) {
  const TestFolder folder;
  for (const char* const name : {"part-10.txt", "part-2.txt", "part-[x].txt", "other"})
    write_atomically(folder / name, text(name, "\n"));
  std::filesystem::create_directory(folder / "inner");
  write_atomically(folder / "inner/a.txt", "inner\n");
  const auto names = [&](const std::vector<std::string>& paths) {
    std::vector<std::string> out;
    for (const std::string& path : text_files(paths))
      out.push_back(path.substr(folder.path().size() + 1));
    return join(out);
  };
  EXPECT_EQ(names({folder / "part-*.txt"}), "part-10.txt, part-2.txt, part-[x].txt");
  EXPECT_EQ(names({folder / "part-[12].txt"}), "part-2.txt");
  EXPECT_EQ(names({folder / "part-[x].txt"}), "part-[x].txt") << "a file of that name is there";
  EXPECT_EQ(names({folder / "other", folder / "in*"}), "other, inner/a.txt");
  EXPECT_EQ(load_text({folder / "part-?*.txt"}).files.size(), 3u);
  EXPECT_NE(message_of([&] { text_files({folder / "*.csv"}); }).find("no file fits the pattern"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
