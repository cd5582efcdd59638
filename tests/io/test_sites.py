"""Sites and hours from files: every field arrives, every mistake is named, and real files of prices can be read."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

from dovetail.energy.cooling import PLANTS, plant_table
from dovetail.energy.site import Off
from dovetail.errors import InputError, SettingError
from dovetail.io.series import read_hours
from dovetail.io.sites import read_site
from dovetail.model.workload import Provenance, Workload
from dovetail.workloads.scenarios import apply
from tests.conftest import TRACES, needs_traces

HOURS = "when,EUR\n2021-01-01 00:00:00,10.5\n2021-01-01 01:00:00,-3\n2021-01-01 02:00:00,7.25\n"


def site(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_that_a_file_can_say(tmp_path: Path) -> None:
    (tmp_path / "hours.csv").write_text(HOURS, encoding="utf-8")
    (tmp_path / "pue.csv").write_text("W,10,11\n0,1.5,1.6\n500,1.2,1.3\n", encoding="utf-8")
    found = read_site(
        site(
            tmp_path,
            """
name = "here"
currency = "CHF"
busy_w = 9.5
idle_w = 3
tariff = 0.02
[off]
after = "10m"
wake = "90s"
processors = 4
w = 0.25
[cooling]
table = "pue.csv"
[temperature]
constant = 12.5
[price]
file = "hours.csv"
column = "EUR"
begins = 2021-01-01T01:00:00
[carbon]
constant = 350
""",
        )
    )
    assert (found.name, found.currency) == ("here", "CHF")
    assert (found.busy_mw, found.idle_mw, found.tariff) == (9500, 3000, 20_000)
    assert found.off == Off(600, 90, 4, 250)
    assert found.cooling.at(np.array([249_999, 250_000]), np.array([10_499, 10_500])).tolist() == [1500, 1300]
    assert found.temperature_mc.at(np.array([5])).tolist() == [12_500]
    at = np.array([-3600, -1, 0, 3599, 3600, 7200, 10_800])
    assert (found.price.at(at) / 1e6).tolist() == [10.5, 10.5, -3, -3, 7.25, 10.5, -3]
    assert found.price.changes(-1, 7201).tolist() == [0, 3600, 7200]
    assert found.carbon.at(at).tolist() == [350_000] * 7
    assert found.carbon.changes(0, 10**6).tolist() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("busy_w = 9\nidel_w = 3", "no key 'idel_w'; did you mean idle_w?"),
        ("", "busy_w = missing"),
        ("busy_w = true", "busy_w = True: must be a number from 0"),
        ("busy_w = -1", "busy_w = -1"),
        ("busy_w = nan", "busy_w = nan"),
        ("busy_w = 1\nname = 4", "name = 4: must be a text"),
        ("busy_w = 1\noff = 3", "write a section [off]"),
        ('busy_w = 1\n[off]\nafter = "soon"', "soon"),
        ("busy_w = 1\n[off]\nprocessors = 0", "off.processors = 0"),
        ("busy_w = 1\n[cooling]\npue = 0.9", "pue = 0.9"),
        ("busy_w = 1\n[cooling]\npue = 1.1\nplant = 'air'", "one of pue, plant and table"),
        ("busy_w = 1\n[cooling]\nplant = 'ice'\nfull_kw = 3", "choose from air, hybrid"),
        ("busy_w = 1\n[cooling]\ntable = 'hours.csv'", "not a table of PUEs"),
        ("busy_w = 1\n[price]", "needs a file or a constant"),
        ("busy_w = 1\n[price]\nconstant = 'x'", "price.constant = 'x'"),
        ("busy_w = 1\n[off]\nafter = 'soon'", "off.after"),
        ("busy_w = 1\n[price]\nfile = 'lines.csv'\ncolumn = 'EUR'", "not a table"),
        ("busy_w = 1\n[cooling]\ntable = 'lines.csv'", "not a table of PUEs"),
        ("busy_w = 1\n[price]\nfile = '~nosuchuser/x.csv'\ncolumn = 'EUR'", "nosuchuser"),
        (f"busy_w = 1\n[price]\nfile = '{'x' * 300}.tar/y.csv'\ncolumn = 'EUR'", "cannot be read"),
        ("busy_w = 1\n[price]\nfile = 'none.csv'", "none.csv"),
        ("busy_w = 1\n[price]\nfile = 'hours.csv'\ncolumn = 'USD'", "has no column 'USD'; it has when, EUR"),
        ("busy_w = 1\n[price]\nfile = 'hours.csv'\ncolumn = 'EUR'\nbegins = '2020-01-01'", "from 2021-01-01T00:00"),
        ("busy_w = 1\n[price]\nfile = 'gap.csv'\ncolumn = 'EUR'", "steps"),
        ("busy_w = 1\n[price]\nfile = 'text.csv'\ncolumn = 'EUR'", "'much' is not a number"),
        ("busy_w = 1\n[price]\nfile = 'pack.tar/none.csv'\ncolumn = 'EUR'", "is not a file in pack.tar"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "hours.csv").write_text(HOURS, encoding="utf-8")
    (tmp_path / "gap.csv").write_text(HOURS + "2021-01-01 04:00:00,1\n", encoding="utf-8")
    (tmp_path / "text.csv").write_text(HOURS + "2021-01-01 03:00:00,much\n", encoding="utf-8")
    (tmp_path / "lines.csv").write_bytes(b"when,EUR\r2021-01-01 00:00,1\r")
    with tarfile.open(tmp_path / "pack.tar", "w") as tar:
        tar.add(tmp_path / "hours.csv", "x/hours.csv")
    with pytest.raises(InputError, match=re.escape(said)):
        read_site(site(tmp_path, text))


def test_a_file_in_a_tar_file(tmp_path: Path) -> None:
    (tmp_path / "hours.csv").write_text(HOURS, encoding="utf-8")
    with tarfile.open(tmp_path / "pack.tar.xz", "w:xz") as tar:
        tar.add(tmp_path / "hours.csv", "x/hours.csv")
    found = read_site(site(tmp_path, "busy_w = 1\n[price]\nfile = 'pack.tar.xz/x/hours.csv'\ncolumn = 'EUR'"))
    assert found.price.values.tolist() == [10_500_000, -3_000_000, 7_250_000]


def test_damaged_and_hostile_tar_files(tmp_path: Path) -> None:
    (tmp_path / "hours.csv").write_text(HOURS * 50, encoding="utf-8")
    with tarfile.open(tmp_path / "pack.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "hours.csv", "hours.csv")
        link = tarfile.TarInfo("link.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "link.csv"
        tar.addfile(link)
    for name in ("link.csv", "../hours.csv"):
        with pytest.raises(InputError, match="is not a file in pack"):
            read_site(site(tmp_path, f"busy_w = 1\n[price]\nfile = 'pack.tar.gz/{name}'\ncolumn = 'EUR'"))
    raw = bytearray((tmp_path / "pack.tar.gz").read_bytes())
    raw[len(raw) // 2] ^= 16
    (tmp_path / "pack.tar.gz").write_bytes(raw)
    with pytest.raises(InputError, match="pack"):
        read_site(site(tmp_path, "busy_w = 1\n[price]\nfile = 'pack.tar.gz/hours.csv'\ncolumn = 'EUR'"))


def test_packed_weather_and_blank_lines(tmp_path: Path) -> None:
    weather = {"hourly": {"time": ["2021-01-01T00:00", "2021-01-01T01:00"], "temperature_2m": [-1.5, 3]}}
    (tmp_path / "w.json.gz").write_bytes(gzip.compress(json.dumps(weather).encode()))
    (tmp_path / "hours.csv").write_text(HOURS + "\n", encoding="utf-8")
    text = "busy_w = 1\n[temperature]\nfile = 'w.json.gz'\n[price]\nfile = 'hours.csv'\ncolumn = 'EUR'"
    found = read_site(site(tmp_path, text))
    assert found.temperature_mc.values.tolist() == [-1500, 3000]
    assert len(found.price.values) == 3


def test_weather(tmp_path: Path) -> None:
    weather = {"hourly": {"time": ["2021-01-01T00:00", "2021-01-01T01:00"], "temperature_2m": [-1.5, 3]}}
    (tmp_path / "w.json").write_text(json.dumps(weather), encoding="utf-8")
    found = read_site(site(tmp_path, "busy_w = 1\n[temperature]\nfile = 'w.json'"))
    assert found.temperature_mc.values.tolist() == [-1500, 3000]


@needs_traces
@pytest.mark.parametrize(
    ("section", "file", "column", "hours"),
    [
        ("price", "epftoolbox_dayahead_real_prices.tar.xz/DE_real_price.csv", "real_price", 17_472),
        ("carbon", "DK-DK2_2021-2023_carbon_hourly.csv.gz", "Carbon intensity gCO₂eq/kWh (direct)", 26_280),
        ("temperature", "dc-rl_epw_weather.tar.xz/ESP_Granada.084190_SWEC.epw", "", 8760),
        ("temperature", "sustain-cluster_weather_2020-2024.tar.xz/weather/DE-LU/2021.json", "", 8760),
    ],
)
def test_real_files(tmp_path: Path, section: str, file: str, column: str, hours: int) -> None:
    text = f"busy_w = 1\n[{section}]\nfile = '{TRACES}/energy/{file}'\n" + (f"column = '{column}'" if column else "")
    found = read_site(site(tmp_path, text))
    series = {"price": found.price, "carbon": found.carbon, "temperature": found.temperature_mc}[section]
    assert len(series.values) == hours
    assert series.step_s == 3600


@needs_traces
@pytest.mark.parametrize(("plant", "winter", "summer"), [("air", 1.11, 1.43), ("hybrid", 1.00, 1.09)])
def test_plants_have_the_pues_of_the_paper(plant: str, winter: float, summer: float) -> None:
    weather = read_hours(TRACES / "energy/dc-rl_epw_weather.tar.xz/ESP_Granada.084190_SWEC.epw", "", "", 1000).values
    table = plant_table(plant, PLANTS[plant], 90_000)
    for first, said in ((0, winter), (181, summer)):
        degrees = weather[24 * first : 24 * (first + 23)]
        pue = table.at(np.full(len(degrees), 90_000_000), degrees).mean() / 1000
        assert round(float(pue), 2) == said


def test_power_is_drawn_between_two_numbers() -> None:
    size = np.ones(400, np.int64)
    columns = {"id": np.arange(400), "submit": np.arange(400), "size": size, "runtime": size, "limit": size}
    workload = Workload("case", columns, 4, Provenance("made"))
    drawn = apply(workload, "power=7.8..11.11", seed=5)
    power = drawn["power_mw"]
    assert 7_800 <= power.min() < 7_850
    assert 11_060 < power.max() <= 11_110
    assert (power == apply(workload, "power=7.8..11.11", seed=5)["power_mw"]).all()
    assert (power != apply(workload, "power=7.8..11.11", seed=6)["power_mw"]).any()
    for wrong in ("power=3..2", "power=x", "power="):
        with pytest.raises(SettingError, match="power"):
            apply(workload, wrong)
