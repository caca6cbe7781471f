"""Exact samples of a k-DPP, for prompts that vary: DPPy draws them from the kernel of a shortlist."""

from collections.abc import Sequence

import numpy as np
from dppy.finite_dpps import FiniteDPP

from fewshot_library.dpp import Kernel, likelihood_matrix


class SamplingError(ValueError):
    """A kernel that is no probability distribution, in one sentence."""


def sample_kdpp(kernel: Kernel, items: Sequence[int], k: int, seed: int) -> list[int]:
    """k of the items, a set with a probability in proportion to its determinant; the same for the same seed."""
    if k == 0:
        return []
    matrix = likelihood_matrix(kernel, items)
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -_TOLERANCE * values[-1]:
        raise SamplingError(
            f"the kernel of these {len(items)} demonstrations has the negative eigenvalue {values[0]:.2g}, so that it "
            "is no distribution to sample from; raise gamma, take the distance metric, or use mode dpp"
        )
    process = FiniteDPP("likelihood", L=matrix)
    sample = process.sample_exact_k_dpp(size=k, random_state=np.random.RandomState(seed))
    return [items[place] for place in sample]


_TOLERANCE = 1e-10
