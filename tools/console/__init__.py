"""The live view of a run in a terminal. `view` folds events into a value, the regions lay it out, `live` paints it.

The rule: the view only looks. A terminal that stands still costs frames, and never an event or a moment of the run.
"""
