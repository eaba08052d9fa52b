"""Wire types of the REST interfaces: the server describes them, the client decodes them.

A type is as strict as a reader may be. Formats, bounds and known values of an answer are in its
description alone, so that a client takes what a newer server sends.
"""
