"""Figures of scorecards for readers: standings, trends, the matrix and the next steps."""
