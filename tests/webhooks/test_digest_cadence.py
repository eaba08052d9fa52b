"""When digests are sent, in time zones with and without summer time."""

from factbook.clock import HOUR, SECOND
from factbook.webhooks.digests import DigestCadence
from tests.service import NOON


def test_cadences_keep_their_hour_through_the_changes_of_summer_time() -> None:
    paris = DigestCadence("daily", hour=2, time_zone="Europe/Paris")
    # 2026-03-29 has no hour 2, and 2026-10-25 has two of them.
    spring, autumn = 1_774_652_400 * SECOND, 1_792_800_000 * SECOND
    times = [spring]
    for _ in range(3):
        times.append(paris.following(times[-1]))
    hours = [at // HOUR % 24 for at in times[1:]]
    assert hours == [1, 1, 0]
    first = paris.following(autumn)
    assert [first // HOUR % 24, paris.following(first) // HOUR % 24] == [0, 1]
    weekly = DigestCadence("weekly", "sunday", 23, "Pacific/Kiritimati")
    assert weekly.following(NOON) - NOON == 21 * HOUR
    for cadence in (paris, weekly, DigestCadence()):
        assert cadence.latest(cadence.following(NOON)) == cadence.following(NOON)
        assert cadence.latest(NOON) <= NOON < cadence.following(NOON)
