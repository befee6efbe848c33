"""A drawn figure as a JSON file: its description and its points, without the results that they come from.

`attnbench plot --style paper` writes one beside each figure, for a paper's own repository; `attnbench plot NAME.json`
draws it again. The members are those of docs/figures.md and of the tables panel and point.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from notes import notes
from panel import Panel, Series
from results import NUMBERS, Figure, Misuse

COLUMNS = ("series", "role", *NUMBERS[:8], "replicates", "samples", *NUMBERS[8:], "note")  # of a point


def as_json(figure: Figure, panels: list[Panel]) -> bytes:
    content = {
        "recipe": figure.recipe,
        "name": figure.name,
        "description": {key: value for key, value in figure.description.items() if key != "panels"},
        "sentences": notes(panels),  # for the caption
        "panels": [_panel(panel) for panel in panels],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        # The keys of cells name rows of a results file that is not here.
        "description": {key: value for key, value in panel.description.items() if key != "cells"},
        "missing": panel.missing,
        "notes": panel.notes,
        "unit": panel.unit,
        "more_is_better": panel.more_is_better,
        "series": {name: dataclasses.asdict(series) for name, series in panel.series.items()},
        "points": [
            {name: _number(value) for name, value in row.items() if value == value and value != ""}
            for row in panel.points[list(COLUMNS)].to_dict("records")
        ],
        "image": None if panel.image is None else panel.image.tolist(),
    }


def _number(value: Any) -> Any:
    """JSON has no infinity; float() reads the words."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def read(path: Path) -> tuple[Figure, list[Panel]]:
    """Throws Misuse for a file that is not a drawn figure."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        panels = [_read_panel(panel) for panel in content["panels"]]
        description = {**content["description"], "panels": [panel.description for panel in panels]}
        return Figure(str(content["recipe"]), str(content["name"]), 0, description), panels
    except OSError as error:
        raise Misuse(f"{path}: {error.strerror}; expected a drawn figure, such as figures/NAME.json") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Misuse(
            f"{path}: not a drawn figure; expected a file that attnbench plot --style paper wrote, or a results file"
        ) from None


def _read_panel(content: dict[str, Any]) -> Panel:
    points = pd.DataFrame(content["points"], columns=list(COLUMNS))
    points = points.fillna({"series": "", "note": ""}).astype(dict.fromkeys(NUMBERS, float))
    image = content["image"]
    return Panel(
        dict(content["description"]),
        points.astype({"replicates": int, "samples": int}),
        [str(note) for note in content["notes"]],
        str(content["missing"]),
        str(content["unit"]),
        bool(content["more_is_better"]),
        {str(name): Series(**series) for name, series in content["series"].items()},
        None if image is None else np.array(image, float),
    )
