"""What runs, simulations and measurements of Onbeat left, as DataFrames and figures.

All times are whole nanoseconds, as in the files: columns of times are of type ``Int64``, which has
a missing value and loses no digit. Functions that draw take data and return a
:class:`matplotlib.figure.Figure`; they change no global state.
"""

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
