/// Lines of CoNLL files that begin with #: comments, words, and those that could be either.

#include "tessera/files/conll_comments.h"

#include <gtest/gtest.h>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/tagged_words.h"

namespace tessera {
namespace {

/// "Al/B met/O | Bo/B"
std::string sentences_of(const std::string& bytes) {
  std::string out;
  for (const TaggedSentence& sentence : parse_tagged_words(bytes, "a.txt")) {
    if (!out.empty()) out += "| ";
    for (std::size_t i = 0; i < sentence.words.size(); ++i)
      out += text(sentence.words[i], "/", sentence.tags[i], " ");
  }
  return out;
}

TEST(ConllComments, ArePassedOver) {
  for (const auto& [why, bytes] : {
           std::pair("no tab, where words have some", "# text = Al met\nAl\tB\nmet\tO\n\nBo\tB\n"),
           {"within a sentence too", "Al\tB\n# of Al\nmet\tO\n\n#newdoc\nBo\tB\n"},
           {"other columns, tabs", "#\thttp://a [2009]\tx\nAl\tB\nmet\tO\n\nBo\tB\n"},
           {"other columns, blanks", "# sent_id = 3\nAl B\nmet O\n\n# text = Bo\nBo B\n"},
           {"columns between", "# newdoc\nAl N B\nmet V O\n\nBo N B\n"},
       }) {
    SCOPED_TRACE(why);
    EXPECT_EQ(sentences_of(bytes), "Al/B met/O | Bo/B ");
  }
}

TEST(ConllComments, WordsMayBeginWithAHash) {
  EXPECT_EQ(sentences_of("#\tO\n#nlp\tB-TAG\n\nBo\tO\n"), "#/O #nlp/B-TAG | Bo/O ");
  EXPECT_EQ(sentences_of("# O\n1 O\n"), "#/O 1/O ");
  EXPECT_EQ(sentences_of("# a b\n"), "#/b ") << "nothing tells what words look like";
}

TEST(ConllComments, WhatCouldBeEitherIsRefused) {
  EXPECT_NE(message_of([] { sentences_of("Al B\n\n# newdoc\nBo B\n"); })
                .find("'a.txt' line 3 begins with # and may be a comment or the word #: its last "
                      "column, 'newdoc', is not the tag of any other word"),
            std::string::npos);
  EXPECT_NE(message_of([] { sentences_of("Al B\n# of Al\nmet O\n"); }).find("it has 3 columns"),
            std::string::npos);
}

TEST(ConllComments, NumbersOfWordsAreNoWords) {
  const char* const conllu =
      "# text = Al met\n1\tAl\tAl\tPROPN\t_\n2\tmet\tmeet\tVERB\t_\n\n1\tBo\tBo\tPROPN\t_\n";
  EXPECT_NE(message_of([&] {
              sentences_of(conllu);
            }).find("'a.txt' line 2: the first column numbers the words of each sentence"),
            std::string::npos);
  EXPECT_EQ(sentences_of("1 N O\n2 N O\n\nBo N B\n"), "1/O 2/O | Bo/B ");
}

}  // namespace
}  // namespace tessera
