"""Reading, writing and ordering by index, where an index may be one of several.

An index is a `Enclosure` of integers; the members of its interval are its candidates. What is read
at candidates is their hull; what is written at them may have stayed as it was.
"""
