"""How an array is drawn as an image: weights on a logarithmic scale with a floor, differences around zero."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
from panel import Panel
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from numpy.typing import NDArray
from PIL import Image
from style import PAPER
from ticks import linear_ticks, superscript

# Blues without its palest part, so that readers can tell the floor from 0, which has no colour.
PALE_TO_DARK = ListedColormap(colormaps["Blues"](np.linspace(0.12, 1, 256)), name="pale to dark")
PALE_TO_DARK.set_bad(PAPER)
NEGATIVE = "#d75928"  # for negative weights; the footnote counts them
DIFFERENCE_QUANTILE = 0.99  # a few entries far beyond the others would leave the rest pale


def draw_image(axes: Axes, panel: Panel) -> None:
    """Rows downwards, square elements, and a colour bar."""
    axes.grid(False)
    if panel.image is None:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    floor = float(panel.description.get("floor") or 0)
    drawn = _weights(axes, panel.image, floor) if floor else _differences(axes, panel.image)
    rows, columns = panel.image.shape
    for set_ticks, size in ((axes.set_xticks, columns), (axes.set_yticks, rows)):
        ticks, _, labels = linear_ticks(0, size - 1, 4)
        set_ticks(ticks, labels)
    extend = "min" if floor else "both"
    bar = axes.figure.colorbar(drawn, ax=axes, extend=extend, fraction=0.05, pad=0.03, use_gridspec=False)
    bar.outline.set_linewidth(0.5)
    bar.ax.minorticks_off()
    if floor:
        exponents = range(int(np.ceil(np.log10(floor))), 1)
        bar.set_ticks([10.0**k for k in exponents], labels=[f"10{superscript(k)}" if k else "1" for k in exponents])
    bar.ax.tick_params(labelsize=6.5)
    if panel.description.get("value_label"):
        bar.set_label(str(panel.description["value_label"]))


def _show(axes: Axes, values: NDArray[np.float64], **how: object) -> object:
    return axes.imshow(values, origin="upper", aspect="equal", interpolation="nearest", **how)


def _weights(axes: Axes, weights: NDArray[np.float64], floor: float) -> object:
    above = np.ma.masked_less_equal(weights, 0).clip(floor, 1)
    drawn = _show(axes, above, cmap=PALE_TO_DARK, norm=LogNorm(floor, 1))
    if (weights < 0).any():
        _show(axes, np.ma.masked_greater_equal(weights, 0), cmap=ListedColormap([NEGATIVE]))
    return drawn


def _differences(axes: Axes, differences: NDArray[np.float64]) -> object:
    magnitudes = np.abs(differences)
    bound = float(np.quantile(magnitudes, DIFFERENCE_QUANTILE)) or float(magnitudes.max()) or 1.0
    return _show(axes, differences, cmap="PuOr", norm=Normalize(-bound, bound))


def with_palettes(svg: bytes) -> bytes:
    """Gives each image of at most 256 colours, as many as a colour map has, a palette: a third of the bytes."""
    return re.sub(rb"data:image/png;base64,\s*([^\"]+)", _with_palette, svg)


def _with_palette(found: re.Match[bytes]) -> bytes:
    image = Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGBA")
    colours, positions = np.unique(np.asarray(image).reshape(-1, 4).view(np.uint32), return_inverse=True)
    if len(colours) > 256:
        return found[0]
    paletted = Image.fromarray(positions.astype(np.uint8).reshape(image.size[::-1]), mode="P")
    channels = colours.view(np.uint8).reshape(-1, 4)
    paletted.putpalette(channels[:, :3].tobytes())
    buffer = io.BytesIO()
    paletted.save(buffer, "png", optimize=True, transparency=channels[:, 3].tobytes())
    return b"data:image/png;base64," + base64.b64encode(buffer.getvalue())
