"""Lines of the Standard Workload Format, from bytes to numbers. One pass, exact integers, no Python objects.

A caller hands over a buffer of bytes and arrays for what comes out, and calls again where one of them was
full or the last line was not complete. What becomes of a line is a code; io/swf.py has the words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.kernels.compile import inner, jit

Array = npt.NDArray[Any]

KEPT, FIELDS, NUMBER, BYTES, LONG, HUGE, TIME, SIZE, FRACTION, JOB, PARTIAL, DUPLICATE = range(12)
"""What becomes of a line that is neither blank nor a comment. DUPLICATE is left to the caller."""

POS, END, FINAL, LINE, IN_LONG, HAS_JOB, N_ROWS, N_ASIDE, N_COMMENTS, N_SLOW = range(10)
"""Places in `state`: bytes consumed, bytes present, whether no more will come, lines ended so far, whether we
are inside a line that is too long, whether a line was kept, and how much of each output is filled."""

LONGEST = 4096
"""Longest line, in bytes without its line end."""
HOLD = LONGEST + 5
"""Bytes without a line end that prove a line too long, even with a byte order mark and a carriage return."""
MOST_SECONDS = 10**10
MOST_PROCESSORS = 10**9
N_FIELDS = 18
ROW = N_FIELDS + 1
"""Numbers kept of a line: its fields in order (field 6 is in `cpu` instead), then its line number."""


@inner
def parse_number(data: Array, i: int, stop: int, part: Array) -> int:
    """Read one field from byte i on; returns where it ends. `part` becomes: sign, whole part, digits in all,
    fractional digits, all digits as one integer, first fractional digit, whether later ones are not all 0,
    fault (0 none, 1 not a number, 2 beyond 64 bits, 3 a byte that is not printable ASCII)."""
    part[:] = 0
    part[0] = 1
    if data[i] == 45:
        part[0] = -1
        i += 1
    begin = i
    whole = np.int64(0)
    while i < stop and 48 <= data[i] <= 57:
        digit = np.int64(data[i]) - 48
        if whole > 922337203685477580 or (whole == 922337203685477580 and digit > 7):
            part[7] = 2
        else:
            whole = whole * 10 + digit
        i += 1
    digits = i - begin
    if digits == 0:
        part[7] = 1
    part[1] = whole
    all_digits = whole
    if i < stop and data[i] == 46:
        i += 1
        point = i
        while i < stop and 48 <= data[i] <= 57:
            digit = np.int64(data[i]) - 48
            if i == point:
                part[5] = digit
            elif digit:
                part[6] = 1
            digits += 1
            if digits <= 15:
                all_digits = all_digits * 10 + digit
            i += 1
        part[3] = i - point
        if i == point:
            part[7] = 1
    part[2] = digits
    part[4] = all_digits
    while i < stop and data[i] != 32 and data[i] != 9:
        if data[i] < 33 or data[i] > 126:
            part[7] = 3
        elif part[7] != 3:
            part[7] = 1
        i += 1
    return i


@inner
def parse_fields(
    data: Array, i: int, stop: int, state: Array, rows: Array, cpu: Array, slow: Array, part: Array
) -> int:
    """Read the fields of one line into the next row; returns the line's code. The row counts only if KEPT."""
    n = state[N_ROWS]
    rows[0, n] = -1
    field = 0
    fault = KEPT
    bad_byte = False
    slow_from = -1
    slow_to = -1
    while True:
        while i < stop and (data[i] == 32 or data[i] == 9):
            i += 1
        if i == stop:
            break
        begin = i
        i = parse_number(data, i, stop, part)
        field += 1
        if part[7] == 3:
            bad_byte = True
        if field > N_FIELDS:
            continue
        code = KEPT
        sign = part[0]
        value = sign * part[1]
        if part[7] == 1:
            code = NUMBER
        elif part[7] == 2:
            code = HUGE
        elif field == 6:
            # Up to 15 digits, digits / 10^k is the nearest float64; beyond that the caller converts.
            if part[2] <= 15:
                power = 1.0
                for _ in range(part[3]):
                    power *= 10.0
                cpu[n] = sign * part[4] / power
            else:
                slow_from, slow_to = begin, i
        elif field == 2 or field == 3 or field == 4 or field == 9 or field == 18:
            # Half up, also below zero: -1.5 becomes -1, -1.6 becomes -2.
            if part[1] <= MOST_SECONDS:
                if sign > 0 and part[5] >= 5:
                    value += 1
                elif sign < 0 and (part[5] > 5 or (part[5] == 5 and part[6])):
                    value -= 1
            if value > MOST_SECONDS or value < -MOST_SECONDS:
                code = TIME
        elif part[5] or part[6]:
            code = FRACTION
        elif field == 5 or field == 8:
            if value > MOST_PROCESSORS or value < -MOST_PROCESSORS:
                code = SIZE
        elif field == 1 and value < 0:
            code = JOB
        if code == KEPT:
            rows[field - 1, n] = value
        elif fault == KEPT:
            fault = code
    if bad_byte:
        return BYTES
    if field != N_FIELDS:
        return FIELDS
    if fault == KEPT and 2 <= rows[10, n] <= 4:
        return PARTIAL
    if fault == KEPT and slow_from >= 0:
        k = state[N_SLOW]
        slow[k, 0], slow[k, 1], slow[k, 2] = n, slow_from, slow_to
        state[N_SLOW] = k + 1
    return fault


@jit
def parse_lines(
    data: Array,
    state: Array,
    rows: Array,
    cpu: Array,
    aside: Array,
    slow: Array,
    comments: Array,
    part: Array,
) -> bool:
    """Read lines from state[POS] on. Returns whether it stopped because an output was full.

    rows: one column of numbers per kept line; cpu: its field 6. aside: line, job number (-1 unknown), code.
    slow: row and span of a field 6 with more than 15 digits. comments: spans of those before
    the first kept line, each cut at LONGEST bytes. part: eight numbers of working space.
    Stops before a last line that is not complete, unless state[FINAL] says that no more will come.
    """
    end = state[END]
    # Invariant: data[state[POS]] is the first byte of a line, or inside one that was already found too long.
    while state[POS] < end:
        if state[N_ROWS] == rows.shape[1] or state[N_ASIDE] == len(aside):
            return True
        if state[N_COMMENTS] == len(comments):
            return True
        begin = state[POS]
        newline = begin
        while newline < end and data[newline] != 10:
            newline += 1
        complete = newline < end or state[FINAL] != 0
        if state[IN_LONG]:
            state[POS] = min(newline + 1, end)
            if complete:
                state[IN_LONG] = 0
                state[LINE] += 1
            continue
        if not complete and newline - begin < HOLD:
            return False
        if state[LINE] == 0 and newline - begin >= 3:
            if data[begin] == 0xEF and data[begin + 1] == 0xBB and data[begin + 2] == 0xBF:
                begin += 3
        stop = newline
        if stop > begin and data[stop - 1] == 13:
            stop -= 1
        first = begin
        while first < stop and (data[first] == 32 or data[first] == 9):
            first += 1
        too_long = stop - begin > LONGEST
        if too_long and first - begin >= LONGEST:
            first = begin  # bytes beyond are not looked at, or the result would depend on the chunks
        if first < stop and data[first] == 59:
            if not state[HAS_JOB]:
                k = state[N_COMMENTS]
                comments[k, 0], comments[k, 1] = first, min(stop, begin + LONGEST)
                state[N_COMMENTS] = k + 1
        elif first < stop:
            code = LONG
            rows[0, state[N_ROWS]] = -1
            if not too_long:
                code = parse_fields(data, first, stop, state, rows, cpu, slow, part)
            if code == KEPT:
                rows[N_FIELDS, state[N_ROWS]] = state[LINE] + 1
                state[N_ROWS] += 1
                state[HAS_JOB] = 1
            else:
                k = state[N_ASIDE]
                aside[k, 0], aside[k, 1], aside[k, 2] = state[LINE] + 1, rows[0, state[N_ROWS]], code
                state[N_ASIDE] = k + 1
        if complete:
            state[LINE] += 1
        else:
            state[IN_LONG] = 1
        state[POS] = min(newline + 1, end)
    return False
