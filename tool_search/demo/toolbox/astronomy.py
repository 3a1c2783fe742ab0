"""The times of solar longitudes and of new moons, to about a minute.

Source: J. Meeus, Astronomical Algorithms, 2nd edition: chapter 25 with the VSOP87
terms of appendix III for the Sun, chapter 49 for the Moon. The difference of dynamical
and universal time is that of Espenak and Meeus (NASA, Polynomial Expressions for Delta T)
until 2005.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

J2000 = datetime(2000, 1, 1, 12, tzinfo=UTC)
_TROPICAL_YEAR = 365.2422
_SYNODIC_MONTH = 29.530588861

# Amplitude in 1e-8 radian, phase, and frequency a millennium.
_LONGITUDE_0 = (
    (175347046, 0, 0), (3341656, 4.6692568, 6283.07585), (34894, 4.6261, 12566.1517),
    (3497, 2.7441, 5753.3849), (3418, 2.8289, 3.5231), (3136, 3.6277, 77713.7715),
    (2676, 4.4181, 7860.4194), (2343, 6.1352, 3930.2097), (1324, 0.7425, 11506.7698),
    (1273, 2.0371, 529.691), (1199, 1.1096, 1577.3435), (990, 5.233, 5884.927),
    (902, 2.045, 26.298), (857, 3.508, 398.149), (780, 1.179, 5223.694),
    (753, 2.533, 5507.553), (505, 4.583, 18849.228), (492, 4.205, 775.523),
    (357, 2.92, 0.067), (317, 5.849, 11790.629), (284, 1.899, 796.298),
    (271, 0.315, 10977.079), (243, 0.345, 5486.778), (206, 4.806, 2544.314),
    (205, 1.869, 5573.143), (202, 2.458, 6069.777), (156, 0.833, 213.299),
    (132, 3.411, 2942.463), (126, 1.083, 20.775), (115, 0.645, 0.98),
    (103, 0.636, 4694.003), (102, 0.976, 15720.839), (102, 4.267, 7.114),
    (99, 6.21, 2146.17), (98, 0.68, 155.42), (86, 5.98, 161000.69),
    (85, 1.3, 6275.96), (85, 3.67, 71430.7), (80, 1.81, 17260.15),
    (79, 3.04, 12036.46), (75, 1.76, 5088.63), (74, 3.5, 3154.69), (74, 4.68, 801.82),
    (70, 0.83, 9437.76), (62, 3.98, 8827.39), (61, 1.82, 7084.9), (57, 2.78, 6286.6),
    (56, 4.39, 14143.5), (56, 3.47, 6279.55), (52, 0.19, 12139.55), (52, 1.33, 1748.02),
    (51, 0.28, 5856.48), (49, 0.49, 1194.45), (41, 5.37, 8429.24), (41, 2.4, 19651.05),
    (39, 6.17, 10447.39), (37, 6.04, 10213.29), (37, 2.57, 1059.38), (36, 1.71, 2352.87),
    (36, 1.78, 6812.77), (33, 0.59, 17789.85), (30, 0.44, 83996.85), (30, 2.74, 1349.87),
    (25, 3.16, 4690.48),
)  # fmt: skip
_LONGITUDE_1 = (
    (628331966747, 0, 0), (206059, 2.678235, 6283.07585), (4303, 2.6351, 12566.1517),
    (425, 1.59, 3.523), (119, 5.796, 26.298), (109, 2.966, 1577.344),
    (93, 2.59, 18849.23), (72, 1.14, 529.69), (68, 1.87, 398.15),
    (67, 4.41, 5507.55), (59, 2.89, 5223.69), (56, 2.17, 155.42),
    (45, 0.4, 796.3), (36, 0.47, 775.52), (29, 2.65, 7.11), (21, 5.34, 0.98),
    (19, 1.85, 5486.78), (19, 4.97, 213.3), (17, 2.99, 6275.96), (16, 0.03, 2544.31),
)  # fmt: skip
_LONGITUDE_2 = ((52919, 0, 0), (8720, 1.0721, 6283.0758), (309, 0.867, 12566.152))

# Days of correction: amplitude, power of E, multiples of M (Sun), M', F, Omega.
_NEW_MOON = (
    (-0.4072, 0, 0, 1, 0, 0), (0.17241, 1, 1, 0, 0, 0), (0.01608, 0, 0, 2, 0, 0),
    (0.01039, 0, 0, 0, 2, 0), (0.00739, 1, -1, 1, 0, 0), (-0.00514, 1, 1, 1, 0, 0),
    (0.00208, 2, 2, 0, 0, 0), (-0.00111, 0, 0, 1, -2, 0), (-0.00057, 0, 0, 1, 2, 0),
    (0.00056, 1, 1, 2, 0, 0), (-0.00042, 0, 0, 3, 0, 0), (0.00042, 1, 1, 0, 2, 0),
    (0.00038, 1, 1, 0, -2, 0), (-0.00024, 1, -1, 2, 0, 0), (-0.00017, 0, 0, 0, 0, 1),
    (-0.00007, 0, 2, 1, 0, 0), (0.00004, 0, 0, 2, -2, 0), (0.00004, 0, 3, 0, 0, 0),
    (0.00003, 0, 1, 1, -2, 0), (0.00003, 0, 0, 2, 2, 0), (-0.00003, 0, 1, 1, 2, 0),
    (0.00003, 0, -1, 1, 2, 0), (-0.00002, 0, -1, 1, -2, 0), (-0.00002, 0, 1, 3, 0, 0),
    (0.00002, 0, 0, 4, 0, 0),
)  # fmt: skip
# Amplitude in 1e-6 day, degrees at epoch, degrees a lunation.
_PLANETS = (
    (325, 299.77, 0.107408), (165, 251.88, 0.016321), (164, 251.83, 26.651886),
    (126, 349.42, 36.412478), (110, 84.66, 18.206239), (62, 141.74, 53.303771),
    (60, 207.14, 2.453732), (56, 154.84, 7.30686), (47, 34.52, 27.261239),
    (42, 207.19, 0.121824), (40, 291.34, 1.844379), (37, 161.72, 24.198154),
    (35, 239.56, 25.513099), (23, 331.55, 3.592518),
)  # fmt: skip


def sun_longitude(days: float) -> float:
    """Return the Sun's apparent longitude in degrees, `days` of dynamical time after J2000."""
    millennia = days / 365250
    series = (_LONGITUDE_0, _LONGITUDE_1, _LONGITUDE_2)
    radians = sum(
        amplitude * 1e-8 * math.cos(phase + frequency * millennia) * millennia**power
        for power, terms in enumerate(series)
        for amplitude, phase, frequency in terms
    )
    centuries = days / 36525
    node = math.radians(125.04452 - 1934.136261 * centuries)
    mean = math.radians(280.4665 + 36000.7698 * centuries)
    moon = math.radians(218.3165 + 481267.8813 * centuries)
    nutation = -17.2 * math.sin(node) - 1.32 * math.sin(2 * mean)
    nutation += 0.21 * math.sin(2 * node) - 0.23 * math.sin(2 * moon)
    anomaly = math.radians(357.52911 + 35999.05029 * centuries)
    distance = 1.00014 - 0.01671 * math.cos(anomaly) - 0.00014 * math.cos(2 * anomaly)
    # -0.09": from the VSOP87 frame to that of the FK5.
    arc_seconds = nutation - 20.4898 / distance - 0.09033
    return (math.degrees(radians) + 180 + arc_seconds / 3600) % 360


def sun_reaches(longitude: float, near: datetime) -> datetime:
    """Find the moment nearest to `near` when the Sun's apparent longitude is `longitude`."""
    days = (near - J2000) / timedelta(days=1)
    for _ in range(6):
        gap = (longitude - sun_longitude(days) + 180) % 360 - 180
        days += gap * _TROPICAL_YEAR / 360
    return _universal(days)


def new_moon(lunation: int) -> datetime:
    """Find the moment of the new moon, counted from that of 2000-01-06."""
    century = lunation * _SYNODIC_MONTH / 36525
    mean = 2451550.09766 + _SYNODIC_MONTH * lunation + 0.00015437 * century**2
    eccentricity = 1 - 0.002516 * century - 0.0000074 * century**2
    sun = 2.5534 + 29.1053567 * lunation - 0.0000014 * century**2
    moon = 201.5643 + 385.81693528 * lunation + 0.0107582 * century**2
    latitude = 160.7108 + 390.67050284 * lunation - 0.0016118 * century**2
    node = 124.7746 - 1.56375588 * lunation + 0.0020672 * century**2
    correction = sum(
        amplitude
        * eccentricity**power
        * math.sin(math.radians(s * sun + m * moon + f * latitude + n * node))
        for amplitude, power, s, m, f, n in _NEW_MOON
    )
    correction += 1e-6 * sum(
        amplitude * math.sin(math.radians(start + rate * lunation))
        for amplitude, start, rate in _PLANETS
    )
    return _universal(mean + correction - 2451545)


def lunation_near(moment: datetime) -> int:
    """Return the number of the lunation whose mean new moon is nearest to a moment."""
    days = (moment - J2000) / timedelta(days=1)
    return round((days - 5.09766) / _SYNODIC_MONTH)


def _universal(days: float) -> datetime:
    year = 2000 + days / 365.25
    return J2000 + timedelta(days=days - _delta_t(year) / 86400)


def _delta_t(year: float) -> float:
    """Return the seconds of dynamical time ahead of universal time, for 1900 to 2100."""
    if year < 1920:
        t = year - 1900
        return -2.79 + 1.494119 * t - 0.0598939 * t**2 + 0.0061966 * t**3 - 0.000197 * t**4
    if year < 1941:
        t = year - 1920
        return 21.2 + 0.84493 * t - 0.0761 * t**2 + 0.0020936 * t**3
    if year < 1961:
        t = year - 1950
        return 29.07 + 0.407 * t - t**2 / 233 + t**3 / 2547
    if year < 1986:
        t = year - 1975
        return 45.45 + 1.067 * t - t**2 / 260 - t**3 / 718
    if year < 2005:
        t = year - 2000
        low = 63.86 + 0.3345 * t - 0.060374 * t**2 + 0.0017275 * t**3
        return low + 0.000651814 * t**4 + 0.00002373599 * t**5
    # Observed values since 2005; the published polynomial runs ahead of them.
    return 64.7 + 0.25 * (year - 2005)
