#include "harness/python/in_process.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>

#include "harness/claims/print.hpp"
#include "harness/core/scaling.hpp"
#include "harness/machine/resources.hpp"
#include "harness/measures/attend_heads.hpp"
#include "harness/python/arrays.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

// One head of an array of shape [batch, heads, n, d].
template <class T>
In<T> head_of(const Array<T>& X, Index b, Index h) {
  return {X.data(b, h, 0, 0), X.shape(2), X.shape(3), X.shape(3)};
}

template <class T>
Array<T> array_of(const py::array& X, const char* name) {
  const auto array = Array<T>::ensure(X);
  if (!array) throw py::error_already_set();
  if (array.ndim() != 4)
    throw Misuse(
        fmt::format("{} has {} axes; expected [n, d], [heads, n, d] or [batch, heads, n, d]", name, array.ndim()));
  return array;
}

// q, k and v of all heads. If k has fewer heads than q, equally many query heads share each of them.
template <class T>
struct Heads {
  Heads(const py::array& q, const py::array& k, const py::array& v, double scale)
      : Q(array_of<T>(q, "q")), K(array_of<T>(k, "k")), V(array_of<T>(v, "v")), factor(scale) {
    const auto refuse = [](const std::string& what) { throw Misuse(what); };
    if (K.shape(0) != Q.shape(0) || V.shape(0) != Q.shape(0)) refuse("q, k and v have several numbers of batches");
    if (K.shape(1) != V.shape(1) || K.shape(1) == 0 || Q.shape(1) % K.shape(1) != 0)
      refuse(
          fmt::format("{} heads of queries, {} of keys and {} of values; expected as many keys as values, and as "
                      "many queries or a multiple",
                      Q.shape(1), K.shape(1), V.shape(1)));
    if (K.shape(2) != V.shape(2)) refuse(fmt::format("{} keys and {} values", K.shape(2), V.shape(2)));
    if (Q.shape(3) != K.shape(3)) refuse(fmt::format("q has d = {} and k has d = {}", Q.shape(3), K.shape(3)));
    for (py::ssize_t axis = 0; axis < 4; ++axis)
      if (Q.shape(axis) == 0 || V.shape(axis) == 0 || K.shape(axis) == 0) refuse("an axis of q, k or v is empty");
  }

  Index batches() const { return Q.shape(0); }
  Index heads() const { return Q.shape(1); }
  template <class Wanted>
  HeadData<Wanted> head(Index b, Index h) const {
    const Index shared = h / (Q.shape(1) / K.shape(1));
    HeadData<Wanted> made =
        scaled_head<Wanted>(Head<T>{head_of(Q, b, h), head_of(K, b, shared), head_of(V, b, shared)}, factor);
    for (const auto& [name, array] : extra)
      made.extra[name].numbers = head_of(array, std::min(b, array.shape(0) - 1), h / (Q.shape(1) / array.shape(1)));
    return made;
  }

  // Further inputs: of all heads, or of those of q or k; of all batches, or of each.
  void add_extra(const std::map<std::string, py::array>& given) {
    for (const auto& [name, numbers] : given) {
      Array<double> array = array_of<double>(numbers, name.c_str());
      const Index own_batches = array.shape(0), own_heads = array.shape(1);
      if ((own_batches != 1 && own_batches != batches()) ||
          (own_heads != 1 && own_heads != heads() && own_heads != K.shape(1)))
        throw Misuse(
            fmt::format("extra '{}' is of {} batches and {} heads; expected [rows, columns] for all heads, or "
                        "the leading axes of q ({} batches, {} heads)",
                        name, own_batches, own_heads, batches(), heads()));
      extra.emplace(name, std::move(array));
    }
  }

  Array<T> Q, K, V;
  std::map<std::string, Array<double>> extra;
  double factor;
};

double scale_of(const py::array& q, bool scaled) {
  if (scaled || q.ndim() == 0) return 1;
  return edge_scale(q.shape(q.ndim() - 1));
}

struct Wanted {
  std::string spec, what;  // what: "out", "attention" or "kernel"
  bool causal;
  std::uint64_t seed;
  std::vector<Tensors> states = {};  // none, one for all heads, or one for each
  LayerPlace place = {};
};

// out [b, h, nq, dv], attention and kernel [b, h, nq, nk].
template <class T>
py::array attend(const Wanted& wanted, const Heads<T>& given, const std::optional<Heads<double>>& calibration,
                 std::vector<Tensors>* drawn) {
  const Params params("methods", wanted.spec);
  const Index nq = given.Q.shape(2), nk = given.K.shape(2), dv = given.V.shape(3);
  const Index columns = wanted.what == "out" ? dv : nk;
  py::array_t<T> result({given.batches(), given.heads(), nq, columns});
  const std::span<T> numbers(result.mutable_data(), static_cast<size_t>(result.size()));
  const py::gil_scoped_release released;
  const GivenHeads<T> heads{.batches = given.batches(),
                            .heads = given.heads(),
                            .key_heads = given.K.shape(1),
                            .nq = nq,
                            .nk = nk,
                            .d = given.Q.shape(3),
                            .dv = dv,
                            .measured = [&](Index b, Index h) { return given.template head<T>(b, h); },
                            .calibration =
                                [&](Index b, Index h) {
                                  if (!calibration) return given.template head<double>(b, h);
                                  return calibration->template head<double>(std::min(b, calibration->batches() - 1), h);
                                }};
  AttendResults<T> results{.states = drawn};
  (wanted.what == "out" ? results.out : wanted.what == "attention" ? results.attention : results.kernel) = numbers;
  Context context(allowed_cores());
  attend_heads<T>({.method = params,
                   .causal = wanted.causal,
                   .seed = wanted.seed,
                   .states = wanted.states,
                   .place = wanted.place,
                   .giver = "extra",
                   .advice = [](const Need& need) { return fmt::format("give extra={{\"{}\": array}}", need.name); }},
                  heads, context, results);
  return result;
}

using StateArrays = std::map<std::string, Array<double>>;
using ExtraArrays = std::map<std::string, py::array>;

// An array that the method does not need would be ignored, and the caller would think that it has an effect.
void refuse_unknown_extras(const std::string& spec, const ExtraArrays& extra) {
  const std::vector<Need> needs = needs_of(Params("methods", spec));
  for (const auto& [name, array] : extra) {
    if (std::any_of(needs.begin(), needs.end(), [&, &name = name](const Need& need) { return need.name == name; }))
      continue;
    std::string known;
    for (const Need& need : needs)
      known += fmt::format("{}'{}' ({})", known.empty() ? "" : ", ", need.name, words_of(need));
    throw Misuse(fmt::format("extra: {} does not need '{}'; {}", spec, name,
                             known.empty() ? "it needs nothing beside q, k and v" : "it needs " + known));
  }
}

// Arrays of two axes are of all heads; the first of three axes is the head.
std::vector<Tensors> states_of(const StateArrays& arrays) {
  py::ssize_t heads = 1;
  for (const auto& [name, array] : arrays) {
    if (array.ndim() != 2 && array.ndim() != 3)
      throw Misuse(fmt::format("state: '{}' has {} axes; expected [rows, columns] or [heads, rows, columns]", name,
                               array.ndim()));
    if (array.ndim() == 2) continue;
    if (heads != 1 && array.shape(0) != heads)
      throw Misuse(fmt::format("state: '{}' is of {} heads and another array of {}", name, array.shape(0), heads));
    heads = array.shape(0);
  }
  std::vector<Tensors> states(static_cast<size_t>(heads));
  for (const auto& [name, array] : arrays) {
    const py::ssize_t rows = array.shape(array.ndim() - 2), columns = array.shape(array.ndim() - 1);
    for (py::ssize_t h = 0; h < heads; ++h)
      states[static_cast<size_t>(h)][name] =
          Eigen::Map<const Matrix<double>>(array.data() + (array.ndim() == 3 ? h * rows * columns : 0), rows, columns);
  }
  return states;
}

py::array attend_arrays(const std::string& spec, const std::string& what, const py::array& q, const py::array& k,
                        const py::array& v, bool causal, std::uint64_t seed, bool scaled,
                        const std::optional<std::vector<py::array>>& calibration,
                        const std::optional<StateArrays>& state, const ExtraArrays& extra, LayerPlace place,
                        std::vector<Tensors>* drawn) {
  refuse_unknown_extras(spec, extra);
  Wanted wanted{.spec = spec, .what = what, .causal = causal, .seed = seed, .place = place};
  if (state) wanted.states = states_of(*state);
  const double scale = scale_of(q, scaled);
  std::optional<Heads<double>> learnt;
  if (calibration) learnt.emplace(calibration->at(0), calibration->at(1), calibration->at(2), scale);
  if (learnt && (learnt->heads() != q.shape(1) || learnt->Q.shape(3) != q.shape(3)))
    throw Misuse(fmt::format("calibration: {} heads with d = {}; expected {} heads with d = {} as in q",
                             learnt->heads(), learnt->Q.shape(3), q.shape(1), q.shape(3)));
  const auto attend_in = [&](auto heads) {
    heads.add_extra(extra);
    return attend(wanted, heads, learnt, drawn);
  };
  try {
    if (q.dtype().is(py::dtype::of<float>())) return attend_in(Heads<float>(q, k, v, scale));
    return attend_in(Heads<double>(q, k, v, scale));
  } catch (const Skip& e) {
    throw Misuse(e.what());
  }
}

// Returns by name the tensors that the heads of the first batch drew and learnt: a list of one array a head.
py::dict drawn_state(const std::string& spec, const py::array& q, const py::array& k, const py::array& v, bool causal,
                     std::uint64_t seed, bool scaled, const std::optional<std::vector<py::array>>& calibration,
                     const ExtraArrays& extra) {
  std::vector<Tensors> drawn;
  attend_arrays(spec, "out", q, k, v, causal, seed, scaled, calibration, std::nullopt, extra, {}, &drawn);
  py::dict all;
  for (const auto& [name, first] : drawn[0]) {
    py::list arrays;
    for (const Tensors& head : drawn) arrays.append(copied<double>(head.at(name)));
    all[py::str(name)] = arrays;
  }
  return all;
}

// Closed forms for pairs (q_p, k_p), p x d each: the target, the means, the variances (None if unknown), and whether
// the means are exact. Returns None if no theory is known.
py::object theory_of(const std::string& spec, const Array<double>& q, const Array<double>& k) {
  if (q.ndim() != 2 || k.ndim() != 2 || q.shape(0) != k.shape(0) || q.shape(1) != k.shape(1))
    throw Misuse("theory: expected q and k of one shape [pairs, d]");
  const Params params("methods", spec);
  const Index pairs = q.shape(0), d = q.shape(1);
  const auto theory =
      find<MethodEntry>(params.name()).theory(params, {.nq = pairs, .nk = pairs, .d = d, .dv = 1}, nullptr);
  if (!theory) return py::none();
  auto mean = vector_of_size<double>(pairs), variance = vector_of_size<double>(pairs);
  for (Index p = 0; p < pairs; ++p) {
    const auto columns = static_cast<size_t>(d);
    const Pair pair = pair_of({q.data(p, 0), columns}, {k.data(p, 0), columns});
    mean.mutable_at(p) = theory->mean(pair);
    if (theory->variance) variance.mutable_at(p) = theory->variance(pair);
  }
  return py::make_tuple(theory->target, mean, theory->variance ? py::object(variance) : py::none(), theory->exact);
}

// The report of `attnbench check`, as JSON and as text.
std::pair<std::string, std::string> checked(const std::vector<std::string>& specs, std::uint64_t seed,
                                            double error_rate, int threads) {
  const py::gil_scoped_release released;
  if (!(error_rate > 0 && error_rate < 1))
    throw Misuse(fmt::format("error_rate = {}: expected a number between 0 and 1", error_rate));
  if (threads < 1) throw Misuse(fmt::format("threads = {}: expected at least 1", threads));
  const auto start = std::chrono::steady_clock::now();
  std::vector<Subject> subjects;
  for (const auto& spec : specs) {
    subjects.push_back(subject_of(Params("methods", spec)));
    probes_of(subjects.back(), seed);  // refuses a spec that cannot be drawn
  }
  const Report report =
      check(subjects, {.seed = seed, .error_rate = error_rate, .threads = threads, .asked_budget = true});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::string text;
  for (const SubjectReport& subject : report.subjects) text += text_of(subject) + "\n";
  return {json_of(report, seconds), text + summary_of(report, seconds)};
}

py::dict described(const std::string& plural, const std::string& spec_text) {
  const Params params(plural, spec_text);
  const Description& text = catalogue(plural).description(params.name());
  py::dict entry;
  entry["kind"] = catalogue(plural).kind();
  entry["name"] = text.name;
  entry["spec"] = params.spec();
  entry["summary"] = text.summary;
  entry["formula"] = text.formula;
  entry["reference"] = text.reference;
  entry["cost"] = text.cost;
  entry["departure"] = text.departure;
  py::dict parameters;
  for (const auto& [name, value] : params.values()) parameters[py::str(name)] = value;
  entry["parameters"] = parameters;
  return entry;
}

py::dict summaries(const std::string& plural) {
  if (!catalogues().contains(plural) || plural == "commands") {
    std::vector<std::string> known;
    for (const auto& [name, entries] : catalogues())
      if (name != "commands") known.push_back(name);
    throw Misuse("list: unknown kind '" + plural + "'" + nearest_names(plural, known));
  }
  py::dict all;
  for (const auto& name : catalogue(plural).names()) all[py::str(name)] = catalogue(plural).description(name).summary;
  return all;
}

}  // namespace

void add_functions(py::module_& module) {
  module.def(
      "attend",
      [](const std::string& spec, const std::string& what, const py::array& q, const py::array& k, const py::array& v,
         bool causal, std::uint64_t seed, bool scaled, const std::optional<std::vector<py::array>>& calibration,
         const std::optional<StateArrays>& state, const ExtraArrays& extra, const std::pair<Index, Index>& place) {
        return attend_arrays(spec, what, q, k, v, causal, seed, scaled, calibration, state, extra,
                             {.layer = place.first, .layers = place.second}, nullptr);
      });
  module.def("state", drawn_state);
  module.def("theory", theory_of);
  module.def("check", checked);
  module.def("describe", described);
  module.def("summaries", summaries);
  module.def("kinds", [](const std::string& name) {
    std::vector<std::string> plurals;
    for (const auto& [plural, entries] : catalogues())
      if (plural != "commands" && entries->has(name)) plurals.push_back(plural);
    return plurals;
  });
  module.def("fitted", [](const std::string& spec) {
    const Params params("methods", spec);
    return find<MethodEntry>(params.name()).fitted(params);
  });
}

}  // namespace attnbench
