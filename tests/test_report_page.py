"""The page for people in a browser: on a phone, on a desk, by night, on paper, without a network."""

import base64
import json

import pytest

from inlet.commands import report, runs
from tests import browser, lakes, projects
from tests.lakes import BEGAN, batch, point, rejected, seq

pytestmark = [
    pytest.mark.proof,
    pytest.mark.gate,
    pytest.mark.skipif(not browser.is_there(), reason="chromium and chromedriver are not installed"),
]
EVIL = "<script>document.title = 'taken'</script>"


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    """The page of a project with something of everything; names that are long, and one that is a script."""
    project = projects.make(tmp_path_factory.mktemp("page"))
    for number in range(1, 90):
        counts = {"num_changes": 1000 * number, "num_control": 50, "num_rejected": number % 7}
        lakes.write(project, "silver.batches", batch(number, "depot", seq(number // 2), **counts))
    lakes.write(project, "gold.published", point(1, BEGAN, depot=seq(5)))
    long = "a_name_that_goes_on_" * 6
    for kind in ("bad_digit", "unknown_table"):
        fields = {"source_table": EVIL, "found": "9" * 300, "unit_id": long, "raw": bytes(range(200))}
        lakes.write(project, "silver.rejects", rejected("depot", kind, **fields))
    lakes.write(
        project,
        "checks.results",
        {"run_id": 1, "step": "gold", "table": f"gold.{long}", "expectation": EVIL, "severity": "error",
         "success": False, "why": long, "checked_at": BEGAN, "rows_sql": f"select * from {long}"},
    )  # fmt: skip
    for n in range(20):
        steps = [{"step": step, "seconds": n + 1} for step in ("spark", "silver", "gold", EVIL)]
        runs.keep(project, {"began": f"2026-01-05T13:{n:02}:00+00:00", "seconds": 4 * n, "command": "run",
                            "exit_code": 3 * (n == 19), "error": "x" * 200, "steps": steps})  # fmt: skip
    return f"file://{report.write(project)}"


@pytest.fixture(scope="module")
def driver():
    with browser.chromium() as opened:
        yield opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(driver, url, width, scheme):
    browser.size(driver, width, scheme)
    driver.get(url)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.execute_script(browser.WIDER_THAN_THE_PAGE) == []


def test_a_reader_sees_first_what_needs_attention(driver, url):
    browser.size(driver, 360)
    driver.get(url)
    headings = [element.text for element in driver.find_elements("css selector", "h2")]
    assert headings == [
        "What needs attention",
        "What came in",
        "What waits",
        "Lag",
        "Rejects",
        "Checks",
        "Sizes",
        "Runs: seconds per step",
    ]
    first = driver.find_element("css selector", ".notes li")
    assert first.text.startswith("act") and first.rect["y"] < 800
    assert len(driver.find_elements("css selector", "#came rect")) >= 60


def test_it_asks_no_network_says_no_error_and_runs_no_script(driver, url):
    driver.get_log("performance"), driver.get_log("browser")
    driver.get(url)
    sent = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {event["params"]["request"]["url"] for event in sent if event["method"] == "Network.requestWillBeSent"}
    assert {one for one in asked if not one.startswith("data:")} == {url}
    assert driver.get_log("browser") == [] and driver.title != "taken"
    assert driver.find_elements("css selector", "script") == []


def test_on_paper_it_is_whole(driver, url):
    browser.size(driver, 1280, "dark")  # paper is white by night, too
    driver.get(url)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    style = "return getComputedStyle(document.querySelector('{}')).{}"
    assert driver.execute_script(style.format("nav", "display")) == "none"
    assert driver.execute_script(style.format("body", "color")) == "rgb(27, 31, 36)"
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    pdf = driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    assert base64.b64decode(pdf["data"]).startswith(b"%PDF")
