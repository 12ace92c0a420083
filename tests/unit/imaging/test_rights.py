"""Whose picture it is: where it is read, which place counts, and what hostile metadata may cost."""

from __future__ import annotations

import hashlib
import struct
import zlib

import pytest

from darkroom.imaging.rights import Rights, carriers_of, read_rights
from darkroom.imaging.rights.exif import artist_of, creators_of, exif_with
from darkroom.imaging.rights.iptc import iptc_with
from darkroom.imaging.rights.read import SHORTENED, unreadable
from darkroom.imaging.rights.rights import MAX_CHARACTERS, MAX_TOTAL_BYTES
from darkroom.imaging.rights.xmp import MAX_XMP_BYTES, xmp_with
from tests.support.fakes.pictures import encoded, jpeg, picture

JPEG, PNG = jpeg(16, 8), encoded(picture(16, 8), "PNG")

EXIF, IPTC, XMP = (
    Rights(creators=(f"{place} author",), copyright=f"{place} notice", credit=f"{place} credit")
    for place in ("exif", "iptc", "xmp")
)


def segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg_with(*, exif: bytes = b"", xmp: bytes = b"", resources: bytes = b"") -> bytes:
    parts = [
        segment(0xE1, b"Exif\0\0" + exif) if exif else b"",
        segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp) if xmp else b"",
        segment(0xED, b"Photoshop 3.0\0" + resources) if resources else b"",
    ]
    return JPEG[:2] + b"".join(parts) + JPEG[2:]


def png_with(*chunks: tuple[bytes, bytes]) -> bytes:
    added = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return PNG[:33] + added + PNG[33:]


def packet(inside: str) -> bytes:
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" '
        f'xmlns:r="http://ns.adobe.com/xap/1.0/rights/">{inside}</rdf:Description></rdf:RDF></x:xmpmeta>'
    ).encode()


def iim(*texts: tuple[int, bytes], digest: bytes | None = None) -> bytes:
    """Image resources with these datasets of the second record, and the digest that they claim."""
    data = b"".join(struct.pack(">BBBH", 0x1C, 2, number, len(text)) + text for number, text in texts)
    parts = [(0x0404, data)] if digest is None else [(0x0404, data), (0x0425, digest)]
    return b"".join(
        struct.pack(">4sHHI", b"8BIM", number, 0, len(part)) + part + bytes(len(part) % 2) for number, part in parts
    )


def exif_of(*texts: tuple[int, bytes], claims: dict[int, int] | None = None, entries: int | None = None) -> bytes:
    """EXIF of these texts; `claims` has false lengths by their tags, `entries` is a false number of entries."""
    at = 8 + 2 + 12 * len(texts) + 4
    directory = data = b""
    for tag, text in texts:
        length = (claims or {}).get(tag, len(text) + 1)
        directory += struct.pack(">HHI", tag, 2, length)
        if length <= 4:
            directory += (text + b"\0").ljust(4, b"\0")
        else:
            directory += struct.pack(">I", at + len(data))
            data += text + b"\0"
    count = len(texts) if entries is None else entries
    return struct.pack(">2sHIH", b"MM", 42, 8, count) + directory + bytes(4) + data


# ── Which place counts ────────────────────────────────────────────────────────────────────────────────────────────────


def test_exif_counts_before_xmp_and_xmp_before_iptc() -> None:
    blocks = {"exif": exif_with(EXIF), "xmp": xmp_with(XMP), "resources": iptc_with(IPTC)}
    digest_of_others = iptc_with(IPTC)[:-16] + bytes(16)
    everywhere = read_rights(jpeg_with(**blocks))
    assert everywhere.rights == Rights(creators=EXIF.creators, copyright=EXIF.copyright, credit=XMP.credit)
    assert everywhere.notices == ()
    assert read_rights(jpeg_with(**blocks | {"exif": b""})).rights == XMP
    changed = blocks | {"exif": b"", "resources": digest_of_others}
    assert read_rights(jpeg_with(**changed)).rights == IPTC
    assert read_rights(jpeg_with(resources=digest_of_others)).rights == IPTC
    blank = Rights(creators=("\t ",), copyright=" ")
    assert read_rights(jpeg_with(**blocks | {"exif": exif_with(blank)})).rights == XMP


def test_iptc_counts_first_only_if_its_digest_says_that_it_is_newer() -> None:
    texts = (116, b"iptc notice")
    right = hashlib.md5(struct.pack(">BBBH", 0x1C, 2, 116, 11) + b"iptc notice", usedforsecurity=False).digest()
    for digest, notice in ((None, "xmp notice"), (right, "xmp notice"), (bytes(16), "iptc notice")):
        file = jpeg_with(xmp=xmp_with(XMP), resources=iim(texts, digest=digest))
        assert read_rights(file).rights.copyright == notice


def test_texts_of_png_count_last() -> None:
    author, notice = (b"tEXt", b"Author\0Zo\xeb"), (b"zTXt", b"Copyright\0\0" + zlib.compress(b"\xa9 Zo\xeb"))
    assert read_rights(png_with(author, notice)).rights == Rights(creators=("Zoë",), copyright="© Zoë")
    packed = (b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(xmp_with(XMP)))
    assert read_rights(png_with(author, notice, packed)).rights == XMP
    assert read_rights(png_with((b"iTXt", "Author\0\0\0en\0Auteur\0Łucja".encode()))).rights.creators == ("Łucja",)


def test_two_notices_of_exif_are_one_and_names_are_split_at_semicolons() -> None:
    exif = exif_with(Rights(creators=("Ann", "B; C", '"D" E'), copyright="photographer\0editor"))
    assert read_rights(jpeg_with(exif=exif)).rights == Rights(
        creators=("Ann", "B; C", '"D" E'), copyright="photographer; editor"
    )
    assert creators_of('Ann;Bo; "C; ""D"""; ') == ("Ann", "Bo", 'C; "D"')
    assert creators_of(artist_of(('"', 'a"b', ";"))) == ('"', 'a"b', ";")


@pytest.mark.guards("rights-encoding-fallback", case="letters")
@pytest.mark.parametrize(
    "name",
    ["Zoë", "Šimon Žák", "“Œuvre”", "Müller\u2019s", "€ … š ž Ÿ"],
    ids=["latin-1", "letters", "quotes", "apostrophe", "others"],
)
def test_text_is_utf_8_or_else_windows_1252(name: str) -> None:
    for text in (name.encode(), name.encode("cp1252")):
        for body in (jpeg_with(exif=exif_of((0x013B, text))), jpeg_with(resources=iim((80, text), (80, b"Bo")))):
            assert read_rights(body).rights.creators[0] == name
        assert read_rights(png_with((b"tEXt", b"Author\0" + text))).rights.creators == (name,)


def test_bytes_without_a_character_are_dropped_and_a_cut_character_too() -> None:
    undefined = b"Zo\xeb\x81\x8d\x8f\x90\x9d!"
    assert read_rights(jpeg_with(resources=iim((80, undefined)))).rights.creators == ("Zoë!",)
    # Software that knows no UTF-8 cuts at 32 bytes, within the last character.
    cut = ("é" * 2 + "x" * 27 + "ë").encode()[:32]
    assert read_rights(jpeg_with(resources=iim((110, cut)))).rights.credit == "é" * 2 + "x" * 27


@pytest.mark.guards("rights-own-properties-only", "rights-xmp-qualified-value")
def test_properties_of_xmp_have_several_forms_and_only_the_pictures_own_count() -> None:
    for inside in (
        "<dc:creator>Zoë</dc:creator>",
        "<dc:creator><rdf:Bag><rdf:li>Zoë</rdf:li></rdf:Bag></dc:creator>",
        "<dc:source><rdf:Description><dc:creator>Other</dc:creator></rdf:Description></dc:source>"
        "<dc:creator>\n <rdf:Seq>\n <rdf:li> Z<!-- -->oë </rdf:li>\n </rdf:Seq></dc:creator>",
    ):
        assert read_rights(jpeg_with(xmp=packet(inside))).rights == Rights(creators=("Zoë",)), inside
    qualified = (
        " rdf:parseType='Resource'><rdf:value>Zoë</rdf:value><r:role>x</r:role></",
        "><rdf:Description><r:role>x</r:role><rdf:value>Zoë</rdf:value></rdf:Description></",
        " r:role='x' rdf:value='Zoë'></",
    )
    for value in qualified:
        for inside in (
            f"<dc:creator{value}dc:creator>",
            f"<dc:creator><rdf:Seq><rdf:li{value}rdf:li></rdf:Seq></dc:creator>",
        ):
            assert read_rights(jpeg_with(xmp=packet(inside))).rights == Rights(creators=("Zoë",)), inside
    languages = "<rdf:Alt><rdf:li xml:lang='de'>Alle</rdf:li><rdf:li xml:lang='{}'>All</rdf:li></rdf:Alt>"
    languages = f"<dc:rights>{languages}</dc:rights>"
    assert read_rights(jpeg_with(xmp=packet(languages.format("x-default")))).rights.copyright == "All"
    assert read_rights(jpeg_with(xmp=packet(languages.format("en")))).rights.copyright == "Alle"
    written_out = languages.replace("'>All<", "' rdf:parseType='Resource'><rdf:value>All</rdf:value><")
    assert read_rights(jpeg_with(xmp=packet(written_out.format("x-default")))).rights.copyright == "All"


# ── Hostile text ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("rights-control-characters")
def test_control_characters_and_marks_that_reorder_are_removed() -> None:
    hostile = "a\0b\x1bc\u202ed\u2066e\x9bf\ufefff\r\n\tg"
    rights = read_rights(jpeg_with(resources=iim((80, hostile.encode())))).rights
    assert rights.creators == ("abcdeff g",)
    assert read_rights(png_with((b"iTXt", b"Author\0\0\0\0\0" + "x\uffffy\ufffe".encode()))).rights.creators == ("xy",)


@pytest.mark.parametrize("text", ["</rdf:li>]]><!--", "&amp;&#0;<?x?>", "\"'><script>", "%s{}\\u0000", "🄯 ‱ 𐍈"])
def test_text_of_any_kind_comes_out_as_it_came_in(text: str) -> None:
    rights = Rights(creators=(text, "B"), copyright=text, credit=text, source=text, usage_terms=text)
    carriers = carriers_of(rights)
    assert carriers is not None
    for file in (carriers.in_jpeg(JPEG), carriers.in_png(PNG), jpeg_with(xmp=carriers.xmp)):
        assert read_rights(file).rights == rights
    assert read_rights(jpeg_with(exif=carriers.exif)).rights == Rights(creators=rights.creators, copyright=text)


def test_a_long_text_is_cut_between_characters_with_a_notice() -> None:
    read = read_rights(jpeg_with(xmp=xmp_with(Rights(copyright="ë" * (MAX_CHARACTERS + 1)))))
    assert read.rights == Rights(copyright="ë" * MAX_CHARACTERS)
    assert read.notices == (SHORTENED,)
    exact = read_rights(jpeg_with(xmp=xmp_with(Rights(copyright="ë" * MAX_CHARACTERS))))
    assert (len(exact.rights.copyright), exact.notices) == (MAX_CHARACTERS, ())


@pytest.mark.guards("rights-total-size-bound")
def test_all_values_together_are_bounded() -> None:
    names = tuple(f"{number} {'&' * 100}" for number in range(3000))
    long = Rights(
        creators=names[:60], copyright="🄯" * 1024, credit="&" * 1024, source="<" * 1024, usage_terms="&" * 1024
    )
    read = read_rights(jpeg_with(xmp=xmp_with(long)))
    assert SHORTENED in read.notices
    carriers = carriers_of(read.rights)
    assert carriers is not None
    assert len(carriers.xmp) + len(carriers.exif) + len(carriers.resources) < 3 * MAX_TOTAL_BYTES
    many = read_rights(png_with((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp_with(Rights(creators=("a",) * 3000)))))
    assert (many.rights.creators, many.notices) == (("a",) * 16, (SHORTENED,))


@pytest.mark.guards("rights-share-of-ceiling")
def test_they_take_at_most_a_quarter_of_a_files_ceiling() -> None:
    carriers = carriers_of(XMP)
    assert carriers is not None
    size_bytes = len(carriers.xmp) + len(carriers.exif) + len(carriers.resources)
    ceilings = (None, 4 * size_bytes, 4 * size_bytes - 1)
    assert [carriers.fit_under(ceiling) for ceiling in ceilings] == [True, True, False]


@pytest.mark.guards("rights-safe-link-url", case="javascript:alert(1)")
@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "http://a b", 'https://a"', "//a.example", "https://" + "a" * 1024]
)
def test_what_is_no_whole_http_url_is_left_out(url: str) -> None:
    rights = Rights(copyright="©", web_statement=url, licence_url=url, licensor_url=url)
    read = read_rights(jpeg_with(xmp=xmp_with(rights)))
    assert (read.rights, read.notices) == (Rights(copyright="©"), (SHORTENED,))


# ── Hostile structure ─────────────────────────────────────────────────────────────────────────────────────────────────

BOMB = "<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE_XMP = {
    "an entity bomb": f"<!DOCTYPE x [{BOMB}]>".encode() + packet("<dc:creator>&i;</dc:creator>"),
    "an entity": b"<!DOCTYPE x [<!ENTITY a 'Zo'>]>" + packet("<dc:creator>&a;</dc:creator>"),
    "a file": b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'>" + packet("<dc:creator>Zo</dc:creator>"),
    "an unknown entity": packet("<dc:creator>&a;</dc:creator>"),
    "a deep tree": packet("<dc:creator>Zo</dc:creator>" + "<a>" * 70 + "</a>" * 70),
    "no end": packet("<dc:creator>Zo</dc:creator>")[:-1],
    "another encoding": packet("<dc:creator>Zo</dc:creator>").decode().encode("utf-16"),
    "no text": packet("<dc:creator>Zo\xeb</dc:creator>").decode().encode("latin-1"),
    "nothing": b" ",
}


@pytest.mark.guards("rights-xmp-doctype-refused", case="an entity")
@pytest.mark.guards("rights-damage-tolerated", case="no end")
@pytest.mark.parametrize("name", HOSTILE_XMP)
def test_xmp_that_is_no_plain_xml_is_left_out_with_a_notice(name: str) -> None:
    read = read_rights(jpeg_with(xmp=HOSTILE_XMP[name], exif=exif_with(Rights(copyright="©"))))
    assert (read.rights, read.notices) == (Rights(copyright="©"), (unreadable("XMP"),))


def test_the_encoding_that_xmp_declares_is_not_believed() -> None:
    declared = b"<?xml version='1.0' encoding='rot13'?>" + packet("<dc:creator>Zoë</dc:creator>")
    assert read_rights(jpeg_with(xmp=declared)).rights == Rights(creators=("Zoë",))


@pytest.mark.guards("rights-xmp-size-bound")
def test_xmp_that_is_too_large_is_not_read_even_if_it_was_compressed() -> None:
    large = packet("<dc:creator>Zo</dc:creator>") + b" " * MAX_XMP_BYTES
    for flag, text in ((b"\0", large), (b"\1", zlib.compress(large))):
        read = read_rights(png_with((b"iTXt", b"XML:com.adobe.xmp\0" + flag + b"\0\0\0" + text)))
        assert (read.rights, read.notices) == (Rights(), (unreadable("XMP"),))
    broken = read_rights(png_with((b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + b"no zlib")))
    assert broken.notices == (unreadable("XMP"),)


@pytest.mark.guards("rights-empty-extents-counted")
def test_extents_without_bytes_are_counted_too() -> None:
    def box(name: bytes, *parts: bytes) -> bytes:
        body = b"".join(parts)
        return struct.pack(">I4s", 8 + len(body), name) + body

    # Offsets and lengths of no bytes at all (ISO/IEC 14496-12, 8.11.3): a table of 6 bytes has 65,535 extents.
    table = struct.pack(">HHHH", 1, 1, 0, 65_535)
    meta = box(b"meta", bytes(4), box(b"iinf", bytes(6)), box(b"iloc", bytes(6), table))
    read = read_rights(box(b"ftyp", b"avif", bytes(4), b"avif") + meta)
    assert (read.rights, read.notices) == (Rights(), (unreadable("metadata"),))


@pytest.mark.guards("rights-exif-damage-partial")
def test_what_is_sound_in_a_damaged_block_counts() -> None:
    artist, notice = (0x013B, b"Zo\xc3\xab M"), (0x8298, b"(c) Zo M")
    name, words = {"creators": ("Zoë M",)}, {"copyright": "(c) Zo M"}
    broken_length = iim((80, artist[1]), (116, notice[1]))[12:] + b"\x1c\x02\x6e\x7f\xff"
    cut = struct.pack(">4sHHI", b"8BIM", 0x0404, 0, len(broken_length)) + broken_length
    cut += bytes(len(broken_length) % 2)
    for kind, block, expected in (
        ("EXIF", exif_of(artist, notice, entries=40), name | words),
        ("EXIF", exif_of(notice, artist, claims={0x013B: 5000}), words),
        ("EXIF", exif_of(artist, notice, claims={0x013B: 5000}), words),
        ("EXIF", exif_of(artist, notice, claims={0x8298: 2**32 - 1}), name),
        ("IPTC", cut, name | words),
        ("IPTC", iim((80, artist[1]), (116, notice[1])) + struct.pack(">4sHHI", b"8BIM", 1, 0, 9), name | words),
    ):
        result = read_rights(jpeg_with(**{"exif" if kind == "EXIF" else "resources": block}))
        assert result.rights == Rights(**expected), (kind, expected)
        assert result.notices == (unreadable(kind, part=True),)
    assert unreadable("EXIF", part=True) == (
        "Author and copyright: part of the file's EXIF could not be read and was left out."
    )


@pytest.mark.guards("rights-iptc-extended-dataset", case="4")
@pytest.mark.parametrize("size", [0, 1, 2, 4])
def test_an_extended_dataset_is_stepped_over_or_read(size: int) -> None:
    def extended(number: int, text: bytes) -> bytes:
        return struct.pack(">BBBH", 0x1C, 2, number, 0x8000 | size) + len(text).to_bytes(size) + text

    data = extended(202, b"\x1c\x02\x50" * bool(size)) + extended(80, b"Bo" * bool(size))
    data += struct.pack(">BBBH", 0x1C, 2, 116, 2) + b"(c"
    resources = struct.pack(">4sHHI", b"8BIM", 0x0404, 0, len(data)) + data + bytes(len(data) % 2)
    read = read_rights(jpeg_with(resources=resources))
    assert (read.rights, read.notices) == (Rights(creators=("Bo",) * bool(size), copyright="(c"), ())


@pytest.mark.guards("rights-iptc-length-bound")
def test_an_extended_dataset_with_a_longer_length_is_damage() -> None:
    data = struct.pack(">BBBH", 0x1C, 2, 80, 2) + b"Bo" + struct.pack(">BBBH", 0x1C, 2, 202, 0x8005) + bytes(5)
    read = read_rights(jpeg_with(resources=struct.pack(">4sHHI", b"8BIM", 0x0404, 0, len(data)) + data))
    assert (read.rights, read.notices) == (Rights(creators=("Bo",)), (unreadable("IPTC", part=True),))


@pytest.mark.guards("rights-damage-tolerated")
def test_damage_at_any_place_costs_no_more_than_a_block() -> None:
    rights = Rights(creators=("Zoë", "B; C"), copyright="©", credit="c", source="s", web_statement="https://a.example/")
    carriers = carriers_of(rights)
    assert carriers is not None
    blocks = {"exif": carriers.exif, "xmp": carriers.xmp, "resources": carriers.resources}
    for name, block in blocks.items():
        for at in range(1, len(block)):
            cut = read_rights(jpeg_with(**blocks | {name: block[:at]}))
            assert cut.rights.copyright == "©", (name, at)
            for value in (0, 0x7F, 0xFF):
                read_rights(jpeg_with(**{name: block[:at] + bytes([value]) + block[at + 1 :]}))
    assert read_rights(jpeg_with(exif=b"MM\0*nonsense")).notices == (unreadable("EXIF"),)
    assert read_rights(jpeg_with(resources=carriers.resources[:40])).notices == (unreadable("IPTC"),)
