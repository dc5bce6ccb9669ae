import hashlib
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa

from encoding import encoded
from transun.data import HashedId
from transun.data.hashing import hash_text


def test_hash_has_fixed_values() -> None:
    # A text of one word has SplitMix64's first output for the seed length ⊕ word. That of seed 0 is published, and
    # these texts, of one byte and of eight, have it.
    published = 0xE220A8397B1DCDAF
    texts = ["\x01", "\x08" + "\0" * 7]
    assert hash_text(pa.array(texts, pa.large_string())).view(np.uint64).tolist() == [published] * 2
    assert encoded(HashedId(1000), [*texts, None]).tolist() == [1 + published % 999] * 2 + [0]


def test_hash_spreads_like_md5() -> None:
    rows, texts = 257, [f"item-{i}" for i in range(50_000)]
    ours = np.bincount(encoded(HashedId(rows), texts).numpy(), minlength=rows)[1:]
    md5 = [int.from_bytes(hashlib.md5(text.encode()).digest()[:8], "little") % (rows - 1) for text in texts]
    # Chi-square with 255 degrees of freedom: mean 255, deviation 22.6.
    for counts in (ours, np.bincount(md5, minlength=rows - 1)):
        assert abs(((counts - counts.mean()) ** 2).sum() / counts.mean() - 255) < 5 * 22.6


def test_hash_is_the_same_in_another_process_and_for_integers() -> None:
    code = (
        "from transun.data import Features, HashedId;"
        "print(Features({'x': HashedId(10**6)}).fit({'x': ['Rom', '12']}).encode({'x': ['Rom', '12']})['x'].tolist())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    here = encoded(HashedId(10**6), ["Rom", "12"]).tolist()
    assert run.stdout.strip() == str(here)
    assert encoded(HashedId(10**6), [12]).tolist() == here[1:]
    assert encoded(HashedId(10**6), [12.0, None]).tolist() == [here[1], 0]
