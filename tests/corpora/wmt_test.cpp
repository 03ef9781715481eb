#include "tessera/corpora/wmt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "tessera/corpora/sgm.h"
#include "tessera/data/bleu.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

/// A set of kind `srcset` or `refset` with `inner` in it.
std::string sgm(const std::string& kind, const std::string& attributes, const std::string& inner) {
  return "<" + kind + " setid=\"t\" " + attributes + ">\n" + inner + "\n</" + kind + ">\n";
}
std::string document(const std::string& id, const std::string& segments) {
  return "<doc docid=\"" + id + "\">\n" + segments + "</doc>\n";
}

TEST(Sgm, Segments) {
  struct Case {
    const char *name, *in, *text;
  };
  const Case cases[] = {
      {"plain", "a b", "a b"},
      {"a bare ampersand", "S&P & Co &c; &amp", "S&P & Co &c; &amp"},
      {"the named entities, once", "&amp;lt; &lt;b&gt; &quot;&apos;", "&lt; <b> \"'"},
      {"no other entity", "&eacute;&#233;", "&eacute;&#233;"},
      {"runs of white space", " a \t\n b\u00a0\u202f\u2009c\r", "a b c"},
      {"control characters", "a\x01\u0096z", "a z"},
      {"a bare <", "1 < 2 <3", "1 < 2 <3"},
      {"nothing", "", ""},
      {"letters as they are", "e\u0301\u00e9", "e\u0301\u00e9"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const SgmSet set =
        parse_sgm(sgm("srcset", "srclang=\"any\"",
                      document("d", "<seg id=\"1\">" + std::string(c.in) + "</seg>\n")),
                  "a.sgm");
    EXPECT_EQ(set.language, "");
    EXPECT_EQ(set.documents.at(0).segments.at(0).text, c.text);
  }
}

/// What WMT's files have besides: other tags, several on a line, capitals, other quotes.
TEST(Sgm, OtherForms) {
  const SgmSet set = parse_sgm(
      "\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!DOCTYPE mteval [ <!ELEMENT mteval (a)> ]><!-- l'un "
      "-->\n<mteval>\n"
      "<REFSET trglang='FR' srclang=en setid=\"t\"><DOC sysid=\"ref\" docid = \"d\" docid=\"e\">\n"
      "<hl>\n<SEG ID=\"1\">one</SEG> <seg id='2'>two\nlines</seg>\n</hl><!-- <seg id='9'>no</seg> "
      "--><p></p>\n</DOC>\n"
      "<doc docid=\"f\"></doc></REFSET>\n</mteval>\n",
      "a.sgm");
  EXPECT_EQ(set.kind, SgmKind::Reference);
  EXPECT_EQ(set.id, "t");
  EXPECT_EQ(set.language, "fr");
  ASSERT_EQ(set.documents.size(), 2u);
  EXPECT_EQ(set.documents[0].id, "e");  // docid with blanks around = is no attribute
  ASSERT_EQ(set.documents[0].segments.size(), 2u);
  EXPECT_EQ(set.documents[0].segments[1].text, "two lines");
  EXPECT_EQ(set.documents[0].segments[1].line, 6);
  EXPECT_EQ(set.documents[1].line, 10);
}

TEST(Sgm, Errors) {
  const std::string seg = "<seg id=\"1\">a</seg>\n";
  const auto source = [](const std::string& inner) { return sgm("srcset", "", inner); };
  struct Case {
    std::string in, message;
  };
  const Case cases[] = {
      {source(document("d", seg + "<seg id=\"2\">\xff</seg>\n")),
       "line 4: byte 68 of the file is not UTF-8; convert the file to UTF-8"},
      {source(document("d", "<seg id=\"1\">a\n<seg id=\"2\">b</seg>\n")),
       "line 3: segment 1 of document d is not closed; write </seg> at its end"},
      {source(document("d", "<seg id=\"1\">Hi <b>you</b> x</seg>\n")),
       "line 3: segment 1 of document d has the tag </b> in its text; remove it and the <b> before "
       "it, or write &lt; for < where they are text"},
      {source(document("d", "<seg id=\"1\">Hi</b>\n<seg id=\"2\">b</seg>\n")),
       "line 3: segment 1 of document d is not closed; write </seg> at its end"},
      {source(document("d", "<!-- <seg id=\"1\">a</seg>\n")),
       "line 3: the comment that begins here is not closed; write --> at its end"},
      {"<!DOCTYPE mteval [ <!ELEMENT mteval (a)>\n",
       "line 1: the tag '<!DOCTYPE mteval [ <!ELEMENT mteval (a)>' is not closed; write > at its "
       "end"},
      {source(document("d", "<seg id=\"1\">a\n")),
       "line 3: segment 1 of document d is not closed; write </seg> at its end"},
      {source(document("d", "<seg id=\"1\"\n")),
       "line 3: the tag '<seg id=\"1\"' is not closed; "
       "write > at its end"},
      {source("<doc docid=\"d\">\n" + seg + document("e", seg)),
       "line 2: document d is not closed before the next one in line 4; write </doc> at its end"},
      {source("<doc docid=\"d\">\n" + seg),
       "line 2: document d is not closed before the end of the set in line 5; write </doc> at its "
       "end"},
      {"<srcset setid=\"t\">\n" + document("d", seg),
       "line 1: the set that begins here is not closed, so the file may have lost its end; "
       "download the file again"},
      {source(document("d", seg + seg)),
       "line 4: segment 1 of document d appears twice; remove one, or renumber them"},
      {source(document("d", seg) + document("d", seg)),
       "line 5: document d appears twice; remove one"},
      {source(document("d", "<seg>a</seg>")),
       "line 3: <seg> has no id; give it one, like id=\"1\""},
      {source("<doc>\n</doc>"),
       "line 2: <doc> has no docid; give it one, like "
       "docid=\"1009-lemondefr\""},
      {"<srcset>\n</srcset>",
       "line 1: <srcset> has no setid; give it one, like "
       "setid=\"newstest2014\""},
      {source(document("d", "lost\n" + seg)),
       "line 3: 'lost' is outside any segment; put it "
       "between <seg id=\"...\"> and </seg>"},
      {source(seg), "line 2: a segment outside a document; write <doc docid=\"...\"> before it"},
      {document("d", seg),
       "line 1: a document outside a set; begin the file with <srcset> or "
       "<refset>"},
      {source("</doc>"),
       "line 2: </doc> closes nothing; remove it, or add the missing tag before it"},
      {"<srcset setid=\"t\">\n</refset>",
       "line 2: </refset> closes nothing; remove it, or add the missing tag before it"},
      {source("") + source(""),
       "line 4: a second set in one file; put each <srcset> or <refset> "
       "into a file of its own"},
      {"<tstset setid=\"t\">\n",
       "line 1: a <tstset> is a system's output, neither source nor reference; take the file out "
       "of the folder"},
      {"<p>\n",
       "has no <srcset> or <refset>; give .sgm files of WMT, or take this one out of the "
       "folder"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.in);
    const std::string message = message_of([&] { parse_sgm(c.in, "a.sgm"); });
    EXPECT_EQ(message, "'a.sgm'" + std::string(c.message[0] == 'l' ? ", " : " ") + c.message);
  }
}

/// The four files of a small set, as WMT has them; `source` and `target` are the French and
/// English.
void write_set(const TestFolder& folder, const std::string& french, const std::string& english) {
  write_atomically(folder / "t-src.fr.sgm", sgm("srcset", "srclang=\"any\"", french));
  write_atomically(folder / "t-src.en.sgm", sgm("srcset", "srclang=\"any\"", english));
  const std::string reference = "srclang=\"any\" trglang=";
  write_atomically(folder / "ref1.sgm", sgm("refset", reference + "\"fr\"", french));
  write_atomically(folder / "ref2.sgm", sgm("refset", reference + "\"en\"", english));
}

TEST(Wmt, PairsByDocumentAndSegment) {
  const TestFolder folder;
  write_set(folder,
            document("x",
                     "<seg id=\"1\">un</seg>\n<seg id=\"2\"> </seg>\n<seg id=\"3\">trois\t"
                     "3</seg>\n<seg id=\"4\">quatre</seg>\n") +
                document("y", "<seg id=\"1\">cinq</seg>\n"),
            document("y", "<seg id=\"1\">five</seg>\n") +
                document("x",
                         "<seg id=\"3\">three</seg>\n<seg id=\"2\">two</seg>\n<seg id=\"1\">"
                         "one &amp; only</seg>\n<seg id=\"5\">-</seg>\n"));
  const WmtReport report = prepare_wmt({folder.path(), folder / "new/out"});
  EXPECT_EQ(read_file(folder / "new/out/wmt14.fr_en.txt"),
            "un\tone & only\ntrois 3\tthree\ncinq\tfive\n");
  EXPECT_EQ(read_file(folder / "new/out/wmt14.en_fr.txt"),
            "five\tcinq\nthree\ttrois 3\none & only\tun\n");
  ASSERT_EQ(report.texts.size(), 2u);
  EXPECT_EQ(report.texts[0].pairs, 3);
  EXPECT_EQ(report.texts[0].dropped,
            (std::vector<Cleaning>{{"pairs with an empty target", 1},
                                   {"segments of the source that the target lacks", 1},
                                   {"segments of the target that the source lacks", 1}}));
  EXPECT_NE(to_text(report).find("t-src.fr.sgm: source in fr of t, 2 documents, 5 segments\n"),
            std::string::npos)
      << to_text(report);
  EXPECT_NE(to_text(report).find("wmt14.fr_en.txt: 3 pairs, 4 and 5 words\n"), std::string::npos);
}

/// "EN" is "en", in names of files as in attributes.
TEST(Wmt, LanguagesInCapitals) {
  const TestFolder folder;
  const std::string one = document("d", "<seg id=\"1\">a</seg>\n"),
                    two = document("d", "<seg id=\"1\">b</seg>\n");
  write_atomically(folder / "a.EN.sgm", sgm("srcset", "", one));
  write_atomically(folder / "b.sgm", sgm("refset", "trglang=\"en\"", one));
  write_atomically(folder / "c.sgm", sgm("refset", "trglang=\"FR\"", two));
  prepare_wmt({folder.path(), folder / "out"});
  EXPECT_EQ(read_file(folder / "out/wmt14.en_fr.txt"), "a\tb\n");
}

/// A reference serves as the source where a language has no source, and the other way round.
TEST(Wmt, TwoFilesAreEnough) {
  const TestFolder folder;
  const std::string one = document("d", "<seg id=\"1\">a</seg>\n"),
                    two = document("d", "<seg id=\"1\">b</seg>\n");
  write_atomically(folder / "a.sgm", sgm("refset", "trglang=\"de\"", one));
  write_atomically(folder / "b.sgm", sgm("srcset", "srclang=\"cs\"", two));
  prepare_wmt({folder.path(), folder / "out"});
  EXPECT_EQ(read_file(folder / "out/wmt14.de_cs.txt"), "a\tb\n");
  EXPECT_EQ(read_file(folder / "out/wmt14.cs_de.txt"), "b\ta\n");
}

TEST(Wmt, ErrorsLeaveNothing) {
  const std::string good = document("d", "<seg id=\"1\">a</seg>\n");
  struct Case {
    const char* name;
    std::vector<std::pair<std::string, std::string>> files;
    const char* message;
  };
  const Case cases[] = {
      {"no files",
       {{"a.txt", "a\n"}},
       "folder '@' holds no .sgm files; give the folder into which "
       "WMT's test sets were unpacked"},
      {"one language",
       {{"a.en.sgm", sgm("srcset", "", good)}, {"b.sgm", sgm("refset", "trglang=\"en\"", good)}},
       "the .sgm files of folder '@' are in 1 language: en; give a folder with the files of two"},
      {"three languages",
       {{"a.en.sgm", sgm("srcset", "", good)},
        {"b.fr.sgm", sgm("srcset", "", good)},
        {"c.de.sgm", sgm("srcset", "", good)}},
       "the .sgm files of folder '@' are in 3 languages: de, en, fr; give a folder with the files "
       "of two"},
      {"no language",
       {{"a.sgm", sgm("refset", "", good)}},
       "'@/a.sgm' does not say its language; give its set the attribute trglang, or name the file "
       "like NAME.en.sgm"},
      {"a language that is a path",
       {{"a.en.sgm", sgm("srcset", "", good)},
        {"b.sgm", sgm("refset", "trglang=\"Fr/../../x\"", good)}},
       "'@/b.sgm' is in the language 'fr/../../x', which has other characters than letters, "
       "digits, - and _; correct its attribute or the file's name"},
      {"the same twice",
       {{"a.en.sgm", sgm("srcset", "", good)}, {"b.en.sgm", sgm("srcset", "", good)}},
       "'@/a.en.sgm' and '@/b.en.sgm' are both the source of t in en; leave one out, or give a "
       "folder with the files of one pair of languages"},
      {"a document that one side lacks",
       {{"a.en.sgm", sgm("srcset", "", good + document("e", ""))},
        {"b.fr.sgm", sgm("srcset", "", good)}},
       "'@/a.en.sgm', line 5: document e is not in '@/b.fr.sgm'; give files of the same set, or "
       "remove the document"},
      {"a document that the other side lacks",
       {{"a.en.sgm", sgm("srcset", "", good)},
        {"b.fr.sgm", sgm("srcset", "", good + document("e", ""))}},
       "'@/b.fr.sgm', line 5: document e is not in '@/a.en.sgm'; give files of the same set, or "
       "remove the document"},
      {"no pair",
       {{"a.en.sgm", sgm("srcset", "", good)},
        {"b.fr.sgm", sgm("srcset", "", document("d", "<seg id=\"2\">b</seg>\n"))}},
       "folder '@' has no pair with text on both sides; give .sgm files with the same "
       "documents in both languages"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const TestFolder folder;
    for (const auto& [name, bytes] : c.files) write_atomically(folder / name, bytes);
    std::string message = c.message;
    for (std::size_t at = 0; (at = message.find('@', at)) != std::string::npos;)
      message.replace(at, 1, folder.path());
    EXPECT_EQ(message_of([&] { prepare_wmt({folder.path(), folder / "out"}); }), message);
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  }
}

/// Neither of two files is replaced where one of them would lose what it holds.
TEST(Wmt, LosesNoFile) {
  const TestFolder folder;
  write_set(folder, document("d", "<seg id=\"1\">un</seg>\n"),
            document("d", "<seg id=\"1\">one</seg>\n"));
  write_atomically(folder / "wmt14.fr_en.txt", "mine\n");
  const WmtRequest request{folder.path(), folder.path(), false};
  EXPECT_EQ(message_of([&] { prepare_wmt(request); }),
            "output '" + (folder / "wmt14.fr_en.txt") +
                "' exists with other contents; give another folder, or --overwrite to replace it");
  EXPECT_FALSE(std::filesystem::exists(folder / "wmt14.en_fr.txt"));
  prepare_wmt({folder.path(), folder.path(), true});
  EXPECT_EQ(read_file(folder / "wmt14.fr_en.txt"), "un\tone\n");
  prepare_wmt(request);  // made again, it is the same
}

/// newstest2014 as WMT published it: its counts of documents, segments and words are known.
TEST(Wmt, TheRealSet) {
  const std::string data = test_data("wmt14-fren");
  if (data.empty()) GTEST_SKIP() << no_test_data("wmt14-fren");
  const TestFolder folder;
  const WmtReport report = prepare_wmt({data, folder / "out"});
  ASSERT_EQ(report.texts.size(), 2u);
  for (const WmtText& written : report.texts) {
    EXPECT_EQ(written.pairs, 3003);
    EXPECT_EQ(written.source_words + written.target_words, 62'338 + 69'631);
    const std::string bytes = read_file(written.path);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), 3003);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\t'), 3003);
  }
  EXPECT_NE(read_file(folder / "out/wmt14.en_fr.txt").find("Standard & Poor's"), std::string::npos);
}

/// sacreBLEU 2.6.0 on newstest2014, made into lines by prepare_wmt: French that is taken for
/// English, and English without the last word of each line (tools/golden/bleu.py FILE FILE).
TEST(Wmt, BleuOfTheRealSet) {
  const std::string data = test_data("wmt14-fren");
  if (data.empty()) GTEST_SKIP() << no_test_data("wmt14-fren");
  const TestFolder folder;
  prepare_wmt({data, folder.path()});
  std::vector<std::string> french, english, cut;
  for (const std::string& line : split(read_file(folder / "wmt14.fr_en.txt"), '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> pair = split(line, '\t');
    french.push_back(pair[0]);
    english.push_back(pair[1]);
    const std::size_t last = pair[1].rfind(' ');
    cut.push_back(last == std::string::npos ? "" : pair[1].substr(0, last));
  }
  const Bleu copied = corpus_bleu(french, english), shorter = corpus_bleu(cut, english);
  EXPECT_NEAR(copied.score, 2.422056980605613, 1e-10);
  EXPECT_EQ(to_text(copied),
            "BLEU = 2.42 16.6/3.4/1.3/0.5 (BP = 1.000 ratio = 1.093 hyp_len = "
            "77306 ref_len = 70708)");
  EXPECT_NEAR(shorter.score, 91.02281995872836, 1e-10);
  EXPECT_EQ(to_text(shorter),
            "BLEU = 91.02 100.0/100.0/100.0/100.0 (BP = 0.910 ratio = 0.914 "
            "hyp_len = 64629 ref_len = 70708)");
}

}  // namespace
}  // namespace tessera
