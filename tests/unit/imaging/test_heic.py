"""What libheif gets to see of a HEIC."""

import dataclasses
import struct
from collections.abc import Sequence

import pytest

from darkroom.domain.kernel.errors import Rejected
from darkroom.imaging.headers import picture_alone
from tests.fuzz.handmade.isobmff import Item, assembled, box, boxes, find, full_box

SIZE, SMALLER = (full_box(b"ispe", struct.pack(">II", *size)) for size in ((64, 48), (32, 24)))
ALPHA, GAIN_MAP = (
    full_box(b"auxC", kind + b"\0")
    for kind in (b"urn:mpeg:hevc:2015:auxid:1", b"urn:com:apple:photo:2020:aux:hdrgainmap")
)
CODED, TURNED, UNKNOWN, NAME = box(b"hvcC", b"coded"), box(b"irot", b"\1"), box(b"lsel", b"\0\0"), box(b"udes", b"Anna")
PROPERTIES = [SIZE, SMALLER, ALPHA, GAIN_MAP, CODED, TURNED, UNKNOWN, NAME]
CONTENT = bytes(range(100))


def item(kind: bytes = b"hvc1", *held: bytes, at: int = 0, **references: Sequence[int]) -> Item:
    return Item(
        kind=kind,
        extents=[(at, 10)],
        associations=[PROPERTIES.index(property_box) + 1 for property_box in held or (SIZE, CODED)],
        references={name.encode(): of for name, of in references.items()},
    )


PICTURE = item()
AS_ALPHA = (SIZE, CODED, ALPHA)


def file(*items: Item, **others: bytes) -> bytes:
    return assembled(b"heic", items, PROPERTIES, CONTENT, **others)


def kinds(heic: bytes) -> list[bytes]:
    return [heic[at + 16 : at + 20] for name, at, _ in boxes(heic) if name == b"infe"]


def links(heic: bytes) -> list[tuple[bytes, int, tuple[int, ...]]]:
    references = [(at, length) for name, at, length in boxes(heic) if name == b"iref"]
    links = []
    for start, length in references:
        for name, at, _ in boxes(heic, start + 12, start + length):
            from_item, count = struct.unpack_from(">HH", heic, at + 8)
            links.append((name, from_item, struct.unpack_from(f">{count}H", heic, at + 12)))
    return links


def held(heic: bytes) -> list[list[bytes]]:
    """The properties of each item."""
    start, length = find(heic, b"ipco")
    properties = [heic[at : at + size] for _, at, size in boxes(heic, start + 8, start + length)]
    at, _ = find(heic, b"ipma")
    (count,), at, associations = struct.unpack_from(">I", heic, at + 12), at + 16, []
    for _ in range(count):
        _, many = struct.unpack_from(">HB", heic, at)
        associations.append(
            [properties[(index & 0x7FFF) - 1] for index in struct.unpack_from(f">{many}H", heic, at + 3)]
        )
        at += 3 + 2 * many
    return associations


def contents(heic: bytes) -> list[bytes]:
    """The bytes of each item, which has one piece."""
    at, _ = find(heic, b"iloc")
    (count,) = struct.unpack_from(">H", heic, at + 14)
    places = (struct.unpack_from(">HHHQQ", heic, at + 16 + 22 * number) for number in range(count))
    return [heic[start : start + length] for *_, start, length in places]


@pytest.mark.guards("heic-needed-properties-only")
def test_the_library_of_a_heic_sees_the_picture_its_tiles_and_its_alpha_and_nothing_else() -> None:
    heic = file(
        item(b"grid", SIZE, TURNED, NAME, at=5, dimg=[2, 3, 2]),
        item(at=20),
        item(at=30),
        item(b"hvc1", SMALLER, CODED, thmb=[1]),
        item(b"hvc1", SMALLER, CODED, GAIN_MAP, auxl=[1]),
        item(b"hvc1", *AS_ALPHA, at=40, auxl=[1]),
        item(b"hvc1", *AS_ALPHA, auxl=[6]),
        *(item(kind, cdsc=[1]) for kind in (b"Exif", b"mime", b"rgan", b"\xc8xif")),
        *(item(kind, dimg=[1]) for kind in (b"iden", b"iovl", b"tmap")),
        *(item(kind) for kind in (b"unci", b"tili", b"mski", b"jpeg", b"av01")),
    )
    alone = picture_alone(heic + box(b"moov", b"a film") + box(b"mini", b"another picture"))
    assert kinds(alone) == [b"grid", b"hvc1", b"hvc1", b"hvc1"]
    assert links(alone) == [(b"dimg", 1, (2, 3, 2)), (b"auxl", 4, (1,))]
    assert held(alone) == [[SIZE, TURNED], [SIZE, CODED], [SIZE, CODED], [SIZE, CODED, ALPHA]]
    assert contents(alone) == [CONTENT[at : at + 10] for at in (5, 20, 30, 40)]
    assert [name for name, _, _ in boxes(alone) if name in (b"ftyp", b"meta", b"mdat", b"moov", b"mini")] == [
        b"ftyp", b"meta", b"mdat"
    ]  # fmt: skip
    assert contents(picture_alone(alone)) == contents(alone)


def test_bytes_of_a_heics_picture_in_its_tables_are_found_too() -> None:
    heic = file(dataclasses.replace(PICTURE, construction=1), idat=b"0123456789abc")
    assert contents(picture_alone(heic)) == [b"0123456789"]


@pytest.mark.parametrize("is_multiplied", [False, True])
def test_a_heic_still_says_whether_its_colours_are_multiplied_by_its_alpha(is_multiplied: bool) -> None:
    picture = item(prem=[2]) if is_multiplied else item()
    assert ((b"prem", 1, (2,)) in links(picture_alone(file(picture, item(b"hvc1", *AS_ALPHA, auxl=[1]))))) is (
        is_multiplied
    )


def test_a_heic_with_wide_numbers_is_read() -> None:
    """Readers of HEIC must know each table in two versions (ISO/IEC 14496-12, 8.11)."""
    number = 70_000
    plain = (SIZE, CODED)

    def meta(at: int) -> bytes:
        entry = full_box(b"infe", struct.pack(">IH4s", number, 0, b"grid"), b"\0", version=3)
        tile = full_box(b"infe", struct.pack(">IH4s", 1, 0, b"hvc1"), b"\0", version=3)
        joined = b"".join(struct.pack(">IBHH", item, 2, 0x8001, 2) for item in (number, 1))
        places = b"".join(struct.pack(">IHHQHQQ", item, 0, 0, at, 1, start, 3) for item, start in ((number, 0), (1, 3)))
        return full_box(
            b"meta",
            full_box(b"pitm", struct.pack(">I", number), version=1),
            full_box(b"iinf", struct.pack(">I", 2), entry, tile, version=1),
            full_box(b"iref", box(b"dimg", struct.pack(">IHI", number, 1, 1)), version=1),
            box(b"iprp", box(b"ipco", *plain), full_box(b"ipma", struct.pack(">I", 2), joined, version=1, flags=1)),
            full_box(b"iloc", struct.pack(">BBI", 0x88, 0x80, 2), places, version=2),
        )

    head = box(b"ftyp", b"heic", bytes(4))
    heic = head + meta(len(head) + len(meta(0)) + 8) + box(b"mdat", b"gridtile"[:3] + b"til")
    alone = picture_alone(heic)
    assert kinds(alone) == [b"grid", b"hvc1"]
    assert links(alone) == [(b"dimg", 1, (2,))]
    assert held(alone) == [[*plain], [*plain]]
    assert contents(alone) == [b"gri", b"til"]


REFUSED = {
    "derived by identity": [item(b"iden", dimg=[2]), PICTURE],
    "derived by overlay": [item(b"iovl", dimg=[2]), PICTURE],
    "coded otherwise": [item(b"av01")],
    "a grid of what is derived": [item(b"grid", dimg=[2]), item(b"iden", dimg=[3]), PICTURE],
    "a grid of grids": [item(b"grid", dimg=[2]), item(b"grid", dimg=[3]), PICTURE],
    "a grid of itself": [item(b"grid", dimg=[1])],
    "a derived alpha": [PICTURE, item(b"iden", *AS_ALPHA, auxl=[1], dimg=[3]), item()],
    "two alphas": [PICTURE, *[item(b"hvc1", *AS_ALPHA, auxl=[1])] * 2],
    "the alpha of a tile": [item(b"grid", dimg=[2]), PICTURE, item(b"hvc1", *AS_ALPHA, auxl=[2])],
    "a tile as alpha": [item(b"grid", dimg=[2]), item(b"hvc1", *AS_ALPHA, auxl=[1])],
    "its own alpha": [item(b"hvc1", *AS_ALPHA, auxl=[1])],
    "an alpha of another size": [PICTURE, item(b"hvc1", SMALLER, CODED, ALPHA, auxl=[1])],
    "bytes in another item": [dataclasses.replace(PICTURE, construction=2)],
}


@pytest.mark.guards("heic-coded-or-grid", case="a derived alpha")
@pytest.mark.guards("heic-coded-or-grid", case="a grid of grids")
@pytest.mark.guards("heic-coded-or-grid", case="a grid of what is derived")
@pytest.mark.guards("heic-alpha-not-itself", case="a tile as alpha")
@pytest.mark.guards("heic-single-alpha-same-size", case="an alpha of another size")
@pytest.mark.guards("heic-coded-or-grid", case="derived by identity")
@pytest.mark.guards("heic-alpha-not-itself", case="its own alpha")
@pytest.mark.guards("heic-single-alpha-same-size", case="the alpha of a tile")
@pytest.mark.guards("heic-single-alpha-same-size", case="two alphas")
@pytest.mark.parametrize("items", REFUSED.values(), ids=REFUSED)
def test_a_heic_that_no_phone_writes_is_refused_and_says_what_to_send(items: Sequence[Item]) -> None:
    with pytest.raises(Rejected, match="Save it as an ordinary JPEG") as refused:
        picture_alone(file(*items))
    assert refused.value.code == "unsupported_format"


@pytest.mark.guards("heic-needed-properties-only")
def test_a_heic_with_a_property_that_must_be_understood_is_refused() -> None:
    heic = file(item(b"hvc1", SIZE, UNKNOWN))
    assert held(picture_alone(heic)) == [[SIZE]]
    at, _ = find(heic, b"ipma")
    essential = heic[: at + 20] + bytes([heic[at + 20] | 0x80]) + heic[at + 21 :]
    with pytest.raises(Rejected, match="Save it as an ordinary JPEG"):
        picture_alone(essential)


def test_a_heic_that_ends_before_its_pictures_bytes_do_is_truncated() -> None:
    heic = file(item(at=90))
    assert contents(picture_alone(heic)) == [CONTENT[90:]]
    with pytest.raises(Rejected) as refused:
        picture_alone(heic.replace(CONTENT, CONTENT[:99]).replace(box(b"mdat", CONTENT)[:8], bytes(4) + b"mdat"))
    assert refused.value.code == "truncated"


@pytest.mark.guards("heic-bytes-without-repeats")
def test_a_heic_whose_picture_repeats_its_bytes_for_gigabytes_is_damaged() -> None:
    heic = file(dataclasses.replace(PICTURE, extents=[(0, 90)] * 10))
    with pytest.raises(Rejected) as refused:
        picture_alone(heic)
    assert refused.value.code == "undecodable"
