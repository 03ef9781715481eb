#include "tessera/corpora/corpus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "files/test_data.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TEST(Clean, Text) {
  struct Case {
    const char *name, *in, *out;
    std::vector<Cleaning> log;
  };
  const Case cases[] = {
      {"clean already", "a b\n\n\tc\n", "a b\n\n\tc\n", {}},
      {"the last line is ended", "a", "a\n", {}},
      {"a tab behind a blank", "word \t\n", "word\t\n", {{"lines with blanks at the end cut", 1}}},
      {"blanks at ends", "a  \n \t\nb\n", "a\n\nb\n", {{"lines with blanks at the end cut", 2}}},
      {"empty lines",
       "\n\na\n\n\n\nb\n\n\n",
       "a\n\nb\n",
       {{"empty lines beyond one in a row removed", 6}}},
      {"a tab behind a word separates a pair without a target",
       "a b\t\n\t\nc \t\nd\t \t\n",
       "a b\t\n\nc\t\nd\t\n",
       {{"lines with blanks at the end cut", 3}}},
      {"form feeds and carriage returns",
       "a\f\nb\rc\n",
       "a\nbc\n",
       {{"control characters removed", 2}}},
      {"letters beyond ASCII stay", "\u00e9\u20ac\n", "\u00e9\u20ac\n", {}},
      {"nothing", "", "", {}},
      {"only blanks",
       " \n \n",
       "",
       {{"lines with blanks at the end cut", 2}, {"empty lines beyond one in a row removed", 2}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    CleaningLog log;
    EXPECT_EQ(clean_text(c.in, log), c.out);
    EXPECT_EQ(log.list(), c.log);
    CleaningLog again;
    EXPECT_EQ(clean_text(c.out, again), c.out);  // clean text stays as it is
  }
}

TEST(Clean, Verses) {
  CleaningLog log;
  EXPECT_EQ(clean_verses("Ge1:1 In the beginning.\nGe1:2 And  the earth. \nGe2:1 Thus\n1Sm2:1 And "
                         "Hannah   prayed\n",
                         log),
            "In the beginning.\nAnd the earth.\n\nThus\n\nAnd Hannah prayed\n");
  EXPECT_EQ(log.list(), (std::vector<Cleaning>{{"verse references removed", 4},
                                               {"chapters set apart by an empty line", 3},
                                               {"runs of spaces made one", 2}}));
  for (const char* line : {"In the beginning", "Ge1 In", "Ge1:x In", "Ge1:1", "1:1 In"}) {
    EXPECT_EQ(message_of([&] { clean_verses(line, log); }),
              std::string("verse 1 has no reference like Ge1:1: '") + line +
                  "'; the package's program has changed; prepare the text from a file instead");
  }
}

TEST(Corpus, FromFiles) {
  const TestFolder folder;
  write_atomically(folder / "a", "\xEF\xBB\xBFTo be,\r\nor not to be  \n");
  write_atomically(folder / "b", "caf\u00e9");
  const CorpusReport report = prepare_corpus({{folder / "a", folder / "b"}, folder / "out.txt"});
  EXPECT_EQ(read_file(folder / "out.txt"), "To be,\nor not to be\ncaf\u00e9\n");
  EXPECT_EQ(to_text(report), "corpus      " + (folder / "out.txt") + "\nfrom        " +
                                 (folder / "a") + "\nfrom        " + (folder / "b") +
                                 "\nfiles       2\nbytes       26\nlines       3\nwords       7\n"
                                 "characters  25, 14 distinct\n"
                                 "cleaned     1 byte order marks removed\n"
                                 "cleaned     1 line ends CR LF made LF\n"
                                 "cleaned     1 lines with blanks at the end cut\n"
                                 "xxh3-128    " +
                                 report.digest + "\n");
}

/// What a user wrote is never lost: the output is no source, and no file with other bytes.
TEST(Corpus, OverwritesNothingUnasked) {
  const TestFolder folder;
  const std::string in = folder / "in", file = in + "/a.txt";
  fs::create_directory(in);
  write_atomically(file, "my  own \r\nwords");
  write_atomically(folder / "mine", "another file\n");
  fs::create_symlink(file, folder / "link");
  fs::create_directory_symlink(in, folder / "also-in");
  struct Case {
    const char* name;
    CorpusRequest request;
    std::string message;
  };
  const std::string is_source = "' is the source '", lies = "' lies in the source folder '";
  const Case cases[] = {
      {"a source", {{file}, file, "", true}, is_source + file + "' itself"},
      {"by another name", {{file}, folder / "link", "", true}, is_source + file + "' itself"},
      {"a file of a source folder", {{in}, file, "", true}, lies + in + "'"},
      {"a new file of a source folder", {{in}, in + "/new", "", true}, lies + in + "'"},
      {"under another name", {{in}, folder / "also-in/new", "", true}, lies + in + "'"},
      {"a file of the user's", {{file}, folder / "mine"}, "exists with other contents"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_NE(message_of([&] { prepare_corpus(c.request); }).find(c.message), std::string::npos);
    EXPECT_EQ(read_file(file), "my  own \r\nwords");
    EXPECT_EQ(read_file(folder / "mine"), "another file\n");
    EXPECT_FALSE(fs::exists(in + "/new"));
  }
  prepare_corpus({{file}, folder / "mine", "", true});
  EXPECT_EQ(read_file(folder / "mine"), "my  own\nwords\n");
  prepare_corpus({{file}, folder / "mine"});  // made again, it is the same
}

TEST(Corpus, Errors) {
  const TestFolder folder;
  write_atomically(folder / "blank", " \n");
  EXPECT_EQ(message_of([&] {
              prepare_corpus({{}, folder / "o"});
            }),
            "no source given; give text files, folders, or a corpus: kjv, licences");
  EXPECT_EQ(message_of([&] {
              prepare_corpus({{"kjv"}, ""});
            }),
            "no output given; give the name of the file to write");
  EXPECT_EQ(
      message_of([&] {
        prepare_corpus({{folder / "blnak"}, folder / "o"});
      }),
      "'" + folder.path() +
          "/blnak' is neither a file, a folder nor the name of a corpus; corpora by name: kjv, "
          "licences; near names in '" +
          folder.path() + "': blank");
  EXPECT_EQ(
      message_of([&] {
        prepare_corpus({{folder / "blank"}, folder / "o"});
      }),
      "nothing is left of " + folder.path() + "/blank after cleaning; give sources with text");
  EXPECT_FALSE(fs::exists(folder / "o"));
}

TEST(Corpus, Licences) {
  if (!fs::exists("/usr/share/common-licenses")) GTEST_SKIP() << "not a Debian system";
  const TestFolder folder;
  const CorpusReport report = prepare_corpus({{"licences"}, folder / "out.txt"});
  EXPECT_GT(report.bytes, 150'000);
  EXPECT_GT(report.words, 20'000);
}

TEST(Corpus, KjvFallsBackWithANotice) {
  if (!fs::exists("/usr/share/common-licenses")) GTEST_SKIP() << "not a Debian system";
  const TestFolder folder;
  const CorpusReport report =
      prepare_corpus({{"kjv"}, folder / "out.txt", folder / "no-such-tool"});
  ASSERT_EQ(report.notices.size(), 2u);
  EXPECT_NE(report.notices[0].find("the King James text could not be fetched: "),
            std::string::npos);
  EXPECT_EQ(report.notices[1],
            "the licence texts in /usr/share/common-licenses were taken instead");
  EXPECT_EQ(report.bytes, static_cast<std::int64_t>(fs::file_size(folder / "out.txt")));
  // Nothing of the attempt is left.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace tessera
