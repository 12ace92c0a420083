"""With `metadata: "copyright"` a variant says whose picture it is, and nothing else that the original said."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import Developed, develop
from darkroom.imaging.develop import NO_ROOM_FOR_RIGHTS
from darkroom.imaging.rights import read_rights
from tests.engine.golden import (
    colours,
    gif_files,
    isobmff_files,
    jpeg_files,
    png_files,
    profiles,
    scenes,
    structure,
    webp_files,
)
from tests.engine.golden.exif import exif
from tests.engine.golden.scenes import levels
from tests.fuzz.handmade.isobmff import box

EVERYTHING = Limits(input_formats=frozenset({"jpeg", "png", "webp", "gif", "avif", "heic"}))
SECRET = b"SECRET-52.5200N-13.4050E"

CREATORS = ["Zoë Müller", 'Bo "B"; Ltd']
NOTICE = "© 2026 Zoë & <Müller>"
CREDIT, SOURCE, TERMS = "Zoë / Agency", "Agency ]]> Ltd", "Ask «first»"
STATEMENT, LICENCE, LICENSOR = "https://a.example/r?a=1&b=2", "https://l.example/by/4.0/", "https://a.example/buy"

VARIANTS = (
    VariantSpec(name="jpeg", width=60, format="jpeg"),
    VariantSpec(name="small", width=60, format="jpeg", effort="small"),
    VariantSpec(name="png", width=60, format="png"),
    VariantSpec(name="webp", width=60, format="webp"),
    VariantSpec(name="avif", width=60, format="avif", effort="fast"),
    VariantSpec(name="squeezed", width=96, format="jpeg", max_bytes=8000),
)
RECIPE = Recipe(variants=VARIANTS, metadata="copyright")

PICTURE = levels(scenes.smooth())
CLEAR = levels(np.dstack([scenes.smooth(), scenes.alpha_scene()]))

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
DC = "{http://purl.org/dc/elements/1.1/}"

# What an editor writes: what is asked for, and next to it, around it and under the same names what is not.
XMP = f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="SECRET"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="SECRET" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"
  xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:aux="http://ns.adobe.com/exif/1.0/aux/"
  photoshop:Credit="{CREDIT}" photoshop:City="SECRET" exif:GPSLatitude="SECRET" aux:SerialNumber="SECRET"
  aux:OwnerName="SECRET"/>
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:xmpRights="http://ns.adobe.com/xap/1.0/rights/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"
  xmlns:cc="http://creativecommons.org/ns#" xmlns:plus="http://ns.useplus.org/ldf/xmp/1.0/"
  xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/" xmlns:stEvt="http://ns.adobe.com/xap/1.0/sType/ResourceEvent#"
  xmlns:iptcExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/">
  <dc:title><rdf:Alt><rdf:li xml:lang="x-default">SECRET</rdf:li></rdf:Alt></dc:title>
  <dc:subject><rdf:Bag><rdf:li>SECRET</rdf:li></rdf:Bag></dc:subject>
  <dc:creator><rdf:Seq><rdf:li>{CREATORS[0]}</rdf:li><rdf:li>{CREATORS[1]}</rdf:li></rdf:Seq></dc:creator>
  <dc:rights><rdf:Alt><rdf:li xml:lang="de">SECRET</rdf:li>
    <rdf:li xml:lang="x-default">© 2026 Zoë &amp; &lt;Müller&gt;</rdf:li></rdf:Alt></dc:rights>
  <photoshop:Source><![CDATA[Agency ]]>]]&gt; Ltd</photoshop:Source>
  <xmpRights:UsageTerms><rdf:Alt><rdf:li xml:lang="x-default">{TERMS}</rdf:li></rdf:Alt></xmpRights:UsageTerms>
  <xmpRights:WebStatement>https://a.example/r?a=1&amp;b=2</xmpRights:WebStatement>
  <xmpRights:Owner><rdf:Bag><rdf:li>SECRET</rdf:li></rdf:Bag></xmpRights:Owner>
  <cc:license rdf:resource="{LICENCE}"/>
  <plus:Licensor><rdf:Seq><rdf:li rdf:parseType="Resource"><plus:LicensorEmail>SECRET</plus:LicensorEmail>
    <plus:LicensorURL>{LICENSOR}</plus:LicensorURL></rdf:li></rdf:Seq></plus:Licensor>
  <xmpMM:DerivedFrom><rdf:Description><dc:creator>SECRET</dc:creator><dc:rights>SECRET</dc:rights></rdf:Description>
  </xmpMM:DerivedFrom>
  <iptcExt:ArtworkOrObject><rdf:Bag><rdf:li rdf:parseType="Resource"><photoshop:Credit>SECRET</photoshop:Credit>
  </rdf:li></rdf:Bag></iptcExt:ArtworkOrObject>
  <xmpMM:History><rdf:Seq><rdf:li stEvt:softwareAgent="SECRET"/></rdf:Seq></xmpMM:History>
</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>""".replace("SECRET", SECRET.decode()).encode()


def dataset(record: int, number: int, text: bytes) -> bytes:
    return struct.pack(">BBBH", 0x1C, record, number, len(text)) + text


def resource(number: int, data: bytes) -> bytes:
    return struct.pack(">4sHHI", b"8BIM", number, 0, len(data)) + data + bytes(len(data) % 2)


IIM = b"".join(
    [
        dataset(1, 90, b"\x1b%G"),
        *(dataset(2, number, SECRET) for number in (5, 25, 90, 92, 105, 118, 120, 122)),
        *(dataset(2, 80, name.encode()) for name in CREATORS),
        dataset(2, 110, CREDIT.encode()),
        dataset(2, 115, SOURCE.encode()),
        dataset(2, 116, NOTICE.encode()),
    ]
)
PHOTOSHOP = b"Photoshop 3.0\0" + resource(0x0404, IIM) + resource(0x040C, SECRET) + resource(0x0424, SECRET)


def owned_exif() -> bytes:
    artist = f'{CREATORS[0]}; "Bo ""B""; Ltd"'
    texts = [(0x0131, SECRET), (0x013B, artist.encode()), (0x8298, NOTICE.encode()), (0x9C9D, SECRET)]
    return exif(1, text=SECRET, gps=SECRET, texts=texts)


def jpeg() -> bytes:
    segments = [
        (jpeg_files.APP0, b"JFIF\0\x01\x02\x01\x01\x2c\x01\x2c\x04\x04" + SECRET * 2),
        jpeg_files.exif_segment(owned_exif()),
        (jpeg_files.APP1, b"http://ns.adobe.com/xap/1.0/\0" + XMP),
        (jpeg_files.APP1, b"http://ns.adobe.com/xmp/extension/\0" + b"0" * 40 + XMP),
        *jpeg_files.icc_segments(profiles.rgb(colours.SRGB, description=SECRET.decode())),
        (jpeg_files.APP13, PHOTOSHOP),
        (jpeg_files.COM, SECRET),
    ]
    return jpeg_files.jpeg(PICTURE, segments=segments) + SECRET


def png() -> bytes:
    before = [
        (b"eXIf", owned_exif()),
        (b"tEXt", b"Comment\0" + SECRET),
        (b"tEXt", b"Author\0" + SECRET),  # XMP's is asked first
        (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP),
    ]
    return png_files.png(CLEAR, png_files.RGBA, before=before)


def webp() -> bytes:
    after = [(b"EXIF", owned_exif()), (b"XMP ", XMP), (b"SECR", SECRET)]
    return webp_files.webp(PICTURE, quality=None, after=after)


def others() -> list[isobmff_files.Item]:
    return [isobmff_files.exif_item(owned_exif()), isobmff_files.xmp_item(XMP)]


SOURCES: dict[str, Callable[[], bytes]] = {
    "jpeg": jpeg,
    "png": png,
    "webp": webp,
    "avif": lambda: isobmff_files.avif(PICTURE, others=others(), extra=box(b"uuid", SECRET)),
    "heic": lambda: isobmff_files.heic(PICTURE, others=others(), extra=box(b"uuid", SECRET)),
}


@cache
def developed(source: str, metadata: str = "copyright") -> Developed:
    return develop(SOURCES[source](), RECIPE.model_copy(update={"metadata": metadata}), limits=EVERYTHING)


# ── Readers that know nothing of the engine ───────────────────────────────────────────────────────────────────────────


def opened(body: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(body))
    image.load()
    return image


def xmp_of(body: bytes) -> dict[str, list[str]]:
    """Every property of a file's XMP as texts; the packet must have nothing besides them."""
    root = ElementTree.fromstring(opened(body).info["xmp"])
    ((description,),) = root
    assert (root.attrib, description.attrib) == ({}, {f"{RDF}about": ""})
    texts_by_tag: dict[str, list[str]] = {}
    for element in description:
        texts = [text for text in element.itertext() if text.strip()]
        texts_by_tag[element.tag.partition("}")[2]] = texts + list(element.attrib.values())
    return texts_by_tag


def exif_of(body: bytes) -> dict[int, str]:
    """Every tag of a file's EXIF, which has one directory of texts and ends with them."""
    block = opened(body).info["exif"].removeprefix(b"Exif\0\0")
    assert block[:8] == b"MM\0*\0\0\0\x08"
    (count,) = struct.unpack_from(">H", block, 8)
    tags, ends = {}, [10 + 12 * count + 4]
    for index in range(count):
        tag, kind, size, at = struct.unpack_from(">HHII", block, 10 + 12 * index)
        assert kind == 2 and block[at + size - 1] == 0
        tags[tag] = block[at : at + size - 1].decode()
        ends.append(at + size + size % 2)
    assert struct.unpack_from(">I", block, 10 + 12 * count) == (0,)
    assert max(ends) == len(block)
    return tags


def iptc_of(body: bytes) -> list[tuple[int, int, bytes]]:
    """Every dataset of a JPEG's IIM, next to which there is only its digest."""
    resources = opened(body).info["photoshop"]
    assert sorted(resources) == [0x0404, 0x0425]
    iim, datasets, at = resources[0x0404], [], 0
    while at < len(iim):
        marker, record, number, length = struct.unpack_from(">BBBH", iim, at)
        assert marker == 0x1C
        datasets.append((record, number, iim[at + 5 : at + 5 + length]))
        at += 5 + length
    return datasets


@pytest.mark.parametrize("source", SOURCES)
def test_the_rights_are_in_every_variant_and_nothing_else_is(source: str) -> None:
    assert SOURCES[source]().count(SECRET) > 10
    assert developed(source).notices == ()
    for variant in developed(source).variants:
        assert xmp_of(variant.body) == {
            "creator": CREATORS,
            "rights": [NOTICE],
            "UsageTerms": [TERMS],
            "WebStatement": [STATEMENT],
            "Credit": [CREDIT],
            "Source": [SOURCE],
            "license": [LICENCE],
            "Licensor": [LICENSOR],
        }, variant.name
        assert exif_of(variant.body) == {0x013B: f'{CREATORS[0]}; "Bo ""B""; Ltd"', 0x8298: NOTICE}
        if variant.format == "jpeg":
            assert iptc_of(variant.body) == [
                (1, 90, b"\x1b%G"),
                (2, 0, b"\0\x04"),
                *((2, 80, name.encode()) for name in CREATORS),
                (2, 110, CREDIT.encode()),
                (2, 115, SOURCE.encode()),
                (2, 116, NOTICE.encode()),
            ]
        for trace in (SECRET, SECRET[:8], SECRET.hex().encode(), SECRET.decode().encode("utf-16-be")):
            assert trace not in variant.body, (variant.name, trace)


@pytest.mark.parametrize("source", SOURCES)
def test_a_variant_with_rights_is_the_same_picture_and_has_no_other_part(source: str) -> None:
    bare = {variant.name: variant for variant in developed(source, "none").variants}
    for variant in developed(source).variants:
        plain = bare[variant.name].body
        added = len(variant.body) - len(plain)
        match variant.format:
            case "jpeg":
                segments = structure.jpeg_segments(variant.body)
                extra = [segment for segment in segments if segment[0] in (0xE1, 0xED)]
                assert [marker for marker, _ in extra] == [0xE1, 0xE1, 0xED]
                assert [segment for segment in segments if segment not in extra] == structure.jpeg_segments(plain)
            case "png":
                chunks = structure.png_chunks(variant.body)
                extra_chunks = [chunk for chunk in chunks if chunk[0] in (b"eXIf", b"iTXt")]
                assert len(extra_chunks) == 2
                assert [chunk for chunk in chunks if chunk not in extra_chunks] == structure.png_chunks(plain)
            case "webp":
                names = [name for name, _ in structure.webp_chunks(variant.body)]
                assert names[:1] + names[-2:] == [b"VP8X", b"EXIF", b"XMP "]
                pictures = (b"VP8 ", b"ALPH")
                assert [chunk for chunk in structure.webp_chunks(variant.body) if chunk[0] in pictures] == [
                    chunk for chunk in structure.webp_chunks(plain) if chunk[0] in pictures
                ]
            case "avif":
                items = [data[8:12] for name, data in structure.avif_boxes(variant.body) if name == b"infe"]
                assert sorted(items)[-1] == b"mime" and items.count(b"Exif") == items.count(b"mime") == 1
                assert opened(variant.body).tobytes() == opened(plain).tobytes()
        assert added < 2500


def test_a_file_without_rights_gives_the_same_bytes_as_if_none_were_asked_for() -> None:
    bodies = [
        jpeg_files.jpeg(PICTURE, segments=[jpeg_files.exif_segment(exif(6, text=SECRET, gps=SECRET))]),
        gif_files.gif(
            (96, 64), [gif_files.Frame(indices=levels(scenes.grey_scene()))], colours=np.zeros((256, 3), int)
        ),
    ]
    for body in bodies:
        with_rights, without = develop(body, RECIPE), develop(body, Recipe(variants=VARIANTS))
        assert with_rights == without


def test_what_it_writes_it_reads_again() -> None:
    first = developed("jpeg").variants
    rights = read_rights(first[0].body).rights
    for variant in first:
        assert read_rights(variant.body).rights == rights


def test_a_ceiling_holds_with_rights_and_a_low_one_has_no_room_for_them() -> None:
    specs = tuple(
        VariantSpec(name=f"{file_format}{most}", width=96, format=file_format, max_bytes=most, effort="fast")
        for file_format in ("jpeg", "png", "webp", "avif")
        for most in (1024, 8000)
    )
    made = develop(jpeg(), Recipe(variants=specs, metadata="copyright"))
    for spec, variant in zip(specs, made.variants, strict=True):
        assert len(variant.body) <= (spec.max_bytes or 0)
        assert (b"xmpmeta" in variant.body) == (spec.max_bytes == 8000)
    assert [notice for notice in made.notices if NO_ROOM_FOR_RIGHTS in notice] == [
        f"{file_format}1024: {NO_ROOM_FOR_RIGHTS}" for file_format in ("jpeg", "png", "webp", "avif")
    ]


def test_a_variant_as_small_as_it_gets_fits_with_the_largest_rights_that_its_ceiling_admits() -> None:
    noise = np.random.default_rng(7).integers(0, 256, (400, 400, 3), np.uint8)
    segments = [(jpeg_files.APP1, b"http://ns.adobe.com/xap/1.0/\0" + XMP)]
    body = jpeg_files.jpeg(noise, segments=segments)
    for file_format in ("jpeg", "png", "webp", "avif"):
        carriers = len(opened(developed("jpeg").variants[0].body).info["xmp"]) + 300
        spec = VariantSpec(name="one", width=400, format=file_format, max_bytes=4 * carriers, effort="fast")
        (variant,) = develop(body, Recipe(variants=(spec,), metadata="copyright")).variants
        assert b"xmpmeta" in variant.body
        assert len(variant.body) <= 4 * carriers


@pytest.mark.guards("rights-read-on-request")
def test_a_recipe_that_does_not_ask_gives_what_a_file_without_metadata_gives() -> None:
    bare = jpeg_files.jpeg(PICTURE, segments=jpeg_files.icc_segments(profiles.rgb(colours.SRGB)))
    assert developed("jpeg", "none") == develop(bare, Recipe(variants=VARIANTS))
