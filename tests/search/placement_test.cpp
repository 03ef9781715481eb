// Placements of all ops of small steps: the search against all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "machine_line.h"
#include "ops/harness.h"
#include "ops/sharded.h"
#include "repo_file.h"
#include "search/brute_force.h"
#include "search/dominated.h"
#include "search/graph_json.h"
#include "search/random_steps.h"
#include "tessera/base/index.h"
#include "tessera/ops/table.h"
#include "tessera/passes/op_decisions.h"
#include "tessera/search/placement_problem.h"
#include "tessera/search/recursive.h"
#include "tessera/search/solve.h"

namespace tessera {
namespace {

using namespace test;

Strategy on(const std::string& mesh) { return {parse_mesh(mesh)}; }

std::string random_mesh(int axes, std::mt19937& random) {
  std::string out;
  for (int a = 0; a < axes; ++a)
    out += text(out.empty() ? "" : " ", static_cast<char>('a' + a), "=", 2 + random() % 2);
  return out;
}

/// Small values: with the latencies of real links, ranks would share out nothing. On these machines
/// work counts most, or what moves, or nothing much more than the other.
Machine random_machine(std::mt19937& random) {
  constexpr const char* kMachines[] = {
      "core=1GB/s+0us compute=0.5GFLOP/s memory=0.5GB/s",
      "core=1GB/s+0us compute=1GFLOP/s memory=4GB/s",
      "core=1GB/s+0us compute=4GFLOP/s memory=16GB/s",
      "core=1GB/s+0.01us compute=1GFLOP/s memory=2GB/s",
  };
  return parse_machine(kMachines[random() % 4]);
}

/// What other searches cost above the optimum, in percent.
struct Gaps {
  double most = 0, sum = 0;
  int equal = 0, all = 0;
  void add(Cost cost, Cost least) {
    const double gap = least > 0 ? 100 * (cost - least) / least : 0;
    most = std::max(most, gap);
    sum += gap;
    equal += cost == least;
    ++all;
  }
  std::string text() const {
    return tessera::text("equal ", equal, " of ", all, ", mean ", sum / std::max(all, 1),
                         " %, most ", most, " %");
  }
};

// ---- figure 1: ops x axes <= 12, each op of the table

TEST(Placement, SmallStepsEqualAllPlacements) {
  std::mt19937 random(1);
  std::set<std::string_view> ops_met;
  Gaps recursive, propagation;
  long long tried = 0;
  int steps = 0;
  for (const Case& c : all_cases()) {
    if (!is_called(*c.op)) continue;
    SCOPED_TRACE(title(c));
    const int axes = 1 + static_cast<int>(random() % 3);
    const Graph step = step_around(c, 12 / axes, random);
    ASSERT_LE(forward_ops(step) * axes, 12);
    const Strategy strategy = on(random_mesh(axes, random));
    const Machine machine = random_machine(random);
    PlacementProblem problem(step, strategy, machine);
    const Solution found = solve(problem.decisions());
    const BruteForce best = brute_force(problem.decisions());
    tried += best.tried;
    ++steps;
    ASSERT_EQ(found.cost, best.cost);
    ASSERT_EQ(found.bound, best.cost);
    for (NodeId id = 0; id < step.size(); ++id) {
      if (problem.decision_of(id) >= 0) ops_met.insert(step.node(id).op->name);
    }
    recursive.add(solve_recursively(step, problem, {}).cost, best.cost);
    propagation.add(solve_by_propagation(step, strategy, machine, problem).cost, best.cost);
  }
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(!is_called(*op) || ops_met.count(op->name)) << op->name;
  }
  std::printf("%d steps, %zu ops, %lld options tried; gap of dynamic_programming 0.00 %%\n", steps,
              ops_met.size(), tried);
  std::printf("recursive_programming: %s\n", recursive.text().c_str());
  std::printf("sharding_propagation:  %s\n", propagation.text().c_str());
}

// ---- larger steps, against another solver

/// name decisions cost
std::map<std::string, std::pair<int, Cost>> golden_optima() {
  std::map<std::string, std::pair<int, Cost>> out;
  std::ifstream lines(repo_file("tests/search/optima.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int decisions = 0;
    Cost cost = 0;
    if (line.starts_with("#") || !(words >> name >> decisions >> cost)) continue;
    out[name] = {decisions, cost};
  }
  return out;
}

/// Steps of 12 to 40 ops on three axes. TESSERA_DUMP=FOLDER writes the graphs for
/// tools/golden/placements.py, which solves them by integer programming.
TEST(Placement, LargerStepsEqualAnotherSolver) {
  const char* folder = std::getenv("TESSERA_DUMP");
  const auto golden = golden_optima();
  Gaps recursive, propagation;
  std::mt19937 random(2);
  int steps = 0;
  for (const int ops : {12, 16, 20, 24, 28, 32, 36, 40}) {
    for (const char* mesh : {"a=2 b=2 c=2", "a=4 b=2 c=2"}) {
      const std::string name = text("ops", ops, "_", steps++);
      SCOPED_TRACE(name);
      const Graph step = random_step(ops, random);
      const Machine machine = random_machine(random);
      Strategy strategy = on(mesh);
      strategy.batch = {{"a", "b", "c"}};  // each rank feeds its rows
      PlacementProblem problem(step, strategy, machine);
      const DecisionGraph& graph = problem.decisions();
      const Solution found = solve(graph);
      EXPECT_EQ(found.cost, found.bound);
      // For a solver that looks at every pair of options: those left that may be needed.
      if (folder != nullptr) {
        std::ofstream file(text(folder, "/", name, ".json"));
        file << to_json(restricted(graph, undominated(graph, false)));
        continue;
      }
      ASSERT_TRUE(golden.contains(name));
      EXPECT_EQ(golden.at(name).first, graph.size());
      EXPECT_EQ(golden.at(name).second, found.cost);
      recursive.add(solve_recursively(step, problem, {}).cost, found.cost);
      propagation.add(solve_by_propagation(step, strategy, machine, problem).cost, found.cost);
    }
  }
  std::printf("recursive_programming: %s\n", recursive.text().c_str());
  std::printf("sharding_propagation:  %s\n", propagation.text().c_str());
}

// ---- which options there are

/// The same in the words of the op tests, which enumerate on their own.
std::set<std::vector<int>> admitted_choices(const OpDef& op, const Factors& rule,
                                            const Mesh& mesh) {
  std::set<std::vector<int>> out;
  for (const Assignment& assignment : admitted(rule, mesh)) {
    if (is_uneven(rule, assignment, mesh) || shards_nothing(rule, assignment)) continue;
    if (needs_expansion(rule, assignment) && op.expand == nullptr) continue;
    std::vector<int> choices(mesh.axes().size(), -1);
    bool in_order = true;
    for (const auto& [factor, axes] : assignment) {
      std::size_t before = 0;
      for (const std::string& axis : axes) {
        for (std::size_t a = 0; a < mesh.axes().size(); ++a) {
          if (mesh.axes()[a].name != axis) continue;
          in_order = in_order && (axis == axes[0] || a > before);
          before = a;
          choices[a] = factor;
        }
      }
    }
    // A dim has its axes in the order of the mesh: so have the factors that it consists of.
    for (const std::vector<Factors::Dims>* sides : {&rule.ins, &rule.outs}) {
      for (const Factors::Dims& dims : *sides) {
        for (const std::vector<int>& factors : dims) {
          std::vector<std::ptrdiff_t> met;
          for (const int f : factors) {
            for (std::size_t a = 0; a < choices.size(); ++a) {
              if (choices[a] == f) met.push_back(static_cast<std::ptrdiff_t>(a));
            }
          }
          in_order = in_order && std::is_sorted(met.begin(), met.end());
        }
      }
    }
    if (in_order) out.insert(choices);
  }
  return out;
}

TEST(Placement, MenusHaveAllThatIsAdmitted) {
  for (const Case& c : all_cases()) {
    if (!is_called(*c.op)) continue;
    for (const char* mesh : {"a=2", "a=3 b=2", "a=2 b=2"}) {
      SCOPED_TRACE(text(title(c), " on ", mesh));
      Builder builder;
      const Use made = use(builder, c);
      for (std::size_t r = 0; r < made.outs.size(); ++r)
        builder.output(Output::Kind::Metric, text("out", r), made.outs[r]);
      const NodeId id = made.outs[0].id().node;
      const Graph graph = builder.finish();
      const std::size_t ins = graph.node(id).inputs.size(), outs = graph.node(id).results.size();
      Prices prices(on(mesh), {});
      const OpMenu menu = make_menu(
          graph.call(id),
          {std::vector<bool>(ins, false), std::vector<bool>(outs, false), std::vector<bool>(outs)},
          prices);
      std::set<std::vector<int>> offered;
      for (const OpOption& option : menu.options)
        offered.insert(std::vector<int>(option.choices.begin(), option.choices.end()));
      std::set<std::vector<int>> expected =
          admitted_choices(*c.op, graph.factors(id), parse_mesh(mesh));
      std::erase_if(expected, [&](const std::vector<int>& choices) {
        // Sums of bools: there are none.
        const Factors rule = graph.factors(id);
        for (const int f : choices) {
          for (std::size_t r = 0; f >= 0 && r < outs; ++r) {
            if (graph.node(id).type(static_cast<int>(r)).dtype == DType::Bool &&
                rule.reduces(f, static_cast<int>(r)) && rule.monoid(f) == Monoid::Sum)
              return true;
          }
        }
        return false;
      });
      EXPECT_EQ(offered, expected);
    }
  }
}

}  // namespace
}  // namespace tessera
