"""The grammar of a *plain* Qlik JSON message of one table, as one regular expression. What matches needs no further doubt.

Plain: members in Qlik's order, every column of the contract present in its order, each value certainly of its type, key
columns not null, images as the operation asks, 35 digits of sequence, masks within the table, columnMask null or whole,
nothing behind the object. So the faults that JSON functions of the JVM pass in silence cannot occur: a member twice, in
other case or unknown, long numbers, exponents, lone surrogates, a tail. What does not match is not wrong; it is read by the
exact path. Java's dialect, possessive or single-class quantifiers only: time is linear in the text.
Deliberately absent: integers within a thousandth of a type's limit, lower-case operations, partial column masks.
"""

import re

from inlet.fields.fit import LEN_INTEGER

BLANK = r"[ \t\r\n]*"
# Java tests a class of single characters with one table look-up, a union of ranges with a call for each range
_CONTROL = "".join(f"\\x{code:02x}" for code in range(32))
HEX, ANY = "[0123456789ABCDEFabcdef]", rf'[^"\\{_CONTROL}]*'
TEXT = rf'"{ANY}(?:\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F]){HEX}{{4}}){ANY})*+"'
DAY = (r"(?!0000)[0-9]{4}+-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8]|(?<!02-)(?:29|30)|(?<=(?:0[13578]|1[02])-)31"
       r"|(?<=[13579][26]-02-|[02468][48]-02-|[2468]0-02-)29)")
TIME = rf"{DAY}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}}+0*+)?+"
NARROW = {1: (2, "1[01][0-9]"), 2: (4, "[12][0-9]{4}|3[01][0-9]{3}"), 4: (9, "1[0-9]{9}|20[0-9]{8}"), 8: (18, "[1-8][0-9]{18}")}


def message(table, blank: str, operations: str = "INSERT|UPDATE|DELETE|REFRESH") -> str:
    """The expression. In: a contract; what may stand between tokens, "" or BLANK; operations wanted.
    Groups, all empty: 1 set in an envelope, 2 if data is null, 3 if there is a before-image."""
    envelope = (r'\{"magic":"atMSG","type":"DT",(?:"headers":null,)?+(?:"messageSchemaId":(?:null|STR),)?+'
                r'(?:"messageSchema":(?:null|STR),)?+"message":')
    named = _spaced(',"schema":"%SCHEMA%","table":"%TABLE%"', blank)
    named = named.replace("%SCHEMA%", re.escape(table.schema_name)).replace("%TABLE%", re.escape(table.table_name))
    return (f"^{blank}(?:{_spaced(envelope, blank).replace('STR', TEXT)}{blank}()|){_body(table, blank, operations)}(?:{named})?+"
            rf"{blank}\}}(?:\1{blank}\}}|(?!\1)){blank}\z").replace("'", r"\x27")


def _body(table, blank: str, operations: str) -> str:
    image, words = _image(table, blank), operations.split("|")
    placed = ',"changeSequence":"[0-9]{35}+"'
    moves = [rf'"operation":"(?:{"|".join(word for word in words if word != "REFRESH")})"{placed}'] if words != ["REFRESH"] else []
    loads = ['"operation":"REFRESH","changeSequence":(?:""|null)'] * ("REFRESH" in words)
    forms = [rf'(?!\2)(?!\3)(?:{"|".join(moves + loads)})']
    forms += [rf'(?!\2)\3"operation":"UPDATE"{placed}'] * ("UPDATE" in words)
    forms += [rf'\2\3"operation":"DELETE"{placed}'] * ("DELETE" in words)
    headers = (r',"timestamp":(?:"(?:%TIME%)?+"|null),"streamPosition":(?:"%ANY%"|null),"transactionId":(?:"%ANY%"|null)'
               r',"changeMask":%MASK%,"columnMask":%WHOLE%(?:,"externalSchemaId":(?:"%ANY%"|null))?+'
               r'(?:,"transactionEventCounter":(?:null|%COUNT%)(?:,"transactionLastEvent":(?:true|false|null))?+)?+\}')
    fills = {"%TIME%": TIME, "%ANY%": ANY, "%MASK%": _mask(len(table.columns)), "%WHOLE%": _whole(len(table.columns)),
             "%COUNT%": r"(?:0|[1-9][0-9]{0,17}+)", "@": image}
    images = r'\{"data":(?:@|null()),(?:"beforeData":(?:null|@()),)?+"headers":\{'
    text = _spaced(f"{images}(?:{'|'.join(forms)}){headers}", blank)
    for word, pattern in fills.items():
        text = text.replace(word, pattern)
    return text


def _image(table, blank: str) -> str:
    columns = [f'"{c.name}"{blank}:{blank}(?:{_value(c)}{"" if c.name in table.key else "|null"})' for c in table.columns]
    return rf"\{{{blank}" + f"{blank},{blank}".join(columns) + rf"{blank}\}}"


def _spaced(pattern: str, blank: str) -> str:
    """The pattern with blanks allowed around : , { } of the message (not those of the pattern's own (?: ) and {n})."""
    if not blank:
        return pattern
    return re.sub(r"(?<!\?):|,(?!\d)|\\[{}]", lambda token: f"{blank}{token[0]}{blank}", pattern)


def _value(column) -> str:
    """A value that is certainly of the column's type (null apart)."""
    type_ = column.type
    if type_ in LEN_INTEGER:
        most, wide = NARROW[LEN_INTEGER[type_]]
        return rf'-?+(?:(?:0|[1-9][0-9]{{0,{most - 1}}}+)(?![0-9])|{wide})(?![0-9.eE])|"-?+[0-9]{{1,{most}}}+"'
    if type_.startswith("decimal"):
        return _decimal(*map(int, re.findall(r"\d+", type_)))
    if type_ in ("float", "double"):
        number = r"(?:-(?=[0-9.]*[1-9]))?+(?:0|[1-9][0-9]{0,17}+)(?:\.[0-9]{1,20}+)?+(?![0-9.eE])"
        return f'{number}|"{number}"'
    day_or_time = {"date": DAY, "timestamp_ntz": TIME, "timestamp": TIME}
    if type_ in day_or_time:
        return f'"{day_or_time[type_]}"'
    if type_ == "binary":
        return f'"(?:{HEX}{{2}})*+"' if column.encoding else "(?!)"
    return {"boolean": "true|false", "string": TEXT}[type_]


def _decimal(digits: int, scale: int) -> str:
    before = digits - scale
    whole = rf"(?:0|[1-9][0-9]{{0,{before - 1}}}+)" if before else "0"
    number = rf"-?+{whole}" + (rf"(?:\.[0-9]{{1,{scale}}}+)?+" if scale else "") + "(?![0-9.eE])"
    text = rf"-?+[0-9]{{1,{before}}}+" if before else "-?+0"
    return rf'"{text}(?:\.{f"[0-9]{{1,{scale}}}+" if scale else "0"}0*+)?+"|{number}'


def _mask(num_columns: int) -> str:
    """Mask text without a bit beyond the last column."""
    full, rest = divmod(num_columns, 8)
    high, low = max(rest - 4, 0), min(rest, 4)
    digit = {0: "0", 1: "[01]", 2: "[0-3]", 3: "[0-7]", 4: HEX}
    return rf'(?:null|"(?:00)*+(?:(?:{HEX}{{2}}){{0,{full}}}+|{digit[high]}{digit[low]}(?:{HEX}{{2}}){{{full}}}+)")'


def _whole(num_columns: int) -> str:
    """Mask text of all columns, or none."""
    full, rest = divmod(num_columns, 8)
    bytes_ = [f"{(1 << rest) - 1:02x}"] * bool(rest) + ["ff"] * full
    return rf'(?:null|""|"(?:00)*+(?i:{"".join(bytes_)})")'
