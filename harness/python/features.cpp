// A class with features_q(self, x) and features_k(self, x) becomes a feature map.
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "harness/python/arrays.hpp"
#include "harness/python/calls.hpp"
#include "harness/python/entries.hpp"
#include "harness/python/handing.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

template <class T>
class PythonFeatures final : public FeatureMap<T> {
 public:
  PythonFeatures(DeclaredClass declared, const Draw& draw)
      : declared_(std::move(declared)), instance_(declared_->make(draw)) {
    try {
      in_python(declared_->file, [&] {
        features_q_ = py::object(py::handle(instance_).attr("features_q")).release().ptr();
        features_k_ = py::object(py::handle(instance_).attr("features_k")).release().ptr();
      });
      features_ = count_features(draw.shape.d);
    } catch (...) {
      release();
      throw;
    }
  }
  PythonFeatures(const PythonFeatures&) = delete;
  PythonFeatures& operator=(const PythonFeatures&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): only an interpreter that has ended throws, and then the process ends
  ~PythonFeatures() override { release(); }

  Index features() const override { return features_; }
  Form form() const override { return declared_->exponents ? Form::exponents : Form::values; }

  void map(Context&, const In<T>& X, Side side, Index, Out<T> block, std::span<T> log_scale) const override {
    if (X.rows() == 0) return;  // nothing is visible: a class need not be written for arrays without rows
    in_python(declared_->file, [&] {
      Handing handing;
      const py::object x = view(X);
      PyObject* arguments[] = {nullptr, x.ptr()};
      constexpr size_t count = 1 | PY_VECTORCALL_ARGUMENTS_OFFSET;
      handing.over();
      PyObject* const map = side == Side::query ? features_q_ : features_k_;
      auto result = py::reinterpret_steal<py::object>(PyObject_Vectorcall(map, arguments + 1, count, nullptr));
      handing.back();
      if (!result) throw py::error_already_set();
      leave_if_forked();
      copy_result(result, block, side == Side::query ? "features_q(x)" : "features_k(x)");
      result.release().dec_ref();
      handing.time_empty_call(arguments + 1, count);
      require_released(x, side == Side::query ? "features_q" : "features_k", "x");
    });
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }

  Tensors state() const override { return declared_->state_of(instance_); }

 private:
  // Counts the features that the map returns for one token.
  Index count_features(Index d) const {
    const Matrix<T> token = Matrix<T>::Constant(1, d, T(0.1));
    return in_python(declared_->file, [&] {
      const py::object result = py::handle(features_k_)(view<T>(token));
      const auto array = py::array(py::module_::import("numpy").attr("asarray")(result));
      if (array.ndim() != 2 || array.shape(0) != 1 || array.shape(1) < 1)
        throw std::runtime_error(
            fmt::format("features_k(x) of one token, x of shape (1, {}), returned {}; expected an "
                        "array of shape (1, number of features)",
                        d, py::str(array.attr("shape")).cast<std::string>()));
      return static_cast<Index>(array.shape(1));
    });
  }

  void release() {
    const py::gil_scoped_acquire taken;
    for (PyObject* object : {features_q_, features_k_, instance_}) Py_XDECREF(object);
  }

  DeclaredClass declared_;
  PyObject* instance_;
  PyObject* features_q_ = nullptr;
  PyObject* features_k_ = nullptr;
  Index features_ = 0;
};

// Caches the number of features of each configuration: every cell asks for it, and only an instance knows it.
class FeatureCounts {
 public:
  explicit FeatureCounts(DeclaredClass declared) : declared_(std::move(declared)) {}

  Index operator()(const Params& params, Index d) {
    const std::pair key(params.spec(), d);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    Generator generator = Streams(1).stream("tokens to count features with");
    const Matrix<double> tokens = standard_normal(generator, 16, d);
    const Head<double> calibration{tokens, tokens, tokens};
    const Draw draw{.shape = {.nq = 16, .nk = 16, .d = d, .dv = d, .precision = Precision::f64},
                    .params = params,
                    .streams = Streams(1),
                    .calibration = &calibration};
    const Index features = PythonFeatures<double>(declared_, draw).features();
    const std::lock_guard lock(mutex_);
    return known_[key] = features;
  }

 private:
  DeclaredClass declared_;
  std::mutex mutex_;
  std::map<std::pair<std::string, Index>, Index> known_;
};

}  // namespace

DeterministicMapEntry features_entry(const DeclaredClass& declared) {
  DeterministicMapEntry entry;
  entry.text = declared->text;
  entry.parameters = declared->parameters;
  entry.f32 = [declared](const Draw& draw) {
    refuse_bfloat16(draw);
    return std::make_unique<PythonFeatures<float>>(declared, draw);
  };
  entry.f64 = [declared](const Draw& draw) { return std::make_unique<PythonFeatures<double>>(declared, draw); };
  const auto counts = std::make_shared<FeatureCounts>(declared);
  entry.features = [counts](const Params& params, Index d) { return (*counts)(params, d); };
  // Counts the product with d weights per feature, which most maps have.
  entry.token_work = [counts](const Params& params, Index d) {
    return Work{.flops = 2 * static_cast<double>(d * (*counts)(params, d))};
  };
  entry.fitted = [declared](const Params&) { return declared->fitted; };
  return entry;
}

}  // namespace attnbench
