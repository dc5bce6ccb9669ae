"""The order of the examples in the gallery: cases come first, and tools after them."""

from pathlib import Path

CASES = ("order_value", "watch_time", "customer_value", "demand", "claims_with_exposure", "ab_test")


def place_in_gallery(file: str) -> tuple[int, str]:
    """What examples are sorted by.

    >>> sorted(["onnx_export.py", "ab_test.py", "order_value.py", "demand.py"], key=place_in_gallery)
    ['order_value.py', 'demand.py', 'ab_test.py', 'onnx_export.py']
    """
    name = Path(file).stem
    return CASES.index(name) if name in CASES else len(CASES), name
