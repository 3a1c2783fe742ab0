"""How a real model uses tool search: the parts of `benchmarks/bench_model.py`."""
