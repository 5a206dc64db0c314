"""`python -m bench.device_check`: what can only be seen on a machine with a GPU, checked in one command.

__main__.py  the command
check.py     `Check`, `Verdict`, and running them, each alone
checks.py    all checks of a device, in their order
size.py      how much of everything
pictures.py  the images that they look at, and what is done to them
agree.py     whether DALI on the device makes what the CPU kernel makes
busy.py      work that keeps the device busy for as long as is wanted
trainer.py   the training step that loaders feed here
loop.py      loops over a loader: under a profiler, and with synchronization forbidden
trace.py     what a profiler saw: copies, the work that they hide behind, synchronization
rates.py     images a second: decoded, resident, end to end
report.py    the verdicts as a table and as JSON
"""
