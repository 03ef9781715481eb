#pragma once
/// The task of making vectors of texts: those that belong together come close to each other, and
/// away from those of all other samples of the batch.

#include <functional>
#include <memory>
#include <span>

#include "tessera/models/encoder.h"
#include "tessera/models/family.h"

namespace tessera {

struct Dataset;
class Vocabulary;

/// How a family makes the vector of a text.
struct TextEmbedder {
  /// Vectors [n, width] of the inputs ids, mask and types [n, s] of data/text_groups.h.
  std::function<Value(const TaskValues& inputs, const Pass& pass)> vectors = nullptr;
  std::function<SampleFrame(const Vocabulary& vocabulary)> frame = nullptr;
  bool types = false;
};

/// How the texts of a sample are read.
struct GroupReading {
  std::function<SampleFrame(const Vocabulary& vocabulary)> frame = nullptr;
  bool types = false;  // there is an input of that name
  bool pairs = false;  // each text behind the first is one with that
};
/// Gives a task the inputs ids, types and mask [texts, context], and the samples, of
/// data/text_groups.h.
void read_text_groups(Task& task, const ModelConfig& config, const GroupReading& reading);

/// A sample is some texts: an anchor, its positive and, if there are three, a negative. The logits
/// of an anchor are similarity_scale x the cosines between its vector and those of the positives of
/// the whole batch, and of the negatives behind them; the loss is the mean cross-entropy with its
/// own positive. The whole batch counts on any mesh and in any micro-batches. Means: loss,
/// accuracy. Predicted: vectors [b, texts, width] of length 1.
///
/// Source: MultipleNegativesRankingLoss of sentence-transformers (Henderson et al. 2017, arXiv
/// 1705.00652).
Task sentence_embedding(const ModelConfig& config, TextEmbedder embedder);

/// Of encoders: the mean of the rows of a text's tokens, or the first row.
TextEmbedder encoder_embedder(const ModelConfig& config, const MaskedModel& model);

/// Judges vectors [batch, texts, width] of length 1, by the name "vectors", of held-out samples:
/// whether anchors find their own positive among those, and the negatives, of all samples. Scores:
/// recall_at_1, recall_at_10, mrr_at_10. Table: row, the cosine between anchor and positive, and
/// the positive's place.
std::unique_ptr<Judge> similarity_judge(const Dataset& data);

/// So many texts has a sample: those of the configuration, or 2 while the data are not known.
std::int64_t text_count(const ModelConfig& config);

/// FamilyTask::reads and find_problems.
inline constexpr ReadField kEmbeddingReads[] = {
    {"texts"}, {"similarity-scale"}, {"sentence-pooling"}};
void find_embedding_problems(const ModelConfig& config, FieldProblems& problems);

/// The row of an encoder's family.
template <const MaskedModel& kModel>
constexpr FamilyTask embedding_task() {
  return {kSentenceEmbedding,
          [](const ModelConfig& config) {
            return sentence_embedding(config, encoder_embedder(config, kModel));
          },
          kEmbeddingReads, find_embedding_problems};
}

}  // namespace tessera
