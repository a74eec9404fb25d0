"""What every compiled walk uses: integers out of bytes, the writer of VARIANT's numbers, the check of UTF-8. The plain
ones are in fields/: number.py, variant.py, charset.py.

Bounds: `uint` reads `width` bytes, `put` and `put_digits` write as many; `put_integer` writes at most 9 and
`put_decimal` at most 18; `utf8_size` reads no byte from `stop` on. The caller has that room.
"""

from numba import njit

inlined = njit(forceinline=True, _nrt=False)  # nothing is allocated, so no reference need be counted: ten times as fast


@inlined
def uint(data, at, width, little):
    """An integer without a sign."""
    n = 0
    for k in range(width):
        n = n << 8 | data[at + (width - 1 - k if little else k)]
    return n


@inlined
def put(out, pos, n, width):
    """The low bytes of a number, the lowest first. Out: the place after them."""
    for k in range(width):
        out[pos + k] = n >> 8 * k & 0xFF
    return pos + width


@inlined
def put_digits(n, width, out, pos):
    """The last decimal digits of a number that is not below zero, `width` bytes. Out: the place after them."""
    for k in range(width):
        out[pos + width - 1 - k] = 48 + n % 10
        n //= 10
    return pos + width


@inlined
def put_integer(out, pos, n):
    """An integer in the narrowest type that holds it."""
    if -128 <= n < 128:
        out[pos] = 3 << 2
        return put(out, pos + 1, n, 1)
    if -32768 <= n < 32768:
        out[pos] = 4 << 2
        return put(out, pos + 1, n, 2)
    if -2147483648 <= n < 2147483648:
        out[pos] = 5 << 2
        return put(out, pos + 1, n, 4)
    out[pos] = 6 << 2
    return put(out, pos + 1, n, 8)


@inlined
def put_text(out, pos, data, at, size):
    """A text of VARIANT from bytes that are UTF-8: 5 bytes and its own at most."""
    if size > 63:
        out[pos] = 16 << 2
        pos = put(out, pos + 1, size, 4)
    else:
        out[pos] = size << 2 | 1
        pos += 1
    for k in range(size):
        out[pos + k] = data[at + k]
    return pos + size


@inlined
def put_decimal(out, pos, n, scale):
    """A decimal of up to 18 digits, unscaled."""
    out[pos + 1] = scale
    if -1_000_000_000 < n < 1_000_000_000 and scale <= 9:
        out[pos] = 8 << 2
        return put(out, pos + 2, n, 4)
    if scale <= 18:
        out[pos] = 9 << 2
        return put(out, pos + 2, n, 8)
    out[pos] = 10 << 2
    put(out, pos + 2, n, 8)
    return put(out, pos + 10, -1 if n < 0 else 0, 8)


@inlined
def put_limbs(out, pos, a, b, c, d, scale, minus):
    """A decimal of up to 38 digits, unscaled: four limbs of 32 bits, the lowest first. Writes 18 bytes."""
    if minus:
        a = (a ^ 0xFFFFFFFF) + 1
        b = (b ^ 0xFFFFFFFF) + (a >> 32)
        c = (c ^ 0xFFFFFFFF) + (b >> 32)
        d = (d ^ 0xFFFFFFFF) + (c >> 32)
    out[pos] = 10 << 2
    out[pos + 1] = scale
    put(out, pos + 2, a, 4)
    put(out, pos + 6, b, 4)
    put(out, pos + 10, c, 4)
    return put(out, pos + 14, d, 4)


@inlined
def utf8_size(data, at, stop):
    """Bytes of the character that begins here, 0 if it is none."""
    first = data[at]
    if first < 0x80:
        return 1
    size = 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4 if 0xF0 <= first < 0xF5 else 0
    if size == 0 or at + size > stop:
        return 0
    for k in range(1, size):
        if data[at + k] >> 6 != 2:
            return 0
    second = data[at + 1]
    if first == 0xE0 and second < 0xA0 or first == 0xED and second > 0x9F:  # overlong; surrogates
        return 0
    if first == 0xF0 and second < 0x90 or first == 0xF4 and second > 0x8F:  # overlong; beyond U+10FFFF
        return 0
    return size
