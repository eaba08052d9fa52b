"""When something is due, and which process does it; knows no source."""
