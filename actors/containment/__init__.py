"""Containment of commands: where a command of an agent runs, what it may touch there, and how all of it ends with its call.

`levels` orders the levels, `port` is what a level does, `none` and `bubblewrap` are the levels there are, and `detect` tells
which of them this machine has. Nothing here decides whether a command may run; that is the waist's.
"""
