"""The manifest of the mission: what is asked for, and which tests show it."""
