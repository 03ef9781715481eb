#pragma once
/// Tiny runs on token files that have a sequence for each sentence.

#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/token_files/indexed_dataset_writer.h"
#include "train/tiny_run.h"

namespace tessera {

class SentenceRun : public TrainerTest {
 protected:
  /// Writes 60 documents of at least so many sentences, with ids from 5 to 39, and a vocabulary of
  /// BERT's for them.
  explicit SentenceRun(std::int32_t fewest) {
    IndexedDatasetWriter writer(folder_ + "/sentences", TokenType::U16);
    for (std::int32_t d = 0; d < 60; ++d) {
      for (std::int32_t s = 0; s < fewest + d % 5; ++s) {
        std::vector<std::int32_t> ids;
        for (std::int32_t i = 0; i < 3 + (d + s) % 9; ++i) ids.push_back(5 + (d * 5 + i * i) % 35);
        writer.add_sequence(ids);
      }
      writer.end_document();
    }
    writer.finish();
    std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (int i = 5; i < 40; ++i) pieces += text(i % 7 == 0 ? "##p" : "p", i, "\n");
    write_atomically(folder_ + "/vocab.txt", pieces);
  }

  void train_on_sentences(RunConfig& config) const {
    config.data = {folder_ + "/sentences"};
    config.split = "80,20";
    config.tokenizer_type = "BertWordPieceCase";
    config.vocab_file = folder_ + "/vocab.txt";
    config.defaulted = {"vocabulary", "vocab-size", "special-tokens"};
    config.model.vocabulary = 0;
  }
};

}  // namespace tessera
