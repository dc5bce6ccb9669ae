"""The picture of the demo."""

import xml.etree.ElementTree as ET

from transun.report.demo import calibration_svg


def test_the_calibration_shows_every_decile_of_both_models():
    def rows(factor):
        return [
            {"prediction": v, "target": factor * v, "low": 0.9 * factor * v, "high": 1.1 * factor * v}
            for v in (1.0, 10.0)
        ]

    root = ET.fromstring(calibration_svg({"LogMSE": rows(2.0), "LogSUN": rows(1.0)}))
    space = "{http://www.w3.org/2000/svg}"
    texts = [node.text for node in root.iter(f"{space}text")]
    assert {"LogMSE", "LogSUN", "right totals", "mean predicted order value"} <= set(texts)
    titles = [node.text for node in root.iter(f"{space}title")]
    assert titles == [
        "LogMSE: predicted 1, actual 2",
        "LogMSE: predicted 10, actual 20",
        "LogSUN: predicted 1, actual 1",
        "LogSUN: predicted 10, actual 10",
    ]
    # A calibrated model lies on the dashed diagonal: as far from the left end as from the lower one.
    dots = [node for node in root.iter(f"{space}circle") if node.find(f"{space}title") is not None]
    diagonal = next(node for node in root.iter(f"{space}polyline") if node.attrib["class"] == "even")
    (x0, y0), (x1, y1) = ([float(v) for v in point.split(",")] for point in diagonal.attrib["points"].split())
    for dot in dots[2:]:
        across = (float(dot.attrib["cx"]) - x0) / (x1 - x0)
        up = (float(dot.attrib["cy"]) - y0) / (y1 - y0)
        assert abs(across - up) < 0.01
