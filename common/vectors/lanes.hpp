#pragma once
// Several doubles at once (SIMD), and 2^x and log2 on them, in the vector extensions that GCC and
// Clang share. A lane is one of the doubles. Only +, -, *, / and operations on bits are used. IEEE
// 754 fixes the result of each, so any number of lanes and any instruction set give the same bits.
// docs/decisions/0012-simd.md.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

// Everything here becomes part of its caller, which may be compiled for more than the baseline.
#define RUBATO_LANES [[gnu::always_inline]] inline

namespace rubato::lanes {

using Two = double __attribute__((vector_size(16)));
using Four = double __attribute__((vector_size(32)));
using Eight = double __attribute__((vector_size(64)));

/// Twice as many lanes as a V. Arithmetic waits for its own results (latency), so two or four
/// independent streams of it take hardly longer than one. Four streams are a pair of pairs.
template <class V>
struct Pair {
  V first, second;
};

#define RUBATO_PAIR_OPERATOR(op)                                         \
  template <class V>                                                     \
  RUBATO_LANES Pair<V> operator op(const Pair<V>& x, const Pair<V>& y) { \
    return {x.first op y.first, x.second op y.second};                   \
  }                                                                      \
  template <class V, class Number>                                       \
  RUBATO_LANES Pair<V> operator op(const Pair<V>& x, const Number& y) {  \
    return {x.first op y, x.second op y};                                \
  }                                                                      \
  template <class V>                                                     \
  RUBATO_LANES Pair<V> operator op(double x, const Pair<V>& y) {         \
    return {x op y.first, x op y.second};                                \
  }
RUBATO_PAIR_OPERATOR(+)
RUBATO_PAIR_OPERATOR(-)
RUBATO_PAIR_OPERATOR(*)
RUBATO_PAIR_OPERATOR(/)
RUBATO_PAIR_OPERATOR(&)
RUBATO_PAIR_OPERATOR(|)
RUBATO_PAIR_OPERATOR(<<)
RUBATO_PAIR_OPERATOR(>>)
#undef RUBATO_PAIR_OPERATOR

template <class V>
RUBATO_LANES Pair<V> operator-(const Pair<V>& x) {
  return {-x.first, -x.second};
}
template <class V>
RUBATO_LANES Pair<V> operator~(const Pair<V>& x) {
  return {~x.first, ~x.second};
}

/// Lanes of a V, and the type of their bits.
template <class V>
struct Traits;
template <>
struct Traits<Two> {
  static constexpr std::size_t lanes = 2;
  using Bits = std::uint64_t __attribute__((vector_size(16)));
};
template <>
struct Traits<Four> {
  static constexpr std::size_t lanes = 4;
  using Bits = std::uint64_t __attribute__((vector_size(32)));
};
template <>
struct Traits<Eight> {
  static constexpr std::size_t lanes = 8;
  using Bits = std::uint64_t __attribute__((vector_size(64)));
};
template <class V>
struct Traits<Pair<V>> {
  using Half = V;
  static constexpr std::size_t lanes = 2 * Traits<V>::lanes;
  using Bits = Pair<typename Traits<V>::Bits>;
};

template <class V>
inline constexpr std::size_t count = Traits<V>::lanes;
template <class V>
using Bits = typename Traits<V>::Bits;
template <class V>
inline constexpr bool is_pair = requires {
  typename Traits<V>::Half;
};

// Pairs are taken apart here and below: copied as a block of memory they would leave the registers.
template <class V>
RUBATO_LANES Bits<V> bits(const V& x) {
  if constexpr (is_pair<V>) {
    return {bits(x.first), bits(x.second)};
  } else {
    return __builtin_bit_cast(Bits<V>, x);
  }
}
template <class V>
RUBATO_LANES V from_bits(const Bits<V>& x) {
  if constexpr (is_pair<V>) {
    using Half = typename Traits<V>::Half;
    return {from_bits<Half>(x.first), from_bits<Half>(x.second)};
  } else {
    return __builtin_bit_cast(V, x);
  }
}

template <class V>
RUBATO_LANES V all(double x) {
  return V{} + x;
}

template <class V>
RUBATO_LANES V load(const double* from) {
  if constexpr (is_pair<V>) {
    using Half = typename Traits<V>::Half;
    return {load<Half>(from), load<Half>(from + count<Half>)};
  } else {
    V x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
}

template <class V>
RUBATO_LANES void store(const V& x, double* to) {
  if constexpr (is_pair<V>) {
    store(x.first, to);
    store(x.second, to + count<V> / 2);
  } else {
    __builtin_memcpy(to, &x, sizeof x);
  }
}

/// The lanes one by one.
template <class V>
RUBATO_LANES std::array<double, count<V>> each(const V& x) {
  return __builtin_bit_cast(std::array<double, count<V>>, x);
}

/// All bits of a lane where a > b. As numbers, since before the target is known compilers
/// give vectors of truth values the wrong shape.
template <class V>
RUBATO_LANES Bits<V> above(const V& a, const V& b) {
  if constexpr (is_pair<V>) {
    return {above(a.first, b.first), above(a.second, b.second)};
  } else {
    return a > b ? ~Bits<V>{} : Bits<V>{};
  }
}

/// All bits of a lane where a >= b.
template <class V>
RUBATO_LANES Bits<V> at_least(const V& a, const V& b) {
  if constexpr (is_pair<V>) {
    return {at_least(a.first, b.first), at_least(a.second, b.second)};
  } else {
    return a >= b ? ~Bits<V>{} : Bits<V>{};
  }
}

/// Lane by lane `a` where all bits of the mask are set, `b` where none is.
template <class V>
RUBATO_LANES V select(const Bits<V>& mask, const V& a, const V& b) {
  return from_bits<V>((mask & bits(a)) | (~mask & bits(b)));
}

/// Whether some bit is set in some lane.
template <class Mask>
RUBATO_LANES bool any(const Mask& mask) {
  if constexpr (requires { mask.first; }) {
    return any(mask.first | mask.second);
  } else {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < sizeof(Mask) / sizeof(double); ++i) found |= mask[i];
    return found != 0;
  }
}

/// The larger of both, lane by lane (below: the smaller); `b` where one of them is NaN.
template <class V>
RUBATO_LANES V larger(const V& a, const V& b) {
  if constexpr (is_pair<V>) {
    return {larger(a.first, b.first), larger(a.second, b.second)};
  } else {
    return a > b ? a : b;
  }
}
template <class V>
RUBATO_LANES V smaller(const V& a, const V& b) {
  if constexpr (is_pair<V>) {
    return {smaller(a.first, b.first), smaller(a.second, b.second)};
  } else {
    return a < b ? a : b;
  }
}

/// The least lane. Halves are compared: one by one, each comparison would wait for the one before.
template <class V>
RUBATO_LANES double least(const V& x) {
  if constexpr (is_pair<V>) {
    return least(smaller(x.first, x.second));
  } else if constexpr (count<V> == 8) {
    return least(smaller(__builtin_shufflevector(x, x, 0, 1, 2, 3),
                         __builtin_shufflevector(x, x, 4, 5, 6, 7)));
  } else if constexpr (count<V> == 4) {
    return least(smaller(__builtin_shufflevector(x, x, 0, 1), __builtin_shufflevector(x, x, 2, 3)));
  } else {
    return x[1] < x[0] ? x[1] : x[0];
  }
}

template <class V>
RUBATO_LANES double largest(const V& x) {
  return -least(-x);
}

template <class V>
RUBATO_LANES V magnitude(const V& x) {
  constexpr std::uint64_t all_but_sign = ~std::uint64_t{0} >> 1;
  return from_bits<V>(bits(x) & all_but_sign);
}

/// x, x^2, x^4, x^8.
template <class V>
struct Powers {
  V of[4];
};

/// c[from] + c[from + 1] x + ... (n terms) by Estrin's scheme: its short chains of operations keep
/// all arithmetic units busy.
template <std::size_t from, std::size_t n, class V, std::size_t size>
RUBATO_LANES constexpr V estrin(const double (&c)[size], const Powers<V>& power) {
  if constexpr (n == 1) {
    return V{} + c[from];
  } else if constexpr (n == 2) {
    return c[from] + c[from + 1] * power.of[0];
  } else {
    constexpr std::size_t half = std::bit_floor(n - 1);
    constexpr int level = std::countr_zero(half);
    return estrin<from, half>(c, power) + estrin<from + half, n - half>(c, power) * power.of[level];
  }
}

template <class V, std::size_t size>
RUBATO_LANES constexpr V polynomial(const double (&c)[size], const V& x) {
  static_assert(size <= 16);
  const V x2 = x * x, x4 = x2 * x2;
  return estrin<0, size>(c, Powers<V>{{x, x2, x4, x4 * x4}});
}

/// 2^x, relative error below 3e-16. x in [-0.5, 0.5].
template <class V>
RUBATO_LANES V exp2_near_zero(const V& x) {
  // (2^r - 1) / r on [-0.5, 0.5] within 2e-17 / r, from mpmath 1.3:
  // chebyfit(lambda r: (2**r - 1) / r, [-0.5, 0.5], 11).
  constexpr double c[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c598p-3,  0x1.c6b08d704a0c2p-5,
                          0x1.3b2ab6fba1ddap-7,  0x1.5d87fe78a5276p-10, 0x1.430913096fd9fp-13,
                          0x1.ffcbfc670dcd4p-17, 0x1.62bfd47773353p-20, 0x1.b524fae627834p-24,
                          0x1.e6063f7217bc6p-28, 0x1.e9d3fe3952179p-32};
  return 1.0 + x * polynomial(c, x);
}

/// 2^x, relative error below 3e-16; the same bits where exp2_near_zero will do.
/// x in [-1022, 1024]; infinity at 1024.
template <class V>
RUBATO_LANES V exp2(const V& x) {
  constexpr double to_integer = 0x1.8p52;  // a sum with it has the rounded x in its lowest bits
  constexpr int exponent_at = std::numeric_limits<double>::digits - 1;
  const V shifted = x + to_integer;
  const V mantissa = exp2_near_zero(x - (shifted - to_integer));
  return from_bits<V>(bits(mantissa) + (bits(shifted) << exponent_at));
}

/// log2(m) less a constant, for m in [1, 2]: the series of the inverse hyperbolic tangent
/// around sqrt(2), where |s| < 0.1716.
template <class V>
RUBATO_LANES constexpr V log2_around_root(const V& m) {
  // 2 atanh(s) / (s ln 2) in t = s^2 within 4e-17 / s, from mpmath 1.3:
  // chebyfit(lambda t: 2 / log(2) * atanh(sqrt(t)) / sqrt(t), [0, 0.02944], 8).
  constexpr double c[] = {0x1.71547652b82fep+1, 0x1.ec709dc3a047dp-1, 0x1.2776c50ee39a4p-1,
                          0x1.a61762d699b46p-2, 0x1.484afb77d8797p-2, 0x1.0ca160eda205bp-2,
                          0x1.c46df723fd2ebp-3, 0x1.b594042f590e9p-3};
  constexpr double root = 0x1.6a09e667f3bcdp+0;  // sqrt(2)
  const V s = (m - root) / (m + root);
  return s * polynomial(c, s * s);
}

/// log2(m) for m in [1, 2], absolute error below 3e-16, 0 at 1.
template <class V>
RUBATO_LANES V log2_of_mantissa(const V& m) {
  constexpr double half = -log2_around_root(1.0);
  return log2_around_root(m) + half;
}

/// log2(x) of a normal number > 0, error below 3e-16 plus half a unit in the last place.
template <class V>
RUBATO_LANES V log2(const V& x) {
  constexpr std::uint64_t one = std::bit_cast<std::uint64_t>(1.0);
  constexpr int exponent_at = std::numeric_limits<double>::digits - 1;
  constexpr std::uint64_t mantissa_bits = (std::uint64_t{1} << exponent_at) - 1;
  constexpr double integer = 0x1p52, bias = 1023.0;  // integers below 2^52 are the bits of 2^52 + n
  const auto exponent = bits(x) >> exponent_at;
  const V e = from_bits<V>(exponent | std::bit_cast<std::uint64_t>(integer));
  const V m = from_bits<V>((bits(x) & mantissa_bits) | one);
  return (e - (integer + bias)) + log2_of_mantissa(m);
}

/// Where x is below this, 1 + 2^x is 1 in a double.
inline constexpr double least_visible_log2 = -64.0;

/// Largest 1/p of a soft factor.
inline constexpr double largest_inverse_exponent = 1023.0;

/// log2 of soft_factor.
template <class V, class S>
RUBATO_LANES V log2_soft_factor(const V& x, const S& inverse_p) {
  return log2_of_mantissa(1.0 + exp2(x)) * inverse_p;
}

/// (1 + 2^x)^(1/p): the factor between a soft maximum and the larger of two numbers. The soft
/// maximum is the p-norm, (a^p + b^p)^(1/p), and the ratio of the two numbers is 2^(x/p).
/// @param x          in [-1022, 0]
/// @param inverse_p  1/p, at most largest_inverse_exponent
template <class V, class S>
RUBATO_LANES V soft_factor(const V& x, const S& inverse_p) {
  return exp2(log2_soft_factor(x, inverse_p));
}

}  // namespace rubato::lanes
