"""What oracle scripts ask HiGHS with: SciPy, without which a test is skipped (exit status 77)."""
import sys

try:
    import numpy as np  # noqa: F401
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp  # noqa: F401
    from scipy.sparse import coo_matrix, lil_matrix  # noqa: F401
except ImportError:
    print("skipped: python3-scipy is not on this machine")
    sys.exit(77)
