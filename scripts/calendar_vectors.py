#!/usr/bin/env python3
"""Writes tests/vectors/: what other libraries say about zones, intervals, cron expressions and working days.

Run it by hand when the zone database of the crate changes, in an environment with the packages that it names:
    pip install tzdata==2026.6 croniter==7.0.0 holidays==0.109 numpy==2.4.6 python-dateutil==2.9.0.post0
    PYTHONTZPATH= scripts/calendar_vectors.py
The files are read by src/calendar/vectors_test.rs, line by line.
"""

import json
import random
from datetime import date, datetime, timedelta, timezone
from importlib.metadata import version
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import holidays
import numpy
from croniter import croniter
from dateutil.relativedelta import relativedelta

VECTORS = Path(__file__).resolve().parent.parent / "tests" / "vectors"
FIRST, LAST = datetime(2020, 1, 1, tzinfo=timezone.utc), datetime(2031, 1, 1, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
random.seed(20261201)


def seconds(instant):
    return (instant - EPOCH) // timedelta(seconds=1)


def write(name, source, rows):
    lines = [json.dumps({"source": source})] + [json.dumps(row, separators=(",", ":")) for row in rows]
    (VECTORS / name).write_text("\n".join(lines) + "\n")
    print(name, len(rows))


def offset(zone, at):
    return (EPOCH + timedelta(seconds=at)).astimezone(zone).utcoffset() // timedelta(seconds=1)


def changes(zone):
    """All changes of the offset in the years 2020 to 2030: the second of the change, and the offsets around it."""
    step, found, at = 6 * 3600, [], seconds(FIRST)
    before = offset(zone, at)
    while at < seconds(LAST):
        after = offset(zone, at + step)
        if after != before:
            low, high = at, at + step
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
            found.append((high, before, after))
        at, before = at + step, after
    return found


def ambiguous(zone, change, before, after):
    """The civil time in the middle of a gap or an overlap, and the two instants that Python gives for it."""
    shown = change + (before + after) // 2
    civil = (EPOCH + timedelta(seconds=shown)).replace(tzinfo=None)
    return [civil.isoformat()] + [seconds(civil.replace(tzinfo=zone, fold=fold)) for fold in (0, 1)]


def zones():
    alike = {}
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        rows = tuple((*change, *ambiguous(zone, *change)) for change in changes(zone))
        alike.setdefault((offset(zone, seconds(FIRST)), rows), []).append(name)
    return [{"zones": names, "offset": first, "changes": rows} for (first, rows), names in alike.items()]


def every():
    rows = []
    names = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca",
             "America/Sao_Paulo", "Pacific/Auckland", "America/Havana", "Asia/Beirut"]
    for _ in range(600):
        zone = ZoneInfo(random.choice(names))
        anchor = EPOCH + timedelta(seconds=random.randrange(seconds(FIRST), seconds(LAST)))
        months, days = random.choice([(1, 0), (3, 0), (12, 0), (0, 1), (0, 7), (1, 1), (0, 13)])
        n = random.randrange(1, 400)
        civil = anchor.astimezone(zone).replace(tzinfo=None, fold=0)
        civil = civil + relativedelta(months=months * n) + timedelta(days=days * n)
        rows.append([zone.key, seconds(anchor), months, days, n, seconds(civil.replace(tzinfo=zone, fold=0))])
    return rows


CRONS = """
* * * * *|*/15 * * * *|30 8 * * 1-5|0 9 * * MON-FRI|0 0 1 * *|0 0 29 2 *|13 0 13 * FRI|0 12 * * 0|0 12 * * 7
0 12 * * SUN|0 0 * * 5-7|0 0 * * FRI-SUN|0 0 1,15 * 3|0 0 31 * *|5 4 * * SUN|0 0 1-7 * *|10-50/20 6,18 * * *
0 0 1 1 *|59 23 31 12 *|0 0 * 2 *|0 0 30 4,6,9,11 *|*/7 */5 * * *|0 22 * * 1-5|23 0-20/2 * * *|0 4 8-14 * *
15 14 1 * *|0 0 1 JAN *|0 0 * JAN,JUL MON|0 0 29 FEB *|0 0 * * 1-7/2|0 0 1-31/2 * 1|1,2,3,58 1,2 5,6 * *|0 0 28-31 2 *
""".replace("\n", "|").strip("|").split("|")


def cron():
    rows = []
    for expression in CRONS:
        for _ in range(4):
            start = datetime(2023, 1, 1) + timedelta(seconds=random.randrange(0, 4 * 365 * 86400))
            search = croniter(expression, start)
            rows.append([expression, start.isoformat(), [search.get_next(datetime).isoformat() for _ in range(5)]])
    return rows


ROLLS = {"following": "following", "preceding": "preceding",
         "modified_following": "modifiedfollowing", "modified_preceding": "modifiedpreceding"}


def business():
    """Random calendars as numpy counts them."""
    rows = []
    for _ in range(60):
        weekend = random.choice([[6, 7], [5, 6], [7], [], [4, 5], [6]])
        mask = [0 if day in weekend else 1 for day in range(1, 8)]
        first = date(2026, 1, 1)
        off = sorted({(first + timedelta(days=random.randrange(730))).isoformat() for _ in range(random.randrange(40))})
        counts = []
        for _ in range(12):
            start, n, roll = first + timedelta(days=random.randrange(30, 600)), random.randrange(1, 60), random.choice(list(ROLLS))
            end = numpy.busday_offset(start.isoformat(), n, roll=ROLLS[roll], weekmask=mask, holidays=off)
            counts.append([start.isoformat(), n, roll, str(end)])
        rows.append({"weekend": weekend, "holidays": off, "working": [], "counts": counts})
    return rows


COUNTRIES = [("DE", "BY"), ("US", "CA"), ("GB", "SCT"), ("SA", None), ("CN", None), ("IL", None), ("IN", "MH"), ("BR", "SP"),
             ("JP", None), ("AE", None)]


def countries():
    """Real calendars, with working days at weekends where there are such, as `holidays` counts them."""
    rows = []
    for country, subdivision in COUNTRIES:
        days = holidays.country_holidays(country, subdiv=subdivision, years=[2025, 2026])
        weekend = sorted(day + 1 for day in days.weekend)
        off = sorted(day.isoformat() for day in days if day.year in (2025, 2026) and day.weekday() not in days.weekend)
        working = sorted(day.isoformat() for day in getattr(days, "weekend_workdays", ()) if day.year in (2025, 2026))
        counts = []
        for _ in range(20):
            start, n = date(2025, 1, 1) + timedelta(days=random.randrange(500)), random.randrange(1, 40)
            day = start
            while not days.is_working_day(day):
                day += timedelta(days=1)
            counts.append([start.isoformat(), n, "following", days.get_nth_working_day(day, n).isoformat()])
        rows.append({"country": f"{country}-{subdivision}", "weekend": weekend, "holidays": off, "working": working,
                     "counts": counts})
    return rows


def packages(*names):
    return ", ".join(f"{name} {version(name)}" for name in names)


VECTORS.mkdir(exist_ok=True)
write("zones.jsonl", packages("tzdata"), zones())
write("every.jsonl", packages("tzdata", "python-dateutil"), every())
write("cron.jsonl", packages("croniter"), cron())
write("business.jsonl", packages("numpy", "holidays"), business() + countries())
