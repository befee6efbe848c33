#include "harness/python/abilities.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/python/arrays.hpp"
#include "harness/python/calls.hpp"
#include "harness/python/handing.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

// kernel(q, k): the weights before normalisation, nq x nk, of the numbers of rows that it is given.
template <class T>
class PythonKernel final : public Kernel<T> {
 public:
  PythonKernel(DeclaredClass declared, PyObject* instance) : declared_(std::move(declared)), instance_(instance) {}

  void kernel(const Head<T>& head, Context&, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    if (block.size() > 0) call(head, block);
    std::fill(log_rows.begin(), log_rows.end(), T(0));
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  // One call gives the diagonal of a block of rows: a call for each pair would take most of the time of `check`.
  void diagonal(const Head<T>& head, Context&, std::span<T> values, std::span<T> log_scale) const override {
    constexpr Index most = 64;
    for (Index first = 0; first < head.Q.rows(); first += most) {
      const Index count = std::min(most, head.Q.rows() - first);
      Matrix<T> block(count, count);
      call(HeadPart<T>::tokens(head, first, count).view(), block);
      for (Index i = 0; i < count; ++i) values[static_cast<size_t>(first + i)] = block(i, i);
    }
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }

 private:
  void call(const Head<T>& head, Out<T> block) const {
    in_python(declared_->file, [&] {
      const py::object q = view(head.Q), k = view(head.K);
      const py::tuple extras = declared_->template extras<T>(head, head.K.rows());
      copy_result(py::object(py::handle(instance_).attr("kernel")(q, k, *extras)), block, "kernel(q, k)");
      require_released(q, "kernel", "q");
      require_released(k, "kernel", "k");
    });
  }

  DeclaredClass declared_;
  PyObject* instance_;
};

// Calls the object that decoder(shape) returned. It has step(q, k, v), bytes() and optionally prefill(q, k, v).
template <class T>
class PythonDecoder final : public Decoder<T> {
 public:
  PythonDecoder(DeclaredClass declared, PyObject* instance, const Shape& shape)
      : declared_(std::move(declared)), object_(declared_->decoder(instance, shape)) {
    in_python(declared_->file, [&] { prefills_ = py::hasattr(py::handle(object_), "prefill"); });
  }
  PythonDecoder(const PythonDecoder&) = delete;
  PythonDecoder& operator=(const PythonDecoder&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): only an interpreter that has ended throws, and then the process ends
  ~PythonDecoder() override {
    const py::gil_scoped_acquire taken;
    Py_XDECREF(object_);
  }

  bool takes_prompts() const override { return prefills_; }
  void prefill(const Head<T>& tokens, Context& context) override {
    if (tokens.Q.rows() == 0) return;
    if (!prefills_) {
      Matrix<T> row(1, tokens.V.cols());
      for (Index t = 0; t < tokens.Q.rows(); ++t) step(HeadPart<T>::tokens(tokens, t, 1).view(), context, row);
      return;
    }
    in_python(declared_->file, [&] {
      const py::object q = view(tokens.Q), k = view(tokens.K), v = view(tokens.V);
      py::handle(object_).attr("prefill")(q, k, v, *declared_->template extras<T>(tokens, tokens.K.rows()));
      require_all_released("prefill", q, k, v);
    });
  }

  void step(const Head<T>& token, Context&, Out<T> out) override {
    in_python(declared_->file, [&] {
      Handing handing;
      const py::object q = view(token.Q), k = view(token.K), v = view(token.V);
      const py::object step = py::handle(object_).attr("step");
      const py::tuple extras = declared_->template extras<T>(token, 1);
      std::vector<PyObject*> arguments{nullptr, q.ptr(), k.ptr(), v.ptr()};
      for (const py::handle extra : extras) arguments.push_back(extra.ptr());
      const size_t count = (arguments.size() - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET;
      handing.over();
      auto result =
          py::reinterpret_steal<py::object>(PyObject_Vectorcall(step.ptr(), arguments.data() + 1, count, nullptr));
      handing.back();
      if (!result) throw py::error_already_set();
      leave_if_forked();
      copy_result(result, out, "step(q, k, v)");
      result.release().dec_ref();
      handing.time_empty_call(arguments.data() + 1, count);
      require_all_released("step", q, k, v);
    });
  }

  size_t bytes() const override {
    return in_python(declared_->file, [&] { return py::handle(object_).attr("bytes")().template cast<size_t>(); });
  }

 private:
  static void require_all_released(const char* method, const py::object& q, const py::object& k, const py::object& v) {
    require_released(q, method, "q");
    require_released(k, method, "k");
    require_released(v, method, "v");
  }

  DeclaredClass declared_;
  PyObject* object_;
  bool prefills_ = false;
};

// gradients(q, k, v, causal, g), the class's own or autograd's. It saves nothing from the forward pass.
template <class T>
class PythonGradients final : public Differentiable<T> {
 public:
  PythonGradients(DeclaredClass declared, PyObject* instance, const Approximation<T>& method)
      : declared_(std::move(declared)), instance_(instance), method_(method) {}

  void forward(const Head<T>& head, Mask mask, Context& context, Out<T> out, std::vector<T>& saved) const override {
    saved.clear();
    method_.attend(head, mask, context, out);
  }

  void backward(const Head<T>& head, Mask mask, const In<T>&, const std::vector<T>&, const In<T>& G, Context&,
                Gradients<T> gradients) const override {
    const Index nk = head.K.rows(), keys = mask.keys < 0 ? nk : std::min(mask.keys, nk);
    gradients.Q.setZero();
    gradients.K.setZero();
    gradients.V.setZero();
    if (keys == 0) return;
    in_python(declared_->file, [&] {
      const py::object q = view(head.Q), k = view(row_block(head.K, 0, keys)), v = view(row_block(head.V, 0, keys));
      const py::object g = view(G);
      {
        const py::tuple all = py::handle(declared_->object)
                                  .attr("gradients")(py::handle(instance_), q, k, v, mask.causal, g,
                                                     *declared_->template extras<T>(head, keys));
        copy_result(py::object(all[0]), gradients.Q, "the first of gradients(q, k, v, causal, g)");
        copy_result(py::object(all[1]), row_block(gradients.K, 0, keys), "the second of gradients(q, k, v, causal, g)");
        copy_result(py::object(all[2]), row_block(gradients.V, 0, keys), "the third of gradients(q, k, v, causal, g)");
      }
      require_released(q, "gradients", "q");
      require_released(k, "gradients", "k");
      require_released(v, "gradients", "v");
      require_released(g, "gradients", "g");
    });
  }

 private:
  DeclaredClass declared_;
  PyObject* instance_;
  const Approximation<T>& method_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> python_kernel(const DeclaredClass& declared, PyObject* instance) {
  return std::make_unique<PythonKernel<T>>(declared, instance);
}

template <class T>
std::unique_ptr<Decoder<T>> python_decoder(const DeclaredClass& declared, PyObject* instance, const Shape& shape) {
  return std::make_unique<PythonDecoder<T>>(declared, instance, shape);
}

template <class T>
std::unique_ptr<Differentiable<T>> python_gradients(const DeclaredClass& declared, PyObject* instance,
                                                    const Approximation<T>& method) {
  return std::make_unique<PythonGradients<T>>(declared, instance, method);
}

template std::unique_ptr<Kernel<float>> python_kernel<float>(const DeclaredClass&, PyObject*);
template std::unique_ptr<Kernel<double>> python_kernel<double>(const DeclaredClass&, PyObject*);
template std::unique_ptr<Decoder<float>> python_decoder<float>(const DeclaredClass&, PyObject*, const Shape&);
template std::unique_ptr<Decoder<double>> python_decoder<double>(const DeclaredClass&, PyObject*, const Shape&);
template std::unique_ptr<Differentiable<float>> python_gradients<float>(const DeclaredClass&, PyObject*,
                                                                        const Approximation<float>&);
template std::unique_ptr<Differentiable<double>> python_gradients<double>(const DeclaredClass&, PyObject*,
                                                                          const Approximation<double>&);

}  // namespace attnbench
