"""What runs, simulations and measurements of Onbeat left, as DataFrames and figures.

All times are whole nanoseconds, as in the files: columns of times are of type ``Int64``, which has
a missing value and loses no digit. Functions that draw take data and return a
:class:`matplotlib.figure.Figure`; they change no global state.

Programs of a run import :mod:`onbeat.channels` or :mod:`onbeat.aio`. So that they start at once,
pandas and matplotlib are imported only when one of the names below is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onbeat._load import Measurement, NotAnOutput, Run, Simulation, load
    from onbeat._plots import histogram, scenario_table, time_series

__all__ = [
    "Measurement",
    "NotAnOutput",
    "Run",
    "Simulation",
    "histogram",
    "load",
    "scenario_table",
    "time_series",
]
_FIGURES = ("histogram", "scenario_table", "time_series")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("onbeat._plots" if name in _FIGURES else "onbeat._load"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
