"""Mutated bytes through every compiled walk with bounds checking on: `python -m tests.fuzz`. A codec brings one module
here:

    TOKENS                 pieces that mean something in its format, to be thrown in
    units(case)            its units in a case of tests/cases/<codec>/, as bytes
    check(case, units)     how many answers were compared; raises whatever if the compiled answer for these units is not
                           the plain one, depends on the units around, or leaves a byte unaccounted for; IndexError
                           comes from the walk itself
"""
