"""JEF: two-byte kanji of Fujitsu mainframes. Its standard area (A1A1-FEFE) is the row and cell of JIS, as in EUC.

`glyph` keeps the shapes of 1978 apart (B0A2 is the older form of its character), `modern` reads the JIS of today.
User-defined cells (80A1-A0FE, 外字) go to the private use area. 4040 is a wide blank.

Of the extended area (41A1-7FFE, 拡張漢字, 拡張非漢字) only the cells listed here are known. The others are undefined:
a record that holds one is rejected. A site's table (option `gaiji`) gives them their meaning; `python -m
infra.local.jef_table` writes one with all of the area, from jef4j (Apache License 2.0).

Source: docs/formats/linkexpress_group.md.
>>> [hex(table(mapping)[0xB0A2]) for mapping in ("glyph", "modern")]
['0x555e', '0x5516']
"""

import numpy as np

from inlet.fields.pairs import pairs

GLYPHS_1978 = """
B0A2=555E B0B3=9C3A B1B3=5653 B1EB=7130 B2A9=9DAF B2AA=9DD7 B3C2=8823 B3C9=652A B3F6=7AC8 B3FA=5699 B4C2=3D4E
B4C3=704C B4D2=8AEB B6A2=4FE0 B6C6=582F B6ED=8EC0 B7D2=7E6B B7D5=8346 B7DB=9838 B7E4=28EF6 B8B4=9E7C B9B7=663B
B9DC=7926 B9ED=9EB4 BAF4=6805 BCC8=5C62 BCC9=8602 BDAB=7E61 BED5=8523 BEDF=91AC BFD9=9771 C0E6=87EC C1A8=8CE4
C1DF=6414 C1E9=7626 C2CD=9A52 C3BD=7C1E C4CF=6451 C4DB=58FA C5B6=5861 C5BF=985A C5D7=792A C5EE=6AAE C5F3=6FE4
C5F8=79B1 C6C2=7006 C6F6=9087 C7B9=56CA C7E8=8805 C7ED=525D C8AE=6F51 C8B0=91B1 C9B0=6A9C CBCB=9830 CBEA=69C7
CBF9=5118 CCCD=9EB5 CCF9=85EA CDDA=9059 CDE9=840A CFB6=7C60 CFB9=881F D0D6=4FAD D4E4=58F7 D5E3=21A1A D6A2=5C5B
D9F8=64B9 DAB9=6522 DBCA=67FA DBD8=6867 DBED=68BC DBF4=688E DEB9=6D9B DEF5=6F45 DFF3=243D0 E0F6=7464 E2E8=783F
E2EA=783A E3DE=7AC3 E4C6=7BED E9A2=854A E9AE=85AE E9DA=86CE EAA4=877F EBDD=8ACC ECCD=8CCE EDEE=8FE9 F0D7=976D
F0F4=981A F2CD=9BF5 F2F4=9D2C
"""
EXTENDED = "7FD0=2208 7CD1=2500 77C9=2460 78D5=3231 44A4=51DC 58A8=7199"
EMPTY = ((0xA2BA, 0xA2FE), (0xA8A1, 0xA8C0), (0xF4A1, 0xF4A6))  # EUC has characters there, JEF has none


def table(mapping: str, pua_base: int | None = 0xE000) -> np.ndarray:
    """int32[65536]: pair -> code point, -1 undefined. In: mapping glyph | modern; code point of the first user-defined
    cell, None: these are undefined."""
    double = pairs("euc_jp", range(0xA1, 0xFF), range(0xA1, 0xFF))
    for first, last in EMPTY:
        double[first : last + 1] = -1
    if pua_base is not None:
        for lead in range(0x80, 0xA1):
            start = pua_base + (lead - 0x80) * 94
            double[lead << 8 | 0xA1 : (lead << 8 | 0xFE) + 1] = range(start, start + 94)
    for cell in (EXTENDED + (GLYPHS_1978 if mapping == "glyph" else "")).split():
        pair, code = cell.split("=")
        double[int(pair, 16)] = int(code, 16)
    double[0x4040] = 0x3000
    return double
