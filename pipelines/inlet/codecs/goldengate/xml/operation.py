"""An element `operation` of GoldenGate's XML as an operation. The shape: xml/messages."""

from inlet.codecs.goldengate.operations import members as operation_members
from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.codecs.goldengate.xml.options import Options
from inlet.fields.wrong import quoted
from inlet.fields.xml_exact import Element

NUM_COLUMNS = "numCols"
IMAGES = ("before", "after")


class Shaped:
    """An element, and where its parts stand."""

    def __init__(self, element: Element, options: Options):
        self.element, self.options, self.places = element, options, dict[tuple[str, str | None], int]()

    def offset_of(self, role: str, column: str | None) -> int:
        """The byte of a part, from the element's start."""
        at = self.places.get((role, column), self.places.get(("row", column), self.element.start))
        return at - self.element.start

    def operation(self) -> Operation:
        """What the element says. Raises: Refused."""
        names, attributes = self.options.names, dict(self.element.attributes)
        texts = {role: attributes.pop(names[role], None) for role in operation_members.TEXTS if role in names}
        columns = self.element.all("col")
        if attributes.pop(NUM_COLUMNS, str(len(columns))) != str(len(columns)):
            found = f"{self.element.attributes[NUM_COLUMNS]} in {NUM_COLUMNS}"
            raise Refused("bad_column_count", "row", f"{len(columns)}, as there are elements col", found)
        for child in self.element.children:
            if child.name not in ("col", names["tokens"]):
                self.places["row", None] = child.start
                raise Refused("wrong_shape", "row", f"elements col and {names['tokens']}", child.name)
        images: dict[str, dict[str, str | None]] = {image: {} for image in IMAGES}
        for element in columns:
            self._read_column(element, images)
        return operation_members.operation(texts, **images, tokens=self._tokens(names["tokens"]), extra=attributes)

    def _read_column(self, element: Element, images: dict[str, dict[str, str | None]]) -> None:
        name = element.attributes.get("name")
        if name is None:
            self.places["row", None] = element.start
            raise Refused("wrong_shape", "row", "an attribute name", "none")
        if ("row", name) in self.places:
            self.places["row", name] = element.start
            raise Refused("column_twice", "row", "each column once", quoted(name), name)
        self.places["row", name] = element.start
        roles = {self.options.names[image]: image for image in IMAGES}
        for child in element.children:
            image = roles.get(child.name)
            if image is None or (image, name) in self.places:
                self.places["row", name] = child.start
                raise Refused("wrong_shape", "row", f"{' and '.join(roles)}, each once", child.name, name)
            self.places[image, name] = child.start
            if not self._flag(child, image, name, self.options.missing_attribute):
                images[image][name] = self._value(child, image, name)

    def _value(self, child: Element, image: str, column: str) -> str | None:
        if not self._flag(child, image, column, self.options.null_attribute):
            return child.text
        if child.text:
            raise Refused(
                "wrong_shape", image, f"no text, for {self.options.null_attribute} says so", child.text, column
            )
        return None

    def _flag(self, child: Element, image: str, column: str, name: str) -> bool:
        """Is an attribute true? Raises: Refused, too, where there are others than the two, or elements in the image."""
        known = {self.options.null_attribute, self.options.missing_attribute}
        if child.children or not child.attributes.keys() <= known:
            found = [*(child.attributes.keys() - known), *(inner.name for inner in child.children)][0]
            raise Refused(
                "wrong_shape", image, f"text, and no attribute but {' and '.join(sorted(known))}", found, column
            )
        value = child.attributes.get(name, "false")
        if value not in ("true", "false"):
            raise Refused("wrong_shape", image, f"true or false as {name}", value, column)
        return value == "true"

    def _tokens(self, name: str) -> dict[str, str]:
        tokens: dict[str, str] = {}
        for element in self.element.all(name):
            self.places["tokens", None] = element.start
            for token in element.children:
                parts = {part.name: part.text for part in token.children}
                if token.name != "token" or [part.name for part in token.children] != ["Name", "Value"]:
                    raise Refused("wrong_shape", "tokens", "token with Name and Value", token.name)
                if parts["Name"] in tokens:
                    raise Refused("wrong_shape", "tokens", "each token once", parts["Name"])
                tokens[parts["Name"]] = parts["Value"]
        return tokens
