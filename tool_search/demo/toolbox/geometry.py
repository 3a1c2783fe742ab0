"""Geometry of the plane and of solids, in any unit as long as it is one."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import math

from tool_search.demo.toolbox.arguments import require_length, require_positive, require_within
from tool_search.demo.toolbox.rounding import tidy


def circle_measures(radius: float) -> dict[str, float]:
    """Compute a circle's area and circumference. 计算圆的面积和周长。

    Args:
        radius: The radius, 半径.
    """
    require_positive("radius", radius)
    return {"area": tidy(math.pi * radius * radius), "circumference": tidy(math.tau * radius)}


def rectangle_measures(width: float, height: float) -> dict[str, float]:
    """Compute a rectangle's area, perimeter and diagonal. 计算矩形的面积、周长和对角线。

    Args:
        width: One side, 宽.
        height: The other side, 高.
    """
    require_positive("width and height", width, height)
    return {
        "area": tidy(width * height),
        "perimeter": tidy(2 * (width + height)),
        "diagonal": tidy(math.hypot(width, height)),
    }


def triangle_from_sides(a: float, b: float, c: float) -> dict[str, float]:
    """Compute a triangle's area and angles from its sides. 由三边求三角形面积和角度。

    Args:
        a: The first side, 边 a; its angle lies opposite.
        b: The second side, 边 b.
        c: The third side, 边 c.

    Returns:
        area, perimeter, and the angles in degrees: angle_a, angle_b, angle_c.
    """
    for side in (a, b, c):
        require_within("each side", side, 1e-50, 1e50)
    shortest, middle, longest = sorted((a, b, c))
    if shortest + middle <= longest:
        raise ValueError(f"sides {a!r}, {b!r}, {c!r} make no triangle: two must exceed the third")
    half = (a + b + c) / 2
    # Kahan's form of Heron's formula: stable for needle-shaped triangles.
    product = (longest + (middle + shortest)) * (shortest - (longest - middle))
    product *= (shortest + (longest - middle)) * (longest + (middle - shortest))
    return {
        "area": tidy(math.sqrt(max(product, 0.0)) / 4),
        "perimeter": tidy(half * 2),
        "angle_a": _angle(a, b, c),
        "angle_b": _angle(b, a, c),
        "angle_c": _angle(c, a, b),
    }


def right_triangle_side(leg: float, other: float, other_is_hypotenuse: bool = False) -> float:
    """Find a right triangle's missing side by Pythagoras. 勾股定理求直角三角形的边。

    Args:
        leg: A side at the right angle, 直角边.
        other: The other leg, or the hypotenuse, 另一直角边或斜边.
        other_is_hypotenuse: True if `other` is the hypotenuse (斜边), the longest side.
    """
    require_positive("leg and other", leg, other)
    if not other_is_hypotenuse:
        return tidy(math.hypot(leg, other))
    if other <= leg:
        raise ValueError(f"the hypotenuse {other!r} must be longer than the leg {leg!r}")
    return tidy(math.sqrt(other - leg) * math.sqrt(other + leg))


def polygon_area(points: list[list[float]]) -> float:
    """Compute a polygon's area from its corner points. 由顶点坐标求多边形面积。

    Args:
        points: The corners in order as [x, y], 顶点; at least three, sides must not cross.
    """
    require_length("points", points, 3, 10_000)
    for point in points:
        require_length("each point", point, 2, 2)
    following = [*points[1:], points[0]]
    pairs = zip(points, following, strict=True)
    return tidy(abs(sum(x * v - u * y for (x, y), (u, v) in pairs)) / 2)


def point_distance(start: list[float], end: list[float]) -> float:
    """Compute the straight distance of two points. 计算两点之间的直线距离。

    Args:
        start: The coordinates of one point, 起点; any number of dimensions.
        end: The coordinates of the other, 终点.
    """
    require_length("start", start, 1, 100)
    require_length("end", end, len(start), len(start))
    return tidy(math.dist(start, end))


def sphere_measures(radius: float) -> dict[str, float]:
    """Compute a sphere's volume and surface. 计算球的体积和表面积。

    Args:
        radius: The radius, 半径.
    """
    require_within("radius", radius, 1e-50, 1e50)
    return {
        "volume": tidy(4 / 3 * math.pi * radius**3),
        "surface": tidy(4 * math.pi * radius**2),
    }


def cylinder_measures(radius: float, height: float) -> dict[str, float]:
    """Compute a cylinder's volume and surface. 计算圆柱的体积和表面积。

    Args:
        radius: The radius of the base, 底面半径.
        height: The height, 高.
    """
    require_within("radius", radius, 1e-50, 1e50)
    require_within("height", height, 1e-50, 1e50)
    return {
        "volume": tidy(math.pi * radius**2 * height),
        "surface": tidy(math.tau * radius * (radius + height)),
    }


def _angle(opposite: float, left: float, right: float) -> float:
    cosine = (left * left + right * right - opposite * opposite) / (2 * left * right)
    return round(math.degrees(math.acos(max(-1.0, min(1.0, cosine)))), 9)


TOOLS = (
    circle_measures,
    rectangle_measures,
    triangle_from_sides,
    right_triangle_side,
    polygon_area,
    point_distance,
    sphere_measures,
    cylinder_measures,
)
