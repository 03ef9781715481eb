/// When transfers start and end, as text: for each the number of nodes of its region that have run
/// by then.

#include <gtest/gtest.h>

#include "tessera/ir/parse.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/table.h"
#include "tessera/passes/partition.h"
#include "tessera/plan/overlap.h"

namespace tessera {
namespace {

struct Case {
  const char *why, *graph, *out;
  PipelineSize size = {1, 1, 2};
  const char* schedule = "1f1b";
  int stage = 0;
};

const Case kCases[] = {
    {"an exchange of one size is done at once",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4,4] : f32[4,4] at [a,-]
%1 = exp(%0) : f32[4,4] at [a,-]
%2 = reshard(%1) : f32[4,4] at [-,a]
%3 = exp(%1) : f32[4,4] at [a,-]
%4 = exp(%2) : f32[4,4] at [-,a]
slot "y" = %4
slot "z" = %3
)",
     "forward: %2 all_to_all at once\n"},
    {"what is summed in place goes on from the node that made it to the first reader",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4,4] : f32[4,4] at [-,-]
%1 = exp(%0) : f32[4,4] at [-,-]+a
%2 = exp(%0) : f32[4,4] at [-,-]
%3 = reshard(%1) : f32[4,4] at [-,-]
%4 = exp(%0) : f32[4,4] at [-,-]
%5 = add(%3, %2) : f32[4,4] at [-,-]
%6 = add(%5, %3) : f32[4,4] at [-,-]
slot "y" = %6
slot "z" = %4
)",
     "forward: %3 all_reduce 2 to 5\n"},
    {"a copy that is copied again waits for the sum",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4,4] : f32[4,4] at [-,-]
%1 = exp(%0) : f32[4,4] at [-,-]+a
%2 = reshard(%1) : f32[4,4] at [-,-]
%3 = reshard(%2) : f32[4,4] at [-,-]@host
%4 = reshard(%3) : f32[4,4] at [-,-]
%5 = exp(%0) : f32[4,4] at [-,-]
%6 = add(%4, %5) : f32[4,4] at [-,-]
slot "y" = %6
)",
     "forward: %2 all_reduce 2 to 6\n"
     "forward: %3 copy at once\n"
     "forward: %4 copy at once\n"},
    {"or to the end, if none is there",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4,4] : f32[4,4] at [-,-]
%1 = exp(%0) : f32[4,4] at [-,-]+a
%2 = reshard(%1) : f32[4,4] at [-,-]
%3 = exp(%0) : f32[4,4] at [-,-]
metric "y" = %2
slot "z" = %3
)",
     "forward: %2 all_reduce 2 to 4\n"},
    {"what grows starts when the one before it has ended: one is under way ahead",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [a]
%1 = batch() name="y" dtype=f32 shape=[4] : f32[4] at [a]
%2 = batch() name="z" dtype=f32 shape=[4] : f32[4] at [a]
%3 = reshard(%0) : f32[4] at [-]
%4 = exp(%3) : f32[4] at [-]
%5 = reshard(%1) : f32[4] at [-]
%6 = exp(%5) : f32[4] at [-]
%7 = reshard(%2) : f32[4] at [-]
%8 = exp(%7) : f32[4] at [-]
slot "a" = %4
slot "b" = %6
slot "c" = %8
)",
     "forward: %1 all_gather 0 to 2\n"
     "forward: %4 all_gather 2 to 5\n"
     "forward: %7 all_gather 5 to 8\n"},
    {"in the order in which they are read, not in that of the nodes",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [a]
%1 = batch() name="y" dtype=f32 shape=[4] : f32[4] at [a]
%2 = reshard(%0) : f32[4] at [-]
%3 = reshard(%1) : f32[4] at [-]
%4 = exp(%3) : f32[4] at [-]
%5 = exp(%2) : f32[4] at [-]
slot "a" = %4
slot "b" = %5
)",
     "forward: %1 all_gather 4 to 5\n"
     "forward: %3 all_gather 0 to 4\n"},
    {"what shrinks ends when the next one starts: one is under way behind",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]
%1 = exp(%0) : f32[4] at [-]+a
%2 = reshard(%1) : f32[4] at [a]
%3 = exp(%0) : f32[4] at [-]+a
%4 = reshard(%3) : f32[4] at [a]
%5 = exp(%0) : f32[4] at [-]+a
%6 = reshard(%5) : f32[4] at [a]
%7 = exp(%0) : f32[4] at [-]
slot "a" = %2
slot "b" = %4
slot "c" = %6
slot "d" = %7
)",
     "forward: %2 reduce_scatter 2 to 4\n"
     "forward: %4 reduce_scatter 4 to 6\n"
     "forward: %6 reduce_scatter 6 to 8\n"},
    {"what is copied from the host starts one ahead of its reader",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]@host
%1 = batch() name="y" dtype=f32 shape=[4] : f32[4] at [-]@host
%2 = reshard(%0) : f32[4] at [-]
%3 = exp(%2) : f32[4] at [-]
%4 = reshard(%1) : f32[4] at [-]
%5 = exp(%4) : f32[4] at [-]
slot "a" = %3
slot "b" = %5
)",
     "forward: %1 copy 0 to 2\n"
     "forward: %4 copy 2 to 5\n"},
    {"what is copied to the host ends when the next copy starts",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]
%1 = exp(%0) : f32[4] at [-]
%2 = reshard(%1) : f32[4] at [-]@host
%3 = exp(%1) : f32[4] at [-]
%4 = reshard(%3) : f32[4] at [-]@host
%5 = exp(%3) : f32[4] at [-]
%6 = exp(%5) : f32[4] at [-]
slot "a" = %2
slot "b" = %4
slot "c" = %6
)",
     "forward: %2 copy 2 to 4\n"
     "forward: %4 copy 4 to 7\n"},
    {"what is copied to the host and read there starts one ahead too",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]
%1 = batch() name="y" dtype=f32 shape=[4] : f32[4] at [-]
%2 = reshard(%0) : f32[4] at [-]@host
%3 = exp(%2) : f32[4] at [-]@host
%4 = reshard(%1) : f32[4] at [-]@host
%5 = exp(%4) : f32[4] at [-]@host
slot "a" = %3
slot "b" = %5
)",
     "forward: %1 copy 0 to 2\n"
     "forward: %4 copy 2 to 5\n"},
    {"what is copied from the host and not read in the region ends when the next copy starts",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]@host
%1 = exp(%0) : f32[4] at [-]@host
%2 = reshard(%1) : f32[4] at [-]
%3 = exp(%1) : f32[4] at [-]@host
%4 = reshard(%3) : f32[4] at [-]
%5 = exp(%3) : f32[4] at [-]@host
slot "a" = %2
slot "b" = %4
slot "c" = %5
)",
     "forward: %2 copy 2 to 4\n"
     "forward: %4 copy 4 to 6\n"},
    {"copies for one reader start together, one ahead; those to the other memory do not wait for "
     "them",
     R"(graph placed mesh a=2
%0 = batch() name="w" dtype=f32 shape=[4] : f32[4] at [-]@host
%1 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]@host
%2 = batch() name="y" dtype=f32 shape=[4] : f32[4] at [-]@host
%3 = batch() name="z" dtype=f32 shape=[4] : f32[4] at [-]
%4 = reshard(%0) : f32[4] at [-]
%5 = exp(%4) : f32[4] at [-]
%6 = reshard(%1) : f32[4] at [-]
%7 = reshard(%2) : f32[4] at [-]
%8 = add(%6, %7) : f32[4] at [-]
%9 = reshard(%3) : f32[4] at [-]@host
%10 = exp(%9) : f32[4] at [-]@host
slot "a" = %5
slot "b" = %8
slot "c" = %10
)",
     "forward: %1 copy 0 to 2\n"
     "forward: %4 copy 2 to 7\n"
     "forward: %6 copy 2 to 7\n"
     "forward: %9 copy 0 to 10\n"},
    {"what is copied from the host to be gathered is there when the gathering starts, one ahead "
     "too",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [a]@host
%1 = batch() name="y" dtype=f32 shape=[4] : f32[4] at [a]@host
%2 = batch() name="z" dtype=f32 shape=[4] : f32[4] at [a]@host
%3 = reshard(%0) : f32[4] at [-]
%4 = exp(%3) : f32[4] at [-]
%5 = reshard(%1) : f32[4] at [-]
%6 = exp(%5) : f32[4] at [-]
%7 = reshard(%2) : f32[4] at [-]
%8 = exp(%7) : f32[4] at [-]
slot "a" = %4
slot "b" = %6
slot "c" = %8
)",
     "forward: %1 copy at once\n"
     "forward: %2 all_gather 0 to 3\n"
     "forward: %5 copy 0 to 3\n"
     "forward: %6 all_gather 3 to 7\n"
     "forward: %9 copy 3 to 7\n"
     "forward: %10 all_gather 7 to 11\n"},
    {"what is summed in parts for the host is copied when the sum is there",
     R"(graph placed mesh a=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]
%1 = exp(%0) : f32[4] at [-]+a
%2 = reshard(%1) : f32[4] at [a]@host
%3 = exp(%0) : f32[4] at [-]+a
%4 = reshard(%3) : f32[4] at [a]@host
%5 = exp(%0) : f32[4] at [-]
slot "a" = %2
slot "b" = %4
slot "c" = %5
)",
     "forward: %2 reduce_scatter 2 to 5\n"
     "forward: %3 copy 5 to 8\n"
     "forward: %5 reduce_scatter 5 to 8\n"
     "forward: %6 copy at once\n"},
    {"an accumulator that was copied is no longer there to be summed in place",
     R"(graph placed mesh a=2 mb=2@time
%0 = batch() name="x" dtype=f32 shape=[4,4] : f32[4,4] at [-,-]
%1 = reshard(%0) : f32[4,4] at [mb,-]
%2 = sum(%1) dims=[0] keep=false : f32[4] at [-]+a+mb
%3 = reshard(%2) : f32[4] at [-]+a+mb@host
%4 = reshard(%3) : f32[4] at [-] upd
metric "y" = %4
)",
     "forward: %3 copy 3 to 4\n"
     "update: %1 copy at once\n"
     "update: %2 all_reduce 0 to 3\n"},
    {"an accumulator summed in place starts in the last micro-batch, one that is scattered behind "
     "it",
     R"(graph placed mesh a=2 mb=2@time
%0 = batch() name="x" dtype=f32 shape=[4,4] : f32[4,4] at [-,-]
%1 = reshard(%0) : f32[4,4] at [mb,-]
%2 = sum(%1) dims=[0] keep=false : f32[4] at [-]+a+mb
%3 = exp(%1) : f32[4,4] at [mb,-]
%4 = sum(%3) dims=[0] keep=false : f32[4] at [-]+a+mb
%5 = reshard(%2) : f32[4] at [-] upd
%6 = reshard(%4) : f32[4] at [a] upd
metric "y" = %5
metric "z" = %6
)",
     "update: %1 all_reduce forward 3 to 4\n"
     "update: %3 reduce_scatter 0 to 4\n"},
    {"what Backward sums of Forward starts with Backward, what Update sums of Begin with Update",
     R"(graph placed mesh a=2 mb=2@time
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]
%1 = reshard(%0) : f32[4] at [mb]
%2 = exp(%1) : f32[4] at [mb]+a
%3 = reshard(%2) : f32[4] at [mb] bwd
%4 = sum(%0) dims=[0] keep=false : f32[] at []+a
%5 = mul(%3, %4) : f32[4] at [mb]+a bwd
%6 = sum(%5) dims=[0] keep=false : f32[] at []+a+mb bwd
%7 = reshard(%4) : f32[] at [] upd
metric "y" = %7
slot "z" = %6
)",
     "backward: %1 all_reduce 0 to 3\n"
     "update: %1 all_reduce 0 to 3\n"},
    {"a message is there when it has been received, not from the begin",
     R"(graph placed mesh a=2 mb=2@time
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-] stage=0
%1 = reshard(%0) : f32[4] at [mb] stage=0
%2 = exp(%1) : f32[4] at [mb] stage=0
%3 = abs(%2) : f32[4] at [mb]+a stage=0
%4 = exp(%2) : f32[4] at [mb] stage=1
%5 = reshard(%3) : f32[4] at [mb] stage=1
%6 = add(%4, %5) : f32[4] at [mb] stage=1
%7 = sum(%6) dims=[0] keep=false : f32[] at []+mb stage=1
%8 = reshard(%7) : f32[] at [] stage=1
metric "y" = %8
)",
     "forward: %3 all_reduce 3 to 4\n",
     {2, 1, 2},
     "1f1b",
     1},
    {"a permute is there when a gathering that starts ahead reads it",
     R"(graph placed mesh a=2 b=2
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [b.a]
%1 = exp(%0) : f32[4] at [b.a]
%2 = reshard(%1) : f32[4] at [a.b]
%3 = exp(%1) : f32[4] at [b.a]
%4 = exp(%3) : f32[4] at [b.a]
%5 = reshard(%2) : f32[4] at [-]
metric "y" = %5
slot "z" = %4
)",
     "forward: %2 permute 2 to 3\n"
     "forward: %5 all_gather 3 to 6\n"},
    {"where the last regions run in another order, all accumulators are summed behind the loop",
     R"(graph placed mesh a=2 mb=4@time
%0 = batch() name="x" dtype=f32 shape=[4] : f32[4] at [-]
%1 = reshard(%0) : f32[4] at [mb] stage=2
%2 = exp(%1) : f32[4] at [mb] stage=2
%3 = sum(%2) dims=[0] keep=false : f32[] at []+a+mb stage=2
%4 = reshard(%3) : f32[] at [] stage=2
metric "y" = %4
)",
     "update: %1 all_reduce 0 to 2\n",
     {3, 2, 4},
     "zb-v",
     2},
};

/// "3", or "forward 3" in another region than `region`.
std::string when(const Program& program, const Timeline& time, int region, std::int32_t t) {
  const int r = time.region_at(t);
  const std::string name =
      r == region ? "" : program.name_of(program.regions[static_cast<std::size_t>(r)]) + " ";
  return text(name, (t - time.begins[static_cast<std::size_t>(r)]) / 2);
}

std::string when_transfers_run(const Program& program) {
  const Timeline time = overlap(program);
  std::string out;
  for (int r = 0; r < static_cast<int>(program.regions.size()); ++r) {
    const Region& region = program.regions[static_cast<std::size_t>(r)];
    for (NodeId id = 0; id < region.graph.size(); ++id) {
      if (!is_transfer(*region.graph.node(id).op)) continue;
      const Busy& busy = time.of(r, id);
      out += text(program.name_of(region), ": %", id, " ", region.graph.node(id).op->name);
      out += busy.first == busy.last ? " at once\n"
                                     : text(" ", when(program, time, r, busy.first), " to ",
                                            when(program, time, r, busy.last), "\n");
    }
  }
  return out;
}

TEST(Overlap, Cases) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.why);
    const Graph placed = parse_graph(c.graph, find_op);
    PipelineSize size = c.size;
    size.microbatches = placed.mesh().size("mb");
    const Pipeline order(make_schedule(c.schedule, size));
    EXPECT_EQ(when_transfers_run(partition(placed, order, c.stage)), c.out);
  }
}

}  // namespace
}  // namespace tessera
