"""Colours: hex, RGB, HSL, CMYK, contrast, mixing."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import colorsys
import re

from tool_search.demo.toolbox.arguments import require_within

_HEX = re.compile(r"#?([0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE | re.ASCII)


def hex_to_rgb(color: str) -> list[int]:
    """Convert a hex colour to red, green, blue. 十六进制颜色转 RGB。

    Args:
        color: Such as "#ff8800" or "#f80", 颜色.
    """
    return list(_rgb(color))


def rgb_to_hex(red: int, green: int, blue: int) -> str:
    """Convert red, green, blue to a hex colour. RGB 转十六进制颜色。

    Args:
        red: 0 to 255, 红.
        green: 0 to 255, 绿.
        blue: 0 to 255, 蓝.
    """
    _require_channels(red, green, blue)
    return f"#{red:02x}{green:02x}{blue:02x}"


def rgb_to_hsl(red: int, green: int, blue: int) -> list[float]:
    """Convert red, green, blue to hue, saturation, lightness. RGB 转 HSL 颜色。

    Args:
        red: 0 to 255, 红.
        green: 0 to 255, 绿.
        blue: 0 to 255, 蓝.

    Returns:
        Hue in degrees, saturation and lightness in percent, to one decimal.
    """
    _require_channels(red, green, blue)
    hue, lightness, saturation = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
    return [round(hue * 360, 1), round(saturation * 100, 1), round(lightness * 100, 1)]


def hsl_to_rgb(hue: float, saturation: float, lightness: float) -> list[int]:
    """Convert hue, saturation, lightness to red, green, blue. HSL 转 RGB 颜色。

    Args:
        hue: The angle in degrees, 色相; 0 to 360.
        saturation: In percent, 饱和度; 0 to 100.
        lightness: In percent, 亮度; 0 to 100.
    """
    require_within("hue", hue, 0, 360)
    require_within("saturation", saturation, 0, 100)
    require_within("lightness", lightness, 0, 100)
    channels = colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)
    return [round(channel * 255) for channel in channels]


def rgb_to_cmyk(red: int, green: int, blue: int) -> list[float]:
    """Convert red, green, blue to CMYK for print. RGB 转印刷用的 CMYK。

    Args:
        red: 0 to 255, 红.
        green: 0 to 255, 绿.
        blue: 0 to 255, 蓝.

    Returns:
        Cyan, magenta, yellow and black in percent, without a colour profile.
    """
    _require_channels(red, green, blue)
    brightest = max(red, green, blue)
    if brightest == 0:
        return [0.0, 0.0, 0.0, 100.0]
    inks = [round((brightest - c) / brightest * 100, 1) for c in (red, green, blue)]
    return [*inks, round((255 - brightest) / 255 * 100, 1)]


def contrast_ratio(foreground: str, background: str) -> dict[str, float | bool]:
    """Compute the WCAG contrast of two colours. 计算两种颜色的对比度（WCAG）。

    Args:
        foreground: The colour of the text, 前景色, such as "#333333".
        background: The colour behind it, 背景色.

    Returns:
        The ratio from 1 to 21, and whether normal text passes AA (4.5) and AAA (7).
    """
    low, high = sorted((_luminance(foreground), _luminance(background)))
    ratio = (high + 0.05) / (low + 0.05)
    return {"ratio": round(ratio, 2), "passes_aa": ratio >= 4.5, "passes_aaa": ratio >= 7}


def mix_colors(first: str, second: str, share_of_second: float = 0.5) -> str:
    """Mix two colours. 按比例混合两种颜色。

    Args:
        first: One colour, 颜色一, such as "#ff0000".
        second: The other, 颜色二.
        share_of_second: How much of the second, 第二种颜色的比例; 0 to 1.
    """
    require_within("share_of_second", share_of_second, 0, 1)
    pairs = zip(_rgb(first), _rgb(second), strict=True)
    red, green, blue = (int(a + (b - a) * share_of_second + 0.5) for a, b in pairs)
    return rgb_to_hex(red, green, blue)


def _rgb(color: str) -> tuple[int, int, int]:
    match = _HEX.fullmatch(color.strip())
    if match is None:
        raise ValueError(f"color {color!r} is not a hex colour like #ff8800 or #f80")
    digits = match[1] if len(match[1]) == 6 else "".join(c * 2 for c in match[1])
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def _require_channels(red: int, green: int, blue: int) -> None:
    for name, value in (("red", red), ("green", green), ("blue", blue)):
        require_within(name, value, 0, 255)


def _luminance(color: str) -> float:
    """Relative luminance as WCAG 2.1 defines it."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (channel / 255 for channel in _rgb(color))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


TOOLS = (
    hex_to_rgb,
    rgb_to_hex,
    rgb_to_hsl,
    hsl_to_rgb,
    rgb_to_cmyk,
    contrast_ratio,
    mix_colors,
)
