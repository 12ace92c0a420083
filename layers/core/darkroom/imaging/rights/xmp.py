"""The rights in XMP (ISO 16684-1): RDF in XML, of which eight properties are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from xml.parsers import expat

from darkroom.imaging.rights.rights import Rights, plain

MAX_XMP_BYTES = 1_000_000
"""A larger packet is not read. Packets have a few KB, or a few hundred with an editor's history; the worst one of this
size takes 0.7 s."""

_MAX_DEPTH = 64
_MAX_VALUES = 1000

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_DC = "http://purl.org/dc/elements/1.1/"
_XMP_RIGHTS = "http://ns.adobe.com/xap/1.0/rights/"
_PHOTOSHOP = "http://ns.adobe.com/photoshop/1.0/"
_CC = "http://creativecommons.org/ns#"
_PLUS = "http://ns.useplus.org/ldf/xmp/1.0/"

# expat joins a name to its namespace with the separator that it is given: a space is in neither.
_PROPERTIES = {
    f"{_DC} creator": "creators",
    f"{_DC} rights": "copyright",
    f"{_PHOTOSHOP} Credit": "credit",
    f"{_PHOTOSHOP} Source": "source",
    f"{_XMP_RIGHTS} UsageTerms": "usage_terms",
    f"{_XMP_RIGHTS} WebStatement": "web_statement",
    f"{_CC} license": "licence_url",
}
_LICENSOR, _LICENSOR_URL = f"{_PLUS} Licensor", f"{_PLUS} LicensorURL"
_ROOT, _DESCRIPTION, _RESOURCE = f"{_RDF} RDF", f"{_RDF} Description", f"{_RDF} resource"
_VALUE = f"{_RDF} value"
_PLACES = frozenset(
    (*array, *qualified)
    for array in ((), *((f"{_RDF} {kind}", f"{_RDF} li") for kind in ("Seq", "Bag", "Alt")))
    for qualified in ((), (_VALUE,), (_DESCRIPTION, _VALUE))  # guard: rights-xmp-qualified-value
)
"""Where a property has its value: in itself or in an array's item, and there beside qualifiers if it has any (ISO
16684-1, 7.8)."""

_LANGUAGE, _DEFAULT = "http://www.w3.org/XML/1998/namespace lang", "x-default"


def rights_in_xmp(packet: bytes) -> Rights:
    """What a packet says, in UTF-8. Raises ValueError or ExpatError if it is no such XML, too large or too deep.

    A document type is refused as soon as it begins. Without one there are no entities but XML's own five.
    """
    if len(packet) > MAX_XMP_BYTES:  # guard: rights-xmp-size-bound
        raise ValueError("it is too large")
    reader = _Reader()
    # The encoding is given, not believed: XMP in files is in UTF-8, and Python would look any other up by its name.
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse  # guard: rights-xmp-doctype-refused
    parser.EntityDeclHandler = _refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.Parse(packet.strip(b"\0 \t\r\n"), True)
    return reader.rights()


def _refuse(*_: object) -> None:
    raise ValueError("it declares a document type")


class _Reader:
    """The values that were met so far, and where in the tree the parser is."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._values: dict[str, list[tuple[str, str]]] = {}
        self._languages = [""]  # an element has that of the one around it if it says none
        self._text: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins: a property's value, or an array's item, may be in its attributes."""
        self._path.append(name)
        if len(self._path) > _MAX_DEPTH:
            raise ValueError("it is too deep")
        self._text.clear()
        self._languages.append(attributes.get(_LANGUAGE, self._languages[-1]))
        below = self._below_rdf()
        if below == [_DESCRIPTION]:
            for attribute, value in attributes.items():
                self._take(_PROPERTIES.get(attribute), value)
        self._take(self._property(), attributes.get(_RESOURCE, attributes.get(_VALUE, "")))
        if _LICENSOR in below[1:2] and len(below) > 2:
            self._take("licensor_url", attributes.get(_LICENSOR_URL, ""))

    def characters(self, text: str) -> None:
        """Some text, perhaps not all of it."""
        self._text.append(text)

    def end(self, _: str) -> None:
        """An element ends: if it has a value, that is its text."""
        self._take(self._property(), "".join(self._text))
        self._text.clear()
        self._languages.pop()
        self._path.pop()

    def rights(self) -> Rights:
        """What was found: of several languages the default, or the first."""
        chosen: dict[str, str | tuple[str, ...]] = {}
        for name, values in self._values.items():
            texts = [text for _, text in values]
            if name == "creators":
                chosen[name] = tuple(texts)
            else:
                chosen[name] = next((text for language, text in values if language == _DEFAULT), texts[0])
        return Rights(**chosen)  # type: ignore[arg-type]  # only `creators` is a tuple

    def _below_rdf(self) -> list[str]:
        """The path within rdf:RDF, which is the root or the root's child."""
        for depth in (0, 1):
            if self._path[depth : depth + 1] == [_ROOT]:
                return self._path[depth + 1 :]
        return []

    def _property(self) -> str | None:
        """The field whose value the current element is, if it is one: in other places the same names mean other
        things, such as the picture's that was made into this one."""
        match self._below_rdf():
            # guard: rights-own-properties-only
            case [description, name, *place] if description == _DESCRIPTION and tuple(place) in _PLACES:
                return _PROPERTIES.get(name)
            case [description, name, *_, last] if (
                description == _DESCRIPTION and name == _LICENSOR and last == _LICENSOR_URL
            ):
                return "licensor_url"
        return None

    def _take(self, name: str | None, value: str) -> None:
        if name is not None and (text := plain(value)):
            values = self._values.setdefault(name, [])
            if len(values) < _MAX_VALUES:
                values.append((self._languages[-1], text))


def xmp_with(rights: Rights) -> bytes:
    """A packet that has the rights and nothing else; empty if nothing is known."""
    parts = [
        _array("dc:creator", "Seq", [f"<rdf:li>{escape(name, quote=False)}</rdf:li>" for name in rights.creators]),
        _array("dc:rights", "Alt", _in_default_language(rights.copyright)),
        _array("xmpRights:UsageTerms", "Alt", _in_default_language(rights.usage_terms)),
        _simple("xmpRights:WebStatement", rights.web_statement),
        _simple("photoshop:Credit", rights.credit),
        _simple("photoshop:Source", rights.source),
        f'<cc:license rdf:resource="{escape(rights.licence_url)}"/>' if rights.licence_url else "",
        _array(
            "plus:Licensor",
            "Seq",
            [f'<rdf:li rdf:parseType="Resource">{_simple("plus:LicensorURL", rights.licensor_url)}</rdf:li>'],
        )
        if rights.licensor_url
        else "",
    ]
    content = "".join(parts)
    if not content:
        return b""
    namespaces = {"dc": _DC, "xmpRights": _XMP_RIGHTS, "photoshop": _PHOTOSHOP, "cc": _CC, "plus": _PLUS}
    declared = "".join(f' xmlns:{short}="{name}"' for short, name in namespaces.items() if f"<{short}:" in content)
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
        f'<rdf:RDF xmlns:rdf="{_RDF}"><rdf:Description rdf:about=""{declared}>{content}</rdf:Description></rdf:RDF>'
        '</x:xmpmeta><?xpacket end="r"?>'
    ).encode()


def _in_default_language(text: str) -> list[str]:
    return [f'<rdf:li xml:lang="x-default">{escape(text, quote=False)}</rdf:li>'] if text else []


def _array(name: str, kind: str, items: list[str]) -> str:
    return f"<{name}><rdf:{kind}>{''.join(items)}</rdf:{kind}></{name}>" if items else ""


def _simple(name: str, text: str) -> str:
    return f"<{name}>{escape(text, quote=False)}</{name}>" if text else ""
