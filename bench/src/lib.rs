//! Benchmarks, as ratios against a floor in the same run.
