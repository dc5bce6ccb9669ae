"""The worker: requests that wait are answered together, and each by its own answer."""

import asyncio
import threading

import pytest

from transun.serving.batching import OverloadedError, Worker


def test_requests_that_wait_are_answered_together_and_in_order():
    gate, batches = threading.Event(), []

    def answer(bodies):
        gate.wait(30)
        batches.append(len(bodies))
        return [body.decode() for body in bodies]

    async def main():
        worker = Worker(answer, batch=100, waiting=100)
        tasks = [asyncio.create_task(worker.submit(str(number).encode())) for number in range(9)]
        await asyncio.sleep(0)  # every task has submitted its body, and the first batch has not begun
        await asyncio.sleep(0)
        late = asyncio.create_task(worker.submit(b"late"))
        await asyncio.sleep(0)
        gate.set()
        answers = await asyncio.gather(*tasks, late)
        worker.close()
        return answers

    assert asyncio.run(main()) == [*map(str, range(9)), "late"]
    assert batches == [9, 1]


def test_a_batch_is_no_larger_than_allowed_and_one_request_always_fits():
    sizes = []

    def answer(bodies):
        sizes.append([len(body) for body in bodies])
        return list(bodies)

    async def main():
        worker = Worker(answer, batch=10, waiting=1_000)
        await asyncio.gather(*(worker.submit(b"x" * size) for size in (6, 6, 4, 50, 1)))
        worker.close()

    asyncio.run(main())
    assert sizes == [[6], [6, 4], [50], [1]]


def test_an_error_concerns_its_own_request_and_a_failure_those_of_its_batch():
    def answer(bodies):
        if b"crash" in bodies:
            raise RuntimeError("a mistake of ours")
        return [ValueError("wrong") if body == b"bad" else body for body in bodies]

    async def main():
        worker = Worker(answer, batch=100, waiting=100)
        calls = (worker.submit(body) for body in (b"good", b"bad"))
        good, bad = await asyncio.gather(*calls, return_exceptions=True)
        (crash,) = await asyncio.gather(worker.submit(b"crash"), return_exceptions=True)
        after = await worker.submit(b"good")
        worker.close()
        return good, str(bad), str(crash), after

    assert asyncio.run(main()) == (b"good", "wrong", "a mistake of ours", b"good")


def test_more_than_may_wait_is_refused():
    async def main():
        worker = Worker(lambda bodies: list(bodies), batch=10, waiting=10)
        tasks = [asyncio.create_task(worker.submit(b"12345678")) for _ in range(2)]
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        after = await worker.submit(b"123456789012")
        worker.close()
        return answers, after

    (first, second), after = asyncio.run(main())
    assert first == b"12345678"
    assert after == b"123456789012"  # alone it is allowed, whatever its size
    assert isinstance(second, OverloadedError)


def test_a_client_that_has_gone_disturbs_nobody():
    async def main():
        worker = Worker(lambda bodies: list(bodies), batch=1, waiting=10)
        gone, stays = (asyncio.create_task(worker.submit(body)) for body in (b"1", b"2"))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        answer = await stays
        worker.close()
        return answer

    assert asyncio.run(main()) == b"2"


def test_bodies_of_other_calls_wait_within_the_same_limit_and_make_room_when_they_are_done():
    gate = threading.Event()

    def length(body):
        gate.wait(30)
        return len(body)

    async def main():
        worker = Worker(lambda bodies: list(bodies), batch=10, waiting=10)
        first = asyncio.create_task(worker.call(length, b"12345678"))
        await asyncio.sleep(0)  # it has begun, and waits for the gate
        with pytest.raises(OverloadedError):
            await worker.call(length, b"123")
        with pytest.raises(OverloadedError):
            await worker.submit(b"123")
        gate.set()
        answers = await first, await worker.call(length, b"1234567890"), await worker.submit(b"1234567890")
        worker.close()
        return answers

    assert asyncio.run(main()) == (8, 10, b"1234567890")
