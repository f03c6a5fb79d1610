"""Student's t, for intervals of few windows without SciPy."""

from __future__ import annotations

import math
import statistics
from typing import Sequence

CONFIDENCE = 0.90  #: of all intervals, as in the reports of rubato

# 95 % quantiles by degrees of freedom from 1: any table of Student's distribution.
_T_95 = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753,
         1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697)


def t_95(freedom: int) -> float:
    """95 % quantile of Student's t, for two-sided 90 % intervals. @pre freedom >= 1"""
    if freedom <= len(_T_95):
        return _T_95[freedom - 1]
    z = statistics.NormalDist().inv_cdf(0.95)
    return z + (z**3 + z) / (4 * freedom)  # Abramowitz and Stegun 26.7.5, first term


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that at least this share of them does not exceed. @pre values are not empty, 0 <= share <= 1"""
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def change_interval(log_ratios: Sequence[float]) -> tuple[float, float, float]:
    """Change and its 90 % interval, as fractions, from logarithms of paired ratios. Needs two pairs."""
    mean = statistics.fmean(log_ratios)
    half = t_95(len(log_ratios) - 1) * statistics.stdev(log_ratios) / math.sqrt(len(log_ratios))
    return math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half)
