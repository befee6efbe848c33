// Further abilities of a class with attend: kernel(q, k), decoder(shape) and gradients. Each function of the class is
// one ability of the method; the harness recognises it by the function alone.
#pragma once

#include "harness/python/declared.hpp"

namespace attnbench {

// They refer to an instance of the class, which must outlive them.
template <class T>
std::unique_ptr<Kernel<T>> python_kernel(const DeclaredClass& declared, PyObject* instance);
template <class T>
std::unique_ptr<Decoder<T>> python_decoder(const DeclaredClass& declared, PyObject* instance, const Shape& shape);
// method: calls the attend of that instance.
template <class T>
std::unique_ptr<Differentiable<T>> python_gradients(const DeclaredClass& declared, PyObject* instance,
                                                    const Approximation<T>& method);

}  // namespace attnbench
