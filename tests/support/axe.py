"""Accessibility of a page in the browser, by axe-core (package `axe-playwright-python`)."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

_RUN = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, impact, help, nodes }) =>
        nodes.map((node) => [impact, `${id}: ${help}: ${node.target.join(" ")}: ${node.html}`]));
}"""


def violations(page: Any) -> list[str]:
    """What axe-core calls critical or serious on a page of Playwright, as it is drawn now.

    The script is run by the browser's debugger, so the page's Content Security Policy does not
    stop it.

    Parameters:
        page: a page of Playwright's synchronous API.

    Returns: one line for each element: the rule, what it asks for, and the element.
    """
    if not page.evaluate("() => typeof axe === 'object'"):
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
    return [line for impact, line in page.evaluate(_RUN) if impact in ("critical", "serious")]
