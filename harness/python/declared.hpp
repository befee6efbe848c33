// A class of a Python file, as the harness knows it. scripts/attnbench/declaration.py makes an object that describes
// the class, and the functions here query that object.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/core/approximation.hpp"

namespace attnbench {

struct Declared {
  Description text;
  std::vector<Parameter> parameters;
  std::vector<Need> needs;           // what each of its functions takes after its own arguments
  bool attends = false;              // has attend
  bool maps = false;                 // has features_q and features_k
  bool exponents = false;            // features_q and features_k return logarithms of features
  bool takes_causal = false;         // attend has the parameter causal
  bool fitted = false;               // the constructor takes the calibration head
  bool asks_for_seed = false;        // the constructor takes a seed
  bool has_theory = false;           // gives the mean of its kernel estimate
  bool has_variance = false;         // gives the variance of its kernel estimate
  bool gives_memory = false;         // has memory(parameters, shape)
  bool gives_cost = false;           // has cost(parameters, shape)
  bool batched = false;              // attend takes the heads as the first axis of its arrays
  bool mixes_heads = false;          // and a head's output depends on the others
  bool gives_kernel = false;         // has kernel(q, k)
  bool decodes = false;              // has decoder(shape)
  bool differentiates = false;       // has gradients(q, k, v, causal, g), or an attend for autograd
  bool transcribes = false;          // has transcription, the second path that proves its formula
  bool gives_decoder_bytes = false;  // has decoder_bytes(parameters, shape)
  bool has_golden = false;           // names files with outputs of the authors' code
  std::string file;                  // or a name in its place
  std::vector<std::string> files;    // the file and the modules that it imports from outside the interpreter's folders
  PyObject* object = nullptr;        // never released, because registries outlive the interpreter

  // Shape's fields, in the order of attnbench.Shape: a new reference.
  static PyObject* fields(const Shape& shape);
  // The values in a spec for this class's own parameters: a spec of linear attention also has the engine's. The caller
  // must hold the interpreter's lock.
  PyObject* values(const Params& params) const;
  // A new reference to what `make` of the class's declaration takes: parameters, shape, seed, calibration and state.
  PyObject* arguments(const Draw& draw) const;
  // Draws an instance and returns a new reference. Takes the interpreter's lock, and throws what the constructor
  // raised.
  PyObject* make(const Draw& draw) const;
  // The arrays of `needs` for a head, in their order and in T, without the keys from `keys` on. The caller must hold
  // the interpreter's lock.
  template <class T>
  pybind11::tuple extras(const Head<T>& head, Index keys) const;
  // Calls transcription(self, q, k, v, causal) of an instance of that draw, without the keys that are padding. One with
  // an argument `parameters` gets those of the spec. Empty for a causal mask without one query a key.
  Matrix<double> transcription(const Draw& draw, const Head<double>& head, Mask mask) const;
  // Returns `known`, overridden by the claims that the class makes itself.
  Claims claims(Claims known, const Params& params, const Shape& shape) const;
  // The class's own memory and cost; `otherwise` if it gives none.
  double memory(const Params& params, const Shape& shape, double otherwise) const;
  Work cost(const Params& params, const Shape& shape, Work otherwise) const;
  double least_flops(const Params& params, const Shape& shape) const;  // if gives_cost
  double decoder_bytes(const Params& params, const Shape& shape) const;
  // The outputs of the authors' code that the class names for these parameters.
  std::vector<Golden> golden(const Params& params) const;
  std::optional<KernelTheory> theory(const Params& params) const;
  // The function that attends for an instance, and the decoder that it makes: new references.
  PyObject* attend(PyObject* instance) const;
  PyObject* decoder(PyObject* instance, const Shape& shape) const;
  // The 2-D arrays of an instance's state(), by name.
  Tensors state_of(PyObject* instance) const;
};
using DeclaredClass = std::shared_ptr<const Declared>;

// Throws Skip at precision bf16: products of NumPy or PyTorch would not round their operands.
void refuse_bfloat16(const Draw& draw);

}  // namespace attnbench
