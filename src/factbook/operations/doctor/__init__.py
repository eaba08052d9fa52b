"""What may be wrong with an installation, looked at from outside: nothing is changed.

Each module looks at one topic, and says for each thing that it looked at how it is and what to do.
"""
