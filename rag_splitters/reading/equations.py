"""The equations of a Word document in LaTeX, as Markdown writes them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from xml.etree import ElementTree

from rag_splitters.reading.archives import attribute, local_name

_PLACE = "\ue000{}\ue000"
_PLACES = re.compile(_PLACE.format("([0-9]{1,9})"))
_ACCENTS = {"\u0302": "hat", "\u0305": "bar", "\u20d7": "vec", "\u0307": "dot", "\u0303": "tilde"}
_FORMS = {
    "f": r"\frac{%(num)s}{%(den)s}",
    "func": "%(fName)s %(e)s",
    "limLow": "{%(e)s}_{%(lim)s}",
    "limUpp": "{%(e)s}^{%(lim)s}",
    "nary": "%(chr)s_{%(sub)s}^{%(sup)s} %(e)s",
    "rad": r"\sqrt[%(deg)s]{%(e)s}",
    "sPre": "{}_{%(sub)s}^{%(sup)s}{%(e)s}",
    "sSub": "{%(e)s}_{%(sub)s}",
    "sSubSup": "{%(e)s}_{%(sub)s}^{%(sup)s}",
    "sSup": "{%(e)s}^{%(sup)s}",
}
"""Elements by their name, with the places of their children; places that stay empty are dropped."""
_EMPTY = re.compile(r"[_^]\{\}|(?<=sqrt)\[\]")
_SPECIAL = str.maketrans({"|": r"\vert ", "%": r"\%", "#": r"\#", "\u2061": " ", "\n": " "})


def take_equations(root: ElementTree.Element, number: int = 0) -> Iterator[str]:
    """Put a mark for each equation into a part of a Word document, and yield the equations.

    An equation is LaTeX between dollars, with two of them if it stands on lines of its own. The
    marks are numbered from `number`.
    """
    word = root.tag.rpartition("}")[0] + "}"
    for parent in list(root.iter()):
        last = -2
        for index, child in enumerate(parent):
            name = local_name(child)
            if name == "oMathPara" or (name == "oMath" and local_name(parent) != "oMathPara"):
                dollars = "$$" if name == "oMathPara" else "$"
                run = ElementTree.Element(f"{word}r")
                run.tail = child.tail
                space = " " if index == last + 1 else ""  # "$$" would begin another equation
                ElementTree.SubElement(run, f"{word}t").text = space + _PLACE.format(number)
                parent[index], last = run, index
                number += 1
                yield dollars + " ".join(_latex(child).split()) + dollars


def put_equations(text: str, equations: list[str]) -> str:
    """Replace the marks in a text by the equations."""
    by_mark = {_PLACE.format(number): each for number, each in enumerate(equations)}
    return _PLACES.sub(lambda match: by_mark.get(match[0], match[0]), text)


def _latex(element: ElementTree.Element) -> str:
    """Write an element of Office's mathematical markup in LaTeX.

    >>> text = "<f><num><r><t>m</t></r></num><den><r><t>a</t></r></den></f>"
    >>> _latex(ElementTree.fromstring(text))
    '\\\\frac{m}{a}'
    """
    name = local_name(element)
    if name == "t":
        return (element.text or "").translate(_SPECIAL)
    parts = [(local_name(child), _latex(child)) for child in element]
    texts = defaultdict(str, parts)
    if name == "f" and _property(element, "type", "") == "noBar":
        return rf"{{{texts['num']} \atop {texts['den']}}}"
    if name in _FORMS:
        return _EMPTY.sub("", _FORMS[name] % (texts | {"chr": _property(element, "chr", "∫")}))
    if name == "acc":
        mark = _property(element, "chr", "\u0302")
        return rf"\{_ACCENTS[mark]}{{{texts['e']}}}" if mark in _ACCENTS else texts["e"] + mark
    if name == "bar":
        side = "over" if _property(element, "pos", "bot") == "top" else "under"
        return rf"\{side}line{{{texts['e']}}}"
    items = [text for kind, text in parts if kind in ("e", "mr")]
    if name == "d":
        inner = ", ".join(items)
        return _property(element, "begChr", "(") + inner + _property(element, "endChr", ")")
    if name == "mr":
        return " & ".join(items)
    if name in ("m", "eqArr") and len(items) > 1:
        return r"\begin{matrix} " + r" \\ ".join(items) + r" \end{matrix}"
    return "".join(text for _, text in parts)


def _property(element: ElementTree.Element, name: str, default: str) -> str:
    """Return a property of an element, such as the sign of a sum."""
    properties = (each for each in element if local_name(each).endswith("Pr"))
    for child in chain.from_iterable(properties):
        if local_name(child) == name:
            return attribute(child, "val").translate(_SPECIAL)
    return default
