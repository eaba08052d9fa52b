"""Charts of values over time as SVG, made by functions without any state."""
