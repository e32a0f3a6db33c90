"""The values that are filled into the form of a PDF, which are not in the text of its pages."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

from rag_splitters.reading.fonts import Line, Part

_Result = TypeVar("_Result")
_AROUND = 3.0  # points around a field, because what highlights it is drawn behind it
_OFF = "Off"  # the value of a box that is not checked


def read_fields(page: Any, raw: Any) -> list[Line]:
    """Return a line for each form field of a page that has a value: its label and the value.

    The label is the description that a field shows under the mouse pointer, else its name.
    """
    lines = dict[str, Line]()
    for number in range(raw.FPDFPage_GetAnnotCount(page)) if page.formenv else ():
        if text := _with_annotation(page, raw, number, _field):
            lines.setdefault(text, Line(text, None, (Part(0, text, -1 - number),)))
    return list(lines.values())


def field_edges(page: Any, raw: Any, place: int) -> tuple[float, float, float, float]:
    """Return left, bottom, right and top of a rectangle around a field, by its part's place."""
    left, bottom, right, top = _with_annotation(page, raw, -1 - place, _edges)
    return left - _AROUND, bottom - _AROUND, right + _AROUND, top + _AROUND


def _with_annotation(
    page: Any, raw: Any, number: int, function: Callable[[Any, Any, Any], _Result]
) -> _Result:
    annotation = raw.FPDFPage_GetAnnot(page, number)
    try:
        return function(page.formenv, raw, annotation)
    finally:
        raw.FPDFPage_CloseAnnot(annotation)


def _field(form: Any, raw: Any, annotation: Any) -> str:
    """Return the label and the value of a field; "" if it has no value."""

    def text(function: Callable[..., int]) -> str:
        size = function(form, annotation, None, 0)
        letters = (ctypes.c_ushort * (size // 2))()
        function(form, annotation, letters, size)
        return " ".join(bytes(letters).decode("utf-16-le", "surrogatepass").rstrip("\0").split())

    value = text(raw.FPDFAnnot_GetFormFieldValue)
    if value in ("", _OFF):
        return ""
    label = text(raw.FPDFAnnot_GetFormFieldAlternateName) or text(raw.FPDFAnnot_GetFormFieldName)
    return f"{label}: {value}"


def _edges(form: Any, raw: Any, annotation: Any) -> tuple[float, float, float, float]:
    rectangle = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, rectangle)
    return rectangle.left, rectangle.bottom, rectangle.right, rectangle.top
