#include "harness/python/declared.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>

#include "harness/core/needs.hpp"
#include "harness/core/torch_place.hpp"
#include "harness/errors/error.hpp"
#include "harness/python/arrays.hpp"
#include "harness/python/calls.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

py::handle held(PyObject* object) { return py::handle(object); }

py::object python_value(const Params& params, const Parameter& p) {
  switch (p.kind) {
    case Parameter::Kind::integer:
      return py::int_(params.integer(p.name));
    case Parameter::Kind::real:
      return py::float_(params.real(p.name));
    case Parameter::Kind::flag:
      return py::bool_(params.flag(p.name));
    default:
      return py::str(params.text(p.name));
  }
}

// In the order of the fields of attnbench.Shape.
py::tuple tuple_of(const Shape& shape) {
  return py::make_tuple(shape.nq, shape.nk, shape.d, shape.dv, shape.mask.causal, shape.mask.offset,
                        shape.mask.keys < 0 ? shape.nk : std::min(shape.mask.keys, shape.nk),
                        in_float(shape.precision) ? "float32" : "float64");
}

// None as well for a class whose constructor takes no calibration: a check makes 100 000 instances.
py::object calibration_of(const Draw& draw, bool fitted) {
  if (!draw.calibration || !fitted) return py::none();
  return py::make_tuple(copied(draw.calibration->Q), copied(draw.calibration->K), copied(draw.calibration->V));
}

py::object injected_state(const Draw& draw) {
  if (!draw.state) return py::none();
  py::dict state;
  for (const auto& [name, tensor] : *draw.state) state[py::str(name)] = copied<double>(tensor);
  return state;
}

// Vectors with these lengths and this angle, for pairs without vectors.
py::array vector_of(std::span<const double> given, const Pair& pair, bool query) {
  py::array_t<double> vector = vector_of_size<double>(pair.d);
  double* x = vector.mutable_data();
  if (!given.empty()) {
    std::copy(given.begin(), given.end(), x);
    return vector;
  }
  std::fill(x, x + pair.d, 0.0);
  const double q = std::sqrt(pair.q2), along = q > 0 ? pair.qk / q : std::sqrt(pair.k2);
  x[0] = query ? q : along;
  if (!query && pair.d > 1) x[1] = std::sqrt(std::max(0.0, pair.k2 - along * along));
  return vector;
}

}  // namespace

void refuse_bfloat16(const Draw& draw) {
  if (draw.shape.precision != Precision::bf16) return;
  const bool torch = computes_by_torch(draw.params);
  throw Skip(
      fmt::format("{}: its products are {}'s, which --precision bf16 does not round; expected f32 or f64, such as "
                  "--precision f32{}",
                  draw.params.spec(), torch ? "PyTorch" : "Python", torch ? " --dtype bfloat16" : ""));
}

PyObject* Declared::fields(const Shape& shape) { return tuple_of(shape).release().ptr(); }

PyObject* Declared::values(const Params& params) const {
  py::dict all;
  for (const Parameter& p : parameters) all[py::str(p.name)] = python_value(params, p);
  return all.release().ptr();
}

PyObject* Declared::arguments(const Draw& draw) const {
  // 32 bits, the most that NumPy's older generator takes. The seed is the same for float and double, and for any
  // parameters.
  Generator generator = draw.streams.stream("python", text.name, draw.head, draw.replicate);
  const auto seed = static_cast<std::uint32_t>(generator() >> 32);
  return in_python(file, [&] {
    return py::make_tuple(py::reinterpret_steal<py::dict>(values(draw.params)), tuple_of(draw.shape), seed,
                          calibration_of(draw, fitted), injected_state(draw), draw.layer, draw.layers)
        .release()
        .ptr();
  });
}

PyObject* Declared::make(const Draw& draw) const {
  PyObject* const given = arguments(draw);
  return in_python(file,
                   [&] { return held(object).attr("make")(*py::reinterpret_steal<py::tuple>(given)).release().ptr(); });
}

template <class T>
py::tuple Declared::extras(const Head<T>& head, Index keys) const {
  py::tuple arrays(needs.size());
  for (size_t i = 0; i < needs.size(); ++i) {
    const Extra axes = extra_of(needs[i], {});
    const Matrix<double>& whole = head.needed(needs[i].name);
    const auto seen = [&](Extra::Axis axis, Index size) { return axis == Extra::Axis::keys ? keys : size; };
    const Matrix<T> numbers =
        whole.topLeftCorner(seen(axes.rows, whole.rows()), seen(axes.columns, whole.cols())).template cast<T>();
    arrays[i] = copied<T>(numbers);
  }
  return arrays;
}

template py::tuple Declared::extras<float>(const Head<float>&, Index) const;
template py::tuple Declared::extras<double>(const Head<double>&, Index) const;

Matrix<double> Declared::transcription(const Draw& draw, const Head<double>& head, Mask mask) const {
  Matrix<double> out = Matrix<double>::Zero(head.Q.rows(), head.V.cols());
  const Index nk = head.K.rows(), keys = mask.keys < 0 ? nk : std::min(mask.keys, nk);
  if (keys == 0) return out;
  // It is told whether the mask is causal, and no offset: with one query a key it needs none.
  if (mask.causal && (mask.offset != 0 || head.Q.rows() != nk)) return {};
  in_python(file, [&] {
    const auto instance = py::reinterpret_steal<py::object>(make(draw));
    const py::object result = held(object).attr("transcription")(
        instance, py::reinterpret_steal<py::dict>(values(draw.params)), view(head.Q), view(row_block(head.K, 0, keys)),
        view(row_block(head.V, 0, keys)), mask.causal, *extras<double>(head, keys));
    copy_result<double>(result, out, "transcription(q, k, v, causal)");
  });
  return out;
}

Claims Declared::claims(Claims known, const Params& params, const Shape& shape) const {
  return in_python(file, [&] {
    const py::dict said = held(object).attr("claims")(py::reinterpret_steal<py::dict>(values(params)), tuple_of(shape));
    // line: of `check`. A claim that the class makes itself is no longer implied by its features.
    const auto take = [&](const char* name, auto& claim, const char* line = "") {
      if (!said.contains(name)) return;
      claim = said[name].template cast<std::remove_reference_t<decltype(claim)>>();
      known.implied.erase(line);
    };
    take("row_stochastic", known.row_stochastic, "row-sums");
    take("non_negative", known.non_negative, "non-negative");
    take("permutation_equivariant", known.permutation_equivariant);
    take("equal_keys", known.equal_keys);
    take("causal_exact", known.causal_exact);
    take("linear_in_v", known.linear_in_V);
    take("scales_with_v", known.scales_with_V);
    take("no_attention_matrix", known.no_attention_matrix);
    take("rank_at_most", known.rank_at_most, "rank");
    take("exact_when", known.exact_when);
    take("no_extremes", known.no_extremes);
    known.mixes_heads = mixes_heads;
    if (said.contains("normaliser")) {
      const auto name = said["normaliser"].cast<std::string>();
      known.normaliser = name == "none" ? Normaliser::none : name == "l2" ? Normaliser::l2 : Normaliser::row_sums;
    }
    if (known.normaliser != Normaliser::row_sums && !said.contains("row_stochastic")) {
      known.row_stochastic = false;
      known.implied.erase("row-sums");
    }
    if (known.no_form.empty()) take("no_form", known.no_form);
    return known;
  });
}

double Declared::memory(const Params& params, const Shape& shape, double otherwise) const {
  return in_python(file, [&] {
    const py::object said =
        held(object).attr("memory")(py::reinterpret_steal<py::dict>(values(params)), tuple_of(shape));
    return said.is_none() ? otherwise : said.cast<double>();
  });
}

Work Declared::cost(const Params& params, const Shape& shape, Work otherwise) const {
  return in_python(file, [&] {
    const py::object said = held(object).attr("cost")(py::reinterpret_steal<py::dict>(values(params)), tuple_of(shape));
    if (said.is_none()) return otherwise;
    const auto [least, most, exps] = said.cast<std::tuple<double, double, double>>();
    return Work{.flops = most, .exps = exps};
  });
}

double Declared::least_flops(const Params& params, const Shape& shape) const {
  return in_python(file, [&] {
    const py::tuple said = held(object).attr("cost")(py::reinterpret_steal<py::dict>(values(params)), tuple_of(shape));
    return said[0].cast<double>();
  });
}

double Declared::decoder_bytes(const Params& params, const Shape& shape) const {
  return in_python(file, [&] {
    return held(object)
        .attr("decoder_bytes")(py::reinterpret_steal<py::dict>(values(params)), tuple_of(shape))
        .cast<double>();
  });
}

std::vector<Golden> Declared::golden(const Params& params) const {
  return in_python(file, [&] {
    std::vector<Golden> all;
    const py::list given = held(object).attr("golden")(py::reinterpret_steal<py::dict>(values(params)));
    for (const py::handle one : given) {
      const auto matrix = [&](const char* name) {
        const auto numbers = one.attr(name).cast<py::array_t<double, py::array::c_style | py::array::forcecast>>();
        return Matrix<double>(Eigen::Map<const Matrix<double>>(numbers.data(), numbers.shape(0), numbers.shape(1)));
      };
      Golden golden{.name = one.attr("name").cast<std::string>(),
                    .head = {matrix("q"), matrix("k"), matrix("v")},
                    .mask = {.causal = one.attr("causal").cast<bool>()},
                    .out = matrix("out"),
                    .spacing = one.attr("spacing").cast<double>()};
      if (golden.mask.causal) golden.mask.offset = golden.head.K.rows() - golden.head.Q.rows();
      const py::dict arrays = one.attr("needed");
      for (const Need& need : needs) {
        const auto numbers =
            arrays[py::str(need.name)].cast<py::array_t<double, py::array::c_style | py::array::forcecast>>();
        golden.head.extra[need.name] =
            extra_of(need, Eigen::Map<const Matrix<double>>(numbers.data(), numbers.shape(0), numbers.shape(1)));
      }
      all.push_back(std::move(golden));
    }
    return all;
  });
}

std::optional<KernelTheory> Declared::theory(const Params& params) const {
  if (!has_theory) return std::nullopt;
  const auto ask = [this, params](const char* what, const Pair& pair) {
    return in_python(file, [&] {
      return held(object)
          .attr(what)(py::reinterpret_steal<py::dict>(values(params)), vector_of(pair.q, pair, true),
                      vector_of(pair.k, pair, false))
          .cast<double>();
    });
  };
  KernelTheory theory{.target = in_python(file, [&] { return held(object).attr("target").cast<std::string>(); }),
                      .mean = [ask](const Pair& pair) { return ask("kernel_mean", pair); }};
  if (has_variance) theory.variance = [ask](const Pair& pair) { return ask("kernel_variance", pair); };
  return theory;
}

PyObject* Declared::attend(PyObject* instance) const {
  return in_python(file, [&] { return held(object).attr("attend")(held(instance)).release().ptr(); });
}

PyObject* Declared::decoder(PyObject* instance, const Shape& shape) const {
  return in_python(file, [&] { return held(object).attr("decoder")(held(instance), tuple_of(shape)).release().ptr(); });
}

Tensors Declared::state_of(PyObject* instance) const {
  return in_python(file, [&] {
    Tensors tensors;
    const py::dict arrays = held(object).attr("state")(held(instance));
    for (const auto& [name, array] : arrays) {
      const auto numbers = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(array);
      if (!numbers) throw py::error_already_set();
      tensors[name.cast<std::string>()] =
          Eigen::Map<const Matrix<double>>(numbers.data(), numbers.shape(0), numbers.shape(1));
    }
    return tensors;
  });
}

}  // namespace attnbench
