"""The virtual clock."""

import asyncio
from datetime import UTC, datetime

from mssql_sandbox.engine.clock import Clock


def test_a_frozen_clock_moves_only_when_told() -> None:
    clock = Clock(offset_minutes=60)
    clock.freeze()
    clock.set(datetime(2020, 1, 1, tzinfo=UTC))
    clock.advance(1.5)
    assert clock.now() == datetime(2020, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert clock.local_ticks() - clock.utc_ticks() == 36_000_000_000
    assert clock.local_datetime() == (43_829 * 86_400 + 3_600) * 300 + 450
    clock.resume()
    assert clock.now() >= datetime(2020, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)


def test_sleepers_wake_when_their_time_has_come_however_it_came() -> None:
    async def play() -> list[str]:
        clock, woken = Clock(), []
        clock.freeze()

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(name)

        tasks = [asyncio.ensure_future(sleeper("late", 3600)), asyncio.ensure_future(sleeper("soon", 60))]
        await asyncio.sleep(0)
        clock.advance(61)
        await tasks[1]
        assert woken == ["soon"]
        clock.advance(3600)
        await asyncio.gather(*tasks)
        clock.resume()
        await clock.sleep(0.001)
        return woken

    assert asyncio.run(play()) == ["soon", "late"]
