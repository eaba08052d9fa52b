"""Housekeeping without rests, for days that are simulated."""

from factbook.clock import Throttle


class NoRest(Throttle):
    """A throttle that lets work go on at once."""

    REST = 0.0
