"""The chemical elements: number, symbol, names, standard atomic weight.

Source: IUPAC, Standard atomic weights of the elements 2021, abridged values; for elements
without one the mass number of a long-lived isotope.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class Element(NamedTuple):
    """One element; its weight is in grams a mole."""

    number: int
    symbol: str
    name: str
    chinese_name: str
    weight: float


@cache
def elements() -> tuple[Element, ...]:
    """Return all 118 elements by number."""
    rows = (line.split() for line in _TABLE.strip().splitlines())
    return tuple(
        Element(number, symbol, name, chinese, float(weight))
        for number, (symbol, name, chinese, weight) in enumerate(rows, 1)
    )


_TABLE = """
H Hydrogen 氢 1.008
He Helium 氦 4.0026
Li Lithium 锂 6.94
Be Beryllium 铍 9.0122
B Boron 硼 10.81
C Carbon 碳 12.011
N Nitrogen 氮 14.007
O Oxygen 氧 15.999
F Fluorine 氟 18.998
Ne Neon 氖 20.180
Na Sodium 钠 22.990
Mg Magnesium 镁 24.305
Al Aluminium 铝 26.982
Si Silicon 硅 28.085
P Phosphorus 磷 30.974
S Sulfur 硫 32.06
Cl Chlorine 氯 35.45
Ar Argon 氩 39.95
K Potassium 钾 39.098
Ca Calcium 钙 40.078
Sc Scandium 钪 44.956
Ti Titanium 钛 47.867
V Vanadium 钒 50.942
Cr Chromium 铬 51.996
Mn Manganese 锰 54.938
Fe Iron 铁 55.845
Co Cobalt 钴 58.933
Ni Nickel 镍 58.693
Cu Copper 铜 63.546
Zn Zinc 锌 65.38
Ga Gallium 镓 69.723
Ge Germanium 锗 72.630
As Arsenic 砷 74.922
Se Selenium 硒 78.971
Br Bromine 溴 79.904
Kr Krypton 氪 83.798
Rb Rubidium 铷 85.468
Sr Strontium 锶 87.62
Y Yttrium 钇 88.906
Zr Zirconium 锆 91.224
Nb Niobium 铌 92.906
Mo Molybdenum 钼 95.95
Tc Technetium 锝 98
Ru Ruthenium 钌 101.07
Rh Rhodium 铑 102.91
Pd Palladium 钯 106.42
Ag Silver 银 107.87
Cd Cadmium 镉 112.41
In Indium 铟 114.82
Sn Tin 锡 118.71
Sb Antimony 锑 121.76
Te Tellurium 碲 127.60
I Iodine 碘 126.90
Xe Xenon 氙 131.29
Cs Caesium 铯 132.91
Ba Barium 钡 137.33
La Lanthanum 镧 138.91
Ce Cerium 铈 140.12
Pr Praseodymium 镨 140.91
Nd Neodymium 钕 144.24
Pm Promethium 钷 145
Sm Samarium 钐 150.36
Eu Europium 铕 151.96
Gd Gadolinium 钆 157.25
Tb Terbium 铽 158.93
Dy Dysprosium 镝 162.50
Ho Holmium 钬 164.93
Er Erbium 铒 167.26
Tm Thulium 铥 168.93
Yb Ytterbium 镱 173.05
Lu Lutetium 镥 174.97
Hf Hafnium 铪 178.49
Ta Tantalum 钽 180.95
W Tungsten 钨 183.84
Re Rhenium 铼 186.21
Os Osmium 锇 190.23
Ir Iridium 铱 192.22
Pt Platinum 铂 195.08
Au Gold 金 196.97
Hg Mercury 汞 200.59
Tl Thallium 铊 204.38
Pb Lead 铅 207.2
Bi Bismuth 铋 208.98
Po Polonium 钋 209
At Astatine 砹 210
Rn Radon 氡 222
Fr Francium 钫 223
Ra Radium 镭 226
Ac Actinium 锕 227
Th Thorium 钍 232.04
Pa Protactinium 镤 231.04
U Uranium 铀 238.03
Np Neptunium 镎 237
Pu Plutonium 钚 244
Am Americium 镅 243
Cm Curium 锔 247
Bk Berkelium 锫 247
Cf Californium 锎 251
Es Einsteinium 锿 252
Fm Fermium 镄 257
Md Mendelevium 钔 258
No Nobelium 锘 259
Lr Lawrencium 铹 262
Rf Rutherfordium 𬬻 267
Db Dubnium 𬭊 268
Sg Seaborgium 𬭳 269
Bh Bohrium 𬭛 270
Hs Hassium 𬭶 269
Mt Meitnerium 鿏 278
Ds Darmstadtium 𫟼 281
Rg Roentgenium 𬬭 282
Cn Copernicium 鿔 285
Nh Nihonium 鿭 286
Fl Flerovium 𫓧 289
Mc Moscovium 镆 290
Lv Livermorium 𫟷 293
Ts Tennessine 鿬 294
Og Oganesson 鿫 294
"""
