// A class with attend(self, q, k, v, causal): each call of attend is one call of the class's method, on views of the
// same memory.
//
// It has no second path to its matrix, unless it has a kernel or features. Rows by attend with V = I would only repeat
// attend at n times the cost, and up to n = 4096 that is how matrices are read anyway.
#include <fmt/format.h>

#include <array>

#include "harness/core/all_heads.hpp"
#include "harness/core/torch_place.hpp"
#include "harness/machine/counted_calls.hpp"
#include "harness/python/abilities.hpp"
#include "harness/python/arrays.hpp"
#include "harness/python/calls.hpp"
#include "harness/python/entries.hpp"
#include "harness/python/handing.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

// The arguments of attend, as PyObject_Vectorcall takes them from the second on.
struct Arguments {
  std::vector<PyObject*> all;
  size_t count;
};
Arguments arguments_of(const Declared& declared, const py::object& q, const py::object& k, const py::object& v,
                       bool causal, const py::tuple& extras) {
  std::vector<PyObject*> all{nullptr, q.ptr(), k.ptr(), v.ptr()};
  if (declared.takes_causal) all.push_back(causal ? Py_True : Py_False);
  for (const py::handle extra : extras) all.push_back(extra.ptr());
  return {all, (all.size() - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET};
}

// One instance of a class whose attend takes the heads as the first axis of its arrays.
template <class T>
class PythonHeads final : public AllHeads<T> {
 public:
  // draws: the arguments of each head's draw.
  PythonHeads(DeclaredClass declared, const std::vector<PyObject*>& draws, Index key_heads)
      : declared_(std::move(declared)) {
    in_python(declared_->file, [&] {
      py::list all;
      for (PyObject* const one : draws) all.append(py::handle(one));
      attend_ = py::handle(declared_->object).attr("attend_all")(all, key_heads).release().ptr();
      on_device_ = py::handle(attend_).attr("on_device").cast<bool>();
      trains_ = py::handle(attend_).attr("trains").cast<bool>();
    });
  }
  PythonHeads(const PythonHeads&) = delete;
  PythonHeads& operator=(const PythonHeads&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): only an interpreter that has ended throws, and then the process ends
  ~PythonHeads() override {
    const py::gil_scoped_acquire taken;
    Py_XDECREF(attend_);
  }

  void attend(std::span<const HeadData<T>> heads, Mask mask, Context&, std::span<Matrix<T>> outputs) const override {
    const Index keys = keys_of(heads, mask);
    if (keys == 0) {
      for (Matrix<T>& out : outputs) out.setZero();
      return;
    }
    in_python(declared_->file, [&] {
      Handing handing;
      const auto [q, k, v] = stacked(heads, keys);
      const py::tuple extras = stacked_extras(heads, keys);
      const Arguments arguments = arguments_of(*declared_, q, k, v, mask.causal, extras);
      handing.over();
      const auto result = py::reinterpret_steal<py::object>(
          PyObject_Vectorcall(attend_, arguments.all.data() + 1, arguments.count, nullptr));
      handing.back();
      if (!result) throw py::error_already_set();
      leave_if_forked();
      for (size_t h = 0; h < outputs.size(); ++h)
        copy_result<T>(py::object(result[py::int_(h)]), outputs[h], "one head of attend(q, k, v, causal)");
      handing.time_empty_call(arguments.all.data() + 1, arguments.count);
    });
  }

  std::vector<Matrix<double>> transcription(std::span<const HeadData<double>> heads, Mask mask) const override {
    if (!declared_->transcribes) return {};
    std::vector<Matrix<double>> outputs;
    in_python(declared_->file, [&] {
      const Index keys = heads[0].K.rows();
      const auto [q, k, v] = stacked<double>(heads, keys);
      const py::object all =
          py::handle(attend_).attr("transcription")(q, k, v, mask.causal, *stacked_extras<double>(heads, keys));
      for (size_t h = 0; h < heads.size(); ++h) {
        outputs.emplace_back(heads[h].Q.rows(), heads[h].V.cols());
        copy_result<double>(py::object(all[py::int_(h)]), outputs.back(), "one head of transcription(q, k, v, causal)");
      }
    });
    return outputs;
  }

  std::optional<double> seconds_on_device(std::span<const HeadData<T>> heads, Mask mask, Index calls) const override {
    const Index keys = keys_of(heads, mask);
    if (!on_device_ || keys == 0) return std::nullopt;
    return in_python(declared_->file, [&] {
      Handing handing;
      const auto [q, k, v] = stacked(heads, keys);
      const py::tuple extras = stacked_extras(heads, keys);
      handing.over();
      const auto seconds = py::handle(attend_).attr("seconds");
      const double one =
          (declared_->takes_causal ? seconds(calls, q, k, v, mask.causal, *extras) : seconds(calls, q, k, v, *extras))
              .template cast<double>();
      handing.back();
      return one;
    });
  }

  std::optional<PassSeconds> training_step(std::span<const HeadData<T>> heads, std::span<const Matrix<T>> G, Mask mask,
                                           Index calls) const override {
    const Index keys = keys_of(heads, mask);
    if (!trains_ || keys == 0) return std::nullopt;
    return in_python(declared_->file, [&] {
      Handing handing;
      const auto [q, k, v] = stacked(heads, keys);
      py::list of_heads;
      for (const Matrix<T>& one : G) of_heads.append(view<T>(In<T>(one)));
      const py::object g = py::module_::import("numpy").attr("stack")(of_heads);
      const py::tuple extras = stacked_extras(heads, keys);
      handing.over();
      const py::tuple both = py::handle(attend_).attr("training_step")(calls, q, k, v, mask.causal, g, *extras);
      handing.back();
      return PassSeconds{both[0].template cast<double>(), both[1].template cast<double>()};
    });
  }

 private:
  static Index keys_of(std::span<const HeadData<T>> heads, Mask mask) {
    const Index nk = heads[0].K.rows();
    return mask.keys < 0 ? nk : std::min(mask.keys, nk);
  }

  // Q, K and V of all heads, as far as there are keys.
  template <class U>
  static std::array<py::object, 3> stacked(std::span<const HeadData<U>> heads, Index keys) {
    return {stacked(heads, &HeadData<U>::Q, heads[0].Q.rows()), stacked(heads, &HeadData<U>::K, keys),
            stacked(heads, &HeadData<U>::V, keys)};
  }

  // The first rows of a matrix of each head, heads x rows x columns.
  template <class U>
  static py::array_t<U> stacked(std::span<const HeadData<U>> heads, Matrix<U> HeadData<U>::*part, Index rows) {
    const Index columns = (heads[0].*part).cols();
    py::array_t<U> all({static_cast<Index>(heads.size()), rows, columns});
    for (size_t h = 0; h < heads.size(); ++h)
      Eigen::Map<Matrix<U>>(all.mutable_data(static_cast<Index>(h), 0, 0), rows, columns) =
          (heads[h].*part).topRows(rows);
    py::detail::array_proxy(all.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return all;
  }

  // The further inputs, heads x rows x columns each.
  template <class U>
  py::tuple stacked_extras(std::span<const HeadData<U>> heads, Index keys) const {
    std::vector<py::tuple> of_heads;
    for (const HeadData<U>& head : heads) of_heads.push_back(declared_->template extras<U>(head.view(), keys));
    py::tuple all(declared_->needs.size());
    for (size_t i = 0; i < all.size(); ++i) {
      py::list arrays;
      for (const py::tuple& of_head : of_heads) arrays.append(of_head[i]);
      all[i] = py::module_::import("numpy").attr("stack")(arrays);
    }
    return all;
  }

  DeclaredClass declared_;
  PyObject* attend_ = nullptr;
  bool on_device_ = false, trains_ = false;
};

template <class T>
class PythonMethod final : public Approximation<T>, public Joinable<T> {
 public:
  PythonMethod(DeclaredClass declared, const Draw& draw, std::unique_ptr<Approximation<T>> by_features)
      : declared_(std::move(declared)),
        by_features_(std::move(by_features)),
        normalised_(declared_->claims({}, draw.params, draw.shape).normaliser == Normaliser::row_sums),
        instance_(declared_->make(draw)) {
    attend_ = declared_->attend(instance_);
    if (declared_->batched) draw_ = declared_->arguments(draw);
    if (declared_->gives_kernel) kernel_ = python_kernel<T>(declared_, instance_);
    if (declared_->differentiates) gradients_ = python_gradients<T>(declared_, instance_, *this);
  }
  PythonMethod(const PythonMethod&) = delete;
  PythonMethod& operator=(const PythonMethod&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): only an interpreter that has ended throws, and then the process ends
  ~PythonMethod() override {
    const py::gil_scoped_acquire taken;
    for (PyObject* object : {attend_, draw_, instance_}) Py_XDECREF(object);
  }

  void attend(const Head<T>& head, Mask mask, Context&, Out<T> out) const override {
    const Index nk = head.K.rows(), keys = mask.keys < 0 ? nk : std::min(mask.keys, nk);
    if (keys == 0) return void(out.setZero());
    in_python(declared_->file, [&] {
      Handing handing;
      const py::object q = view(head.Q), k = view(row_block(head.K, 0, keys)), v = view(row_block(head.V, 0, keys));
      const py::tuple extras = declared_->template extras<T>(head, keys);
      const Arguments arguments = arguments_of(*declared_, q, k, v, mask.causal, extras);
      if (counting_calls()) return count_call(arguments, out);
      handing.over();
      auto result = py::reinterpret_steal<py::object>(
          PyObject_Vectorcall(attend_, arguments.all.data() + 1, arguments.count, nullptr));
      handing.back();
      if (!result) throw py::error_already_set();
      leave_if_forked();
      copy_result(result, out, declared_->takes_causal ? "attend(q, k, v, causal)" : "attend(q, k, v)");
      result.release().dec_ref();
      handing.time_empty_call(arguments.all.data() + 1, arguments.count);
      require_released(q, "attend", "q");
      require_released(k, "attend", "k");
      require_released(v, "attend", "v");
    });
  }

  Tensors state() const override { return declared_->state_of(instance_); }
  const Kernel<T>* kernel() const override {
    if (kernel_) return kernel_.get();
    return by_features_ ? by_features_->kernel() : nullptr;
  }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    if (!declared_->decodes) return nullptr;
    Shape own = shape;
    own.precision = std::is_same_v<T, float> ? Precision::f32 : Precision::f64;
    return python_decoder<T>(declared_, instance_, own);
  }
  const Differentiable<T>* differentiable() const override { return gradients_.get(); }
  std::unique_ptr<AllHeads<T>> joined(std::span<const std::unique_ptr<Approximation<T>>> instances,
                                      Index key_heads) const override {
    if (!declared_->batched) return nullptr;
    std::vector<PyObject*> draws;
    for (const auto& one : instances) {
      const auto* const same = dynamic_cast<const PythonMethod*>(one.get());
      if (!same || same->declared_ != declared_ || !has_parameters_of(*same)) return nullptr;
      draws.push_back(same->draw_);
    }
    return std::make_unique<PythonHeads<T>>(declared_, draws, key_heads);
  }
  // The engine's matrix is divided by its row sums.
  const Factored<T>* factored() const override {
    return by_features_ && normalised_ ? by_features_->factored() : nullptr;
  }
  const Rows<T>* rows() const override { return by_features_ && normalised_ ? by_features_->rows() : nullptr; }

 private:
  void count_call(const Arguments& arguments, Out<T> out) const {
    py::list given;
    for (size_t i = 1; i < arguments.all.size(); ++i) given.append(py::handle(arguments.all[i]));
    const py::tuple counted = py::handle(declared_->object).attr("counted")(py::handle(attend_), *py::tuple(given));
    copy_result(py::object(counted[0]), out, "attend(q, k, v)");
    tell_counted({.least = {.flops = counted[1].template cast<double>(), .exps = counted[3].template cast<double>()},
                  .most_flops = counted[2].template cast<double>()});
  }

  bool has_parameters_of(const PythonMethod& other) const {
    return in_python(declared_->file, [&] {
      return py::object(py::handle(draw_)[py::int_(0)]).equal(py::object(py::handle(other.draw_)[py::int_(0)]));
    });
  }

  DeclaredClass declared_;
  std::unique_ptr<Approximation<T>> by_features_;  // null: the class has no features
  bool normalised_;                                // attend divides by the kernel's row sums
  PyObject* instance_;
  PyObject* attend_ = nullptr;
  PyObject* draw_ = nullptr;  // what it was drawn from, if heads can be joined
  std::unique_ptr<Kernel<T>> kernel_;
  std::unique_ptr<Differentiable<T>> gradients_;
};

// The linear attention engine's instance for these features.
template <class T>
std::unique_ptr<Approximation<T>> linear_attention(const Declared& declared, const Draw& draw) {
  const Params params = linear_params(declared, draw.params);
  const auto& engine = find<MethodEntry>("linear");
  if constexpr (std::is_same_v<T, float>)
    return engine.f32(draw.with(params));
  else
    return engine.f64(draw.with(params));
}

template <class T>
MakeApproximation<T> maker(const DeclaredClass& declared) {
  return [declared](const Draw& given) -> std::unique_ptr<Approximation<T>> {
    refuse_bfloat16(given);
    constexpr Precision own = std::is_same_v<T, float> ? Precision::f32 : Precision::f64;
    // A cell in float draws in double to see what float costs it: that instance has no coarser type of its own.
    const bool reference = own == Precision::f64 && given.shape.precision == Precision::f32;
    const Params params = reference ? in_precision_of_cell(given.params) : given.params;
    Draw draw = given.with(params);
    draw.shape.precision = own;
    auto by_features = declared->maps ? linear_attention<T>(*declared, draw) : nullptr;
    if (!declared->attends) return by_features;
    return std::make_unique<PythonMethod<T>>(declared, draw, std::move(by_features));
  };
}

// Why attend cannot be called for this shape; empty if it can.
std::string no_form_of(const Declared& declared, const Shape& shape) {
  const Mask& mask = shape.mask;
  if (!mask.causal) return "";
  if (!declared.takes_causal) return "its attend has no parameter causal";
  if (shape.nq != shape.nk || mask.offset != 0 || mask.keys >= 0)
    return "a causal attend(q, k, v, causal) has one query a key, and none is padding";
  return "";
}

MethodEntry entry_of(const DeclaredClass& declared) {
  MethodEntry entry{.text = declared->text,
                    .parameters = declared->parameters,
                    .f32 = maker<float>(declared),
                    .f64 = maker<double>(declared),
                    .memory_assumed = !declared->gives_memory,
                    .cost_assumed = !declared->gives_cost,
                    .asks_for_seed = declared->asks_for_seed,
                    .fitted = [declared](const Params&) { return declared->fitted; },
                    .theory = [declared](const Params& params, const Shape&,
                                         const Head<double>*) { return declared->theory(params); },
                    .needs = declared->needs};
  if (declared->transcribes)
    entry.transcription = [declared](const Draw& draw, const Approximation<double>&, const Head<double>& head,
                                     Mask mask) { return declared->transcription(draw, head, mask); };
  if (declared->gives_cost)
    entry.least_flops = [declared](const Params& params, const Shape& shape) {
      return declared->least_flops(params, shape);
    };
  if (declared->gives_decoder_bytes)
    entry.decoder_bytes = [declared](const Params& params, const Shape& shape) {
      return declared->decoder_bytes(params, shape);
    };
  if (declared->mixes_heads)
    entry.caveats = [name = declared->text.name](const Params&, const Shape&) -> std::vector<std::string> {
      return {name +
              " mixes heads, and experiments on single heads give it one at a time; speed, attnbench attend and "
              "attnbench.hf give it all"};
    };
  if (declared->has_golden) entry.golden = [declared](const Params& params) { return declared->golden(params); };
  return entry;
}

}  // namespace

Params linear_params(const Declared& declared, const Params& own) {
  Spec spec{"linear", {{"features", declared.text.name}}};
  for (const auto& [name, value] : own.values()) spec.arguments.emplace_back(name, value);
  return Params("methods", spec);
}

MethodEntry method_with_attend(const DeclaredClass& declared) {
  MethodEntry entry = entry_of(declared);
  entry.claims = [declared](const Params& params, const Shape& shape) {
    Claims known;
    if (declared->maps) {  // attend divides what its features give, by their row sums unless it says otherwise
      const Claims of_features = find<MethodEntry>("linear").claims(linear_params(*declared, params), shape);
      known.row_stochastic = of_features.row_stochastic;
      known.rank_at_most = of_features.rank_at_most;
      known.implied = of_features.implied;
    }
    known.no_form = no_form_of(*declared, shape);
    known.causal_exact = declared->takes_causal;
    return declared->claims(known, params, shape);
  };
  // Three arrays, as NumPy makes them: the logits, their exponentials and the weights.
  entry.memory = [declared](const Params& params, const Shape& shape) {
    const auto pairs = static_cast<double>(shape.nq) * static_cast<double>(shape.nk);
    return declared->memory(params, shape, 3 * pairs * bytes_of(shape.precision));
  };
  entry.cost = [declared](const Params& params, const Shape& shape) {
    return declared->cost(params, shape, find<MethodEntry>("softmax").cost(Params("methods", "softmax"), shape));
  };
  return entry;
}

MethodEntry method_of_features(const DeclaredClass& declared) {
  MethodEntry entry = entry_of(declared);
  entry.claims = [declared](const Params& params, const Shape& shape) {
    return declared->claims(find<MethodEntry>("linear").claims(linear_params(*declared, params), shape), params, shape);
  };
  entry.memory = [declared](const Params& params, const Shape& shape) {
    return declared->memory(params, shape, find<MethodEntry>("linear").memory(linear_params(*declared, params), shape));
  };
  entry.cost = [declared](const Params& params, const Shape& shape) {
    return declared->cost(params, shape, find<MethodEntry>("linear").cost(linear_params(*declared, params), shape));
  };
  return entry;
}

}  // namespace attnbench
