"""The limit of open files; tests/browser/test_edges.py fills a real server."""

import resource
import subprocess
import sys
from pathlib import Path

PRINT_LIMIT = """
import resource
from showhow.app.capacity import count_free_descriptors, raise_descriptor_limit, reserved_descriptors
raise_descriptor_limit()
files = [open("/dev/null") for _ in range(50)]
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
print(soft, hard, reserved_descriptors(), count_free_descriptors() < hard - 50)
"""


def test_the_soft_limit_is_raised_to_the_hard_one():
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 800)
    limited = ["bash", "-c", f'ulimit -Sn 200; ulimit -Hn {hard}; exec "$@"', "bash", sys.executable, "-c", PRINT_LIMIT]
    root = Path(__file__).parents[2]
    done = subprocess.run(limited, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(hard), str(hard), str(hard // 4), "True"]
