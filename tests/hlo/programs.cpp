#include "hlo/programs.h"

#include "tessera/passes/add_uses.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/recompute.h"
#include "tessera/passes/simplify.h"
#include "tessera/train/programs.h"

namespace tessera::test {

Program ModelProgram::make() const {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  optimizer.clip = 0.1;
  const Task task = task_of(tiny(family));
  Graph graph = train_step(task, optimizer, 12);
  if (narrow) graph = compute_in(graph, Precision{});
  if (what == What::Init) graph = initialise(graph);
  if (what == What::Evaluate) graph = evaluate_step(task, 12);
  ParallelConfig config = parallel;
  if (what != What::Train) config.micro_batches = 1;
  const Strategy strategy =
      strategy_of(config, what == What::Init ? BatchSplit::Whole : BatchSplit::Cut, tiny(family));
  graph = recompute(simplify(graph), strategy.recompute);
  return partition(propagate(add_uses(graph), strategy));
}

const std::vector<ModelProgram>& model_programs() {
  using What = ModelProgram::What;
  const ParallelConfig one,
      dp2 = parallel_of(2, 1, 1, false, 0, 1), dp3 = parallel_of(3, 1, 1, false, 3, 4),
      tp2 = parallel_of(1, 2, 1, true, 0, 1), cp2 = parallel_of(1, 1, 2, false, 0, 1),
      dp2tp2 = parallel_of(2, 2, 1, true, 1, 2), cp2dp2 = parallel_of(2, 1, 2, false, 3, 2);
  ParallelConfig again = tp2;
  again.recompute = Recompute::Full;
  static const std::vector<ModelProgram> kPrograms = {
      {"gpt2 alone", "gpt2", one},
      {"gpt2 alone, first values", "gpt2", one, false, What::Init},
      {"gpt2 in bf16", "gpt2", one, true},
      {"gpt2 dp2", "gpt2", dp2},
      {"gpt2 dp2, evaluation", "gpt2", dp2, false, What::Evaluate},
      {"gpt2 dp3 ZeRO-3, four uneven micro-batches", "gpt2", dp3},
      {"gpt2 dp3 ZeRO-3, first values", "gpt2", dp3, false, What::Init},
      {"gpt2 tp2 with sequence parallel", "gpt2", tp2},
      {"gpt2 tp2 recomputed", "gpt2", again},
      {"gpt2 cp2", "gpt2", cp2},
      {"gpt2 dp2 tp2 in bf16, micro-batches", "gpt2", dp2tp2, true},
      {"llama alone", "llama", one},
      {"llama dp2 tp2, micro-batches", "llama", dp2tp2},
      {"llama cp2 dp2 ZeRO-3 in bf16", "llama", cp2dp2, true},
      {"bert dp2 tp2, micro-batches", "bert", dp2tp2},
      {"bert cp2", "bert-masked", cp2},
      {"encoder-decoder alone in bf16", "transformer", one, true},
      {"encoder-decoder tp2", "transformer", tp2},
      {"encoder-decoder dp3 ZeRO-3, micro-batches", "transformer_post", dp3},
      {"t5 dp2 tp2, micro-batches", "t5", dp2tp2},
      {"t5 relu cp2", "t5_relu", cp2},
      {"vit dp3 ZeRO-3, micro-batches", "vit", dp3},
      {"vit tp2", "vit", tp2},
  };
  return kPrograms;
}

}  // namespace tessera::test
