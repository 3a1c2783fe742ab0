"""The parts of `benchmarks/bench_model.py`, which asks a real model."""
