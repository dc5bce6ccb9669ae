"""`transun`, of which rank 1 is killed in its first life, after some steps: for tests of torchrun's restarts.

The state of training is saved after every step, so that the kill meets such a file.
"""

import os
import signal
import time

from transun.cli import main
from transun.training import loop, resume

_STEPS = 12


class _Killed(loop.TrainStep):
    steps = 0

    def __call__(self, part):
        _Killed.steps += 1
        if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and _Killed.steps > _STEPS:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(part)


if __name__ == "__main__":
    resume._PERIOD = 0.0
    loop.TrainStep = _Killed
    if os.environ["RANK"] == "0" and os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
        time.sleep(2.0)  # so that rank 1 is the first to look for the others, and must not find one that has failed
    main()
