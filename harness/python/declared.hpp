// A class of a Python file, as the harness knows it. What it says of itself is read from an object that
// scripts/attnbench/declaration.py makes of it; here is what that object is asked.
#pragma once

#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/core/approximation.hpp"

namespace attnbench {

struct Declared {
  Description text;
  std::vector<Parameter> parameters;
  bool attends = false;            // it has attend
  bool maps = false;               // it has features_q and features_k
  bool exponents = false;          // which give the logarithms of features
  bool takes_causal = false;       // its attend does
  bool fitted = false;             // its constructor wants the calibration head
  bool has_theory = false;         // it says what its kernel estimates
  bool has_variance = false;       // and with which variance
  std::string file;                // or what stands in its place
  std::vector<std::string> files;  // it, and the modules that it imports from outside the interpreter's folders
  PyObject* object = nullptr;      // never released: registries outlive the interpreter

  // The values of a spec that are this class's own: those of a spec of linear attention hold the engine's as well.
  // The caller holds the interpreter.
  PyObject* values(const Params& params) const;
  // An instance, drawn: a new reference. Takes the interpreter, and throws what the constructor raised.
  PyObject* make(const Draw& draw) const;
  // What it claims beyond `known`, of which what it says takes the place.
  Claims claims(Claims known, const Params& params, const Shape& shape) const;
  // What it says of memory and cost; without: `otherwise`.
  double memory(const Params& params, const Shape& shape, double otherwise) const;
  Work cost(const Params& params, const Shape& shape, Work otherwise) const;
  std::optional<KernelTheory> theory(const Params& params) const;
  // Arrays by name, 2-D, of an instance's state().
  Tensors state_of(PyObject* instance) const;
};
using DeclaredClass = std::shared_ptr<const Declared>;

}  // namespace attnbench
