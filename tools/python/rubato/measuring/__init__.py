"""What a program uses and a plan saves: counters (rapl, recorder), any window (energy), windows in pairs (measurement, intervals), a live view (watch)."""
