"""Frames of Spark, Ray, Dask and DuckDB: diagnosed, evaluated and predicted where their rows are.

Each engine has a module with one class, which needs the engine's extra: `transun.engines.spark.SparkRows`,
`transun.engines.ray.RayRows`, `transun.engines.dask.DaskRows`, `transun.engines.duckdb.DuckdbRows`.
"""

from transun.engines.rows import EngineRows

__all__ = ["EngineRows"]
