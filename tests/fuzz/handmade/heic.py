"""HEIC files that cannot be made here: none of the dependencies encodes HEVC.

They are pictures of 64 by 48 pixels made of gradients, encoded once by x265 through pillow-heif 1.8.1 (quality 40 and
30), the third with an orientation of 6 and an sRGB profile. Written in Base85.
"""

from __future__ import annotations

import base64
import struct

from tests.fuzz.handmade import isobmff

_PLAIN = (
    "0000SW^{RQXk}?*00000ZE0pPXk}?*ZE0a<0004fZDn*}000000000XXk=`10000000000aA{+700000000000000000000B57=IV*mgE07O6l0R"
    "RC200001p#T8@00000004pj001LtX>Mi!000000RR916=`l}WdZ;I000310BCk&F#rGn01j|zbZr0t000010002}X>f9I0002pX>en20001XXm(>"
    "m0RwOV0058x000009`FGC{rLC*01pFT0096PKmiN^|NjGU00093kN^M!000939=ZZRVE_RDDnbDP18@KU0|1Z!00RI30{|YNAb|yz>g1-"
    "mxCm%4AOHXZ10VnZ0{|gn00967L;=Bbz=;3=025<xY;ta6Y<K_x01W^JfB*mh6lrsCWdHyG00000KmY&$KmY&$C}V74Z~y=RKmY&$0RR91FaQ7m0"
    "RR91000000{{R2@Bjb+0ssI25O8UDX#fBK00RgJ2mk;87-?{AVE_OC000000RRC7fdT^sga7~lifv?JbN~PVekcL2Smyny_&JV?c#-"
    "!h0R+%H(Fjg>$A(!5mjb`NtFDbK5&SEL&@a%iTSwu_Ok}UJTiof{e6QOihZ24MV)RPtI|=TbjZmGKHDw?;11L+|Oxxn-"
    "Yd1ceNJv@m{^pt2riW=H$DG#ctP`q7*m0~fkX!`_1FZh{nO&a"
)

_ALPHA = (
    "0000SW^{RQXk}?*00000ZE0pPXk}?*ZE0a<0007OZDn*}000000000XXk=`10000000000aA{+700000000000000000000G-"
    "+&aV*mgE07O6l0ssL300002j{pGx00000004pj0ssI200R*K0RR9100000bpQYWIB98aW&i*H00062000$fZf0cy000000RRAKc4ILB0000LX>Mj"
    "^0ssI200IC2Xm(>U000004sdC7Z2$lO0003100F9LaB^?}00Dw&aAR)(004Gqc4I>U18@KU0FVFx0000U@BsY%`1k+-"
    "4+CHT0RR|40Sp2E{{wIU00RJ!0009300RIXx&lC90096hLID8-"
    "Z~y=U0FVFx0{{R603M(qfd!W8<fgf}2xu@M00096AOHXZ03l)k0RRR>0l{;?i2wiq6Ju{|a&BX6cmM$a4FCp!0000KX>)L8000000000$0000$00"
    "00eV{Bn?0000$000010000m000010000000002|NsB+000020000GaA|mH000000|*ER0001RXm(>m0R#vD005u(000009`FGC{P_3)01pFT0096"
    "OKmiN^|NjIC00093pZEX(0{{RXx&lC90096cLID8;2mk;B0H62(00RI39>9VG7F(;5n&!ZO000bt00093gkk^z00u+>!E?Zg0000EaA|mH000000"
    "SEv904HH}ctZdH004DzZaQsnWoJ5QWp-maGB7bUI$?EqX=FMv00000AZc)IVE_OC000000ssL8fdT^sga85sh64wPga7~l8fkK6W&i*H000004q<"
    "h8YybiP0RRC20094OWMOmw004d{0k2r*{i*mlj*EDa_bCAc&^yrxPI$+LSqPT`zrCxjjVuxTD~8Z7(6C!a;mS;8ud-"
    "X*>Dhd*+a!k)eg0zfO6ofa?wpNKotQOcAUFdkOWRD_;^u2NKAcEMS@8bmnb)R=X(Y#-"
    "*6OSisz=yytTK>X1qcJI{`Z+(p8x;=aVP<<u(a_Ietkq#!!JnW^8Vede0zIDunh$Ca#ba{Rm=-"
    "_C6UKj3{5NksErOx@yXo7G7Llq;wVN$r}wMlVacVSg<SHWL_6yfs-L^eSCfqw^j^LCU`yG7EbmgVP%Vr!?(5&eU?9Y=7z63N*I)"
)

_METADATA = (
    "0000SW^{RQXk}?*00000ZE0pPXk}?*ZE0a<000CHZDn*}000000000XXk=`10000000000aA{+700000000000000000000G-"
    "+&aV*mgE07O6l0ssL300004F#rJo00000003qH0ssI200fr+0RR9100000H~;_uIB98aW&i*H00062000$fZf0cy000000RRAKc4ILB0000LX>Mj"
    "^0ssI300IC2MR;ju000004sdC7Z2$lO0003100T^EaB^?}00S#&aAR)(004Gqc4I>U18@KU0FVFx0000U@BsY%`1k+-"
    "4+CHT0RR|40Sp2E{{wIU00RJ!0009300RIXx&lC90096hLID8-"
    "Z~y=U0FVFx0{{R603M(qfd!W8<fgf}2xu@M00096AOHXZ03l)k0RRR>0l{;?i2wisSYvN&a&U5QW&i*JOl)Iqa|A#D0Bvq`a#BY^AXr&iAP4FI3j"
    "h@W2LJ{D31MS%a6wQ|OaK4?00000000000000000000000000002?)&Kzj0002fEo@_La{vGU000000000000000000000000000000000000000"
    "00000000000000003uI+;V*mgF2mk;8He+ydbN~PWKmY&$Om}o}bN~PWi~s-t6k}*%WB>pGpa1{>EOJ;`S^xk6%m4rY6k=FeS^xk6-"
    "~a#s6lYjjS^xk6^Z)<=6mnEjLjV8*2mk;8AZJukLjV8*2mk;8AYxQfLjV8*2mk;8AY*89Z2$lQC;$KeByDVUV*mgE000000RR913}tRrQvd(}8UO"
    "$Q8~}3wQUFH)LI5BDVgPjjX#i{hbO0>?X#j2j0Bvk_V*mgE000000RR913}tRrQvd(}FaQ7m8~{!LZvY?wV*qaeZ~%D#asX)nX8>pbbO0;>AOLj$"
    "a{y%kAOL0nasXujWdLjdd01ImAOHXW0002?)&Kzj0002fEpuiwG5`Po0003DLI3~--"
    "v9seB>(^ilK=qykpKVtq5uE=q5uE`+yDT;Zdh4bAOHXW0001Qpa1|k^#A|^kXTt-AOHXW0000ap8x<4ga81x!&q5bAOHXW0001DmjD2_hX4Q=*>G"
    "WUVE_OC000930007JW&i;4rvLyASpWbN&;S4mTVrT)Z2$lO000930001^*8l)idjJ4T%>V$Ing9SMW&i*WTmS$76lrsCWdHyG00000KmY&$KmY&$"
    "C}V74Z~y=RKmY&$0RR91FaQ7m0RR91000000{{R2@Bjb+0ssI25O8UDX#fBK00RgJ2mk;832Aa~bOQhY02yg;ZD9Za000000096227v+t1%!qG00"
    "0_ka%E-"
    "!00000000hSWOHKx0ssL30RR91rfp<lbN~PVVkiNx8G!FkBNG1r*${g`VdTu9EC8s}>iYRUUqJZn^c)kY7nmsSx9opo)P$wIFBc=enq(DaH@=!J<"
    "uK@Ykxr>$nTOYuDh)1Mvpm5wSuU+Onn&*t6;sI`)Mc~Txh>!T000I>cxh$;08LE*DgXcg2mk^B4gdlG000O8001Td5&#1L000311^@s60001Dc_4"
    "T)HZ=e"
)

PLAIN, ALPHA, METADATA = (base64.b85decode(text) for text in (_PLAIN, _ALPHA, _METADATA))


def _as_phones_write_it() -> bytes:
    """Two tiles side by side, turned, whose layout is in the `idat` box, with a thumbnail, a gain map and EXIF."""
    coded, own = isobmff.data(PLAIN), isobmff.properties(PLAIN)
    held = [
        *own,
        isobmff.full_box(b"ispe", struct.pack(">II", 128, 48)),
        isobmff.box(b"irot", b"\x01"),
        isobmff.full_box(b"auxC", b"urn:com:apple:photo:2020:aux:hdrgainmap\0"),
    ]
    extents, alone = [(0, len(coded))], range(1, len(own) + 1)
    exif = bytes(4) + b"MM\0*" + bytes(20)

    def picture(*more: int, **references: list[int]) -> isobmff.Item:
        named = {name.encode(): of for name, of in references.items()}
        return isobmff.Item(kind=b"hvc1", extents=extents, references=named, associations=[*alone, *more])

    items = [
        isobmff.Item(
            kind=b"grid",
            extents=[(0, 8)],
            construction=1,
            references={b"dimg": [2, 3]},
            associations=[len(own) + 1, len(own) + 2],
        ),
        picture(),
        picture(),
        picture(thmb=[1]),
        picture(len(own) + 3, auxl=[1]),
        isobmff.Item(kind=b"Exif", extents=[(len(coded), len(exif))], references={b"cdsc": [1]}, associations=[]),
    ]
    layout = struct.pack(">BBBBHH", 0, 0, 0, 1, 128, 48)
    return isobmff.assembled(b"heic", items, held, coded + exif, idat=layout)


PHONE = _as_phones_write_it()
