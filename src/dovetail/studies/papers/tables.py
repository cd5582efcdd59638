"""Published numbers, as printed: what a reproduction is measured against.

"CP" is Goponenko, Lamar, Allan, Brandt and Dechev, Job Scheduling for HPC Clusters: Constraint Programming
vs. Backfilling Approaches (DEBS 2024); "Packing" is Goponenko, Lamar, Peterson, Allan, Brandt and Dechev,
Metrics for Packing Efficiency and Fairness of HPC Cluster Batch Job Scheduling (SBAC-PAD 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

TRACES: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie", "BW201911")
"""Columns of both tables, once for each estimate."""
UNAVAILABLE: Final = "BW201911"
"""The trace that could not be had: its numbers are only cited."""
ESTIMATES: Final = ("runtime", "limit")
METRICS: Final = {"bsld": "BSLD", "af_s": "AF", "awf_s": "AWF", "p2sf_s": "P2SF"}
"""Keys of `dovetail.metrics.summarize`, and what the papers call them."""


@dataclass(frozen=True, order=True)
class Place:
    """One cell of a table: the metric, the paper's name of the policy, the estimate and the trace."""

    metric: str
    row: str
    estimate: str
    trace: str


@dataclass(frozen=True)
class Table:
    """A published table: percentages of what the row `base` has with the same estimate on the same trace."""

    title: str
    base: str
    """The row that all others are divided by."""
    policies: Mapping[str, str]
    """The paper's name of each row, and ours."""
    percent: Mapping[Place, int]
    """Per cent of the base row; percent changes are stored as 100 plus the change. No illegible cells."""
    misread: Mapping[Place, str]
    """Cells that the text at hand garbles, as they stand there. Those read for sure are in `percent` too."""


def _table(
    title: str, base: str, policies: Mapping[str, str], text: str, offset: int, readings: Mapping[str, int]
) -> Table:
    """Read lines of `metric row` and 12 numbers; a garbled one is looked up in `readings` by its place."""
    percent: dict[Place, int] = {}
    misread: dict[Place, str] = {}
    columns = [(estimate, trace) for estimate in ESTIMATES for trace in TRACES]
    for line in text.strip().splitlines():
        metric, row, *cells = line.split()
        for (estimate, trace), cell in zip(columns, cells, strict=True):
            place = Place(metric, row, estimate, trace)
            reading = readings.get(f"{metric} {row} {estimate} {trace}")
            legible = reading is None and cell.lstrip("-").isdigit()
            if not legible:
                misread[place] = cell
            if legible or reading is not None:
                percent[place] = offset + (int(cell) if reading is None else reading)
    return Table(title, base, policies, percent, misread)


TABLE_2: Final = _table(
    "Table 2 of CP",
    "List-REG",
    {
        "List-REG": "list-reg", "List-SPF": "list-spf", "List-SAF": "list-saf", "List-SJF": "list-sjf",
        "List-LAF": "list-laf", "EASY": "easy",
    },
    """
    bsld   List-SPF  29  15   2%  13  16   8   43  57   97  82   8  33
    bsld   List-SAF  31  17   23  12  16   8   44  58  109  98   7  2%
    bsld   List-SJF  33  17   27  15  23   9   44  43   77  43  28  33
    bsld   EASY     107 129  106  77 125 177   91  76   86  69  19  59
    af_s   List-SAF  83  67  ii2  62  79  53   94  86  240  89  72  47
    af_s   List-SJF  82  77  114  56  83  62   81  67  149  69  81  74
    af_s   EASY      96  90   9%  87  93  87   93  76   88  85  80  7%
    awf_s  List-LAF  94  94   83  92 100  98   94  94   75  91  98  99
    awf_s  EASY     101 101  100 100 100 100  101  9%   94 100  99 102
    p2sf_s List-REG 100 100  100 100 100 100  100 100  100 100 100 100
    p2sf_s EASY     104 106  109 104 101 101  106 100  997 110 102 104
    """,
    0,
    # The text was read by machine from the page. Readings of garbled cells follow Table II of Packing, which
    # has the same rows but List-SPF: there "2%" lost its second digit, and only our result could restore it.
    {
        "bsld List-SAF limit BW201911": 24, "af_s List-SAF runtime SDSC-SP2": 172,
        "af_s EASY runtime SDSC-SP2": 96, "af_s EASY limit BW201911": 77, "awf_s EASY limit CTC-SP2": 96,
        "p2sf_s EASY limit SDSC-SP2": 99,
    },
)  # fmt: skip

TABLE_II: Final = _table(
    "Table II of Packing",
    "JustBF",
    {
        "LAF-JustBF": "list-laf", "LAF-Aggressive": "greedy-laf", "JustBF": "list-reg", "EASY": "easy",
        "EASY-SJBF": "easy-sjbf", "SJF-Aggressive": "greedy-sjf", "SAF-Aggressive": "greedy-saf",
        "SJF-JustBF": "list-sjf", "SAF-JustBF": "list-saf", "SAF-EASY": "saf-easy",
    },
    """
    bsld   LAF-JustBF      117   379   366   838  600 1175    35   229    88   305  196  154
    bsld   LAF-Aggressive  111   258   288   135  197  146    24    33    74    32  -79  -87
    bsld   JustBF            0     0     0     0    0    0     0     0     0     0    0    0
    bsld   EASY              7    29     5   -23   25   77    -9   -24   -14   -31  -81  -41
    bsld   EASY-SJBF       -26   -39   -15   -67  -55  -47   -32   -53   -19   -64  -83  -60
    bsld   SJF-Aggressive  -34   -58   -51   -30  -70   90   -48   -74   -33   -50  -94  -90
    bsld   SAF-Aggressive  -31   -54   -44   -58  -69   90   -41   -74   -33   -49  -94  -81
    bsld   SJF-JustBF      -67   -83   -73   -85  -77  -91   -56   -57   -23   -57  -72  -67
    bsld   SAF-JustBF      -69   -83   -77   -88  -84  -92   -56   -42     9    -3  -93  -76
    bsld   SAF-EASY        -62   -82   -76   -85  -82  -92   -62   -45    -1   -38  -88  -76
    af_s   LAF-JustBF       26   132   139   298   63  198    20   146    59   141   48  120
    af_s   LAF-Aggressive   10    11   124    37   -6  -36     0   -12    38    17  -21  -51
    af_s   JustBF            0     0     0     0    0    0     0     0     0     0    0    0
    af_s   EASY             -4   -10    -4   -13   -7  -13    -7   -24   -12   -15  -20  -23
    af_s   EASY-SJBF       -10   -23    -8   -30  -14  -33   -12   -30   -12   -30  -23  -28
    af_s   SJF-Aggressive  -13   -36    32   -22  -20  -47   -16   -45    49   -26  -28  -54
    af_s   SAF-Aggressive  -13   -36    49   -32  -20  -48   -14   -45    57   -25  -28  -54
    af_s   SJF-JustBF      -18   -23    14   -44  -17  -38   -19   -33    48   -31  -19  -26
    af_s   SAF-JustBF      -17   -33    72   -38  -21  -47    -6   -14   140   -11  -28  -53
    af_s   SAF-EASY        -16   -32    59   -40  -21  -47   -14   -18   126   -23  -24  -54
    awf_s  LAF-JustBF       -6    -6   -17    -8    0   -2    -6    -6   -25    -9   -2   -1
    awf_s  LAF-Aggressive    7    23    16    16    3    4     5    -1   -13    16    1   -1
    awf_s  JustBF            0     0     0     0    0    0     0     0     0     0    0    0
    awf_s  EASY              1     1     0     0    0    0     1    -4    -6     0   -1    2
    awf_s  EASY-SJBF         1     6    10     3    0    1     1     5     4     3   -1    1
    awf_s  SJF-Aggressive   25   211   430    63    3    5    21   105   349    58    1    0
    awf_s  SAF-Aggressive   25   199   443    63    3    5    25   104   385    59    1    0
    awf_s  SJF-JustBF       12   120   206    23    2   29    17   152   487    66    3   36
    awf_s  SAF-JustBF       68   632   995   269   20   17   194   526   992   410    3    9
    awf_s  SAF-EASY         59   671   888   233    7   17   104   485   945   333   60   10
    p2sf_s LAF-JustBF       61   591   802  1224  815   16    27   514   542   930   75   16
    p2sf_s LAF-Aggressive  406  2149  2094  2517  777   55   191   921  1436  2645  700   44
    p2sf_s JustBF            0     0     0     0    0    0     0     0     0     0    0    0
    p2sf_s EASY              4     6     9     4    1    1     6     0    -1    10    2    3
    p2sf_s EASY-SJBF         5    23    22    19    5    5    10    19    16    27    6    3
    p2sf_s SJF-Aggressive  844 10111 11216  5735  287   77   697  3481  9812  5356  374   64
    p2sf_s SAF-Aggressive  894  8045 11744  6846  315   77   878  3479  9484  5348  372   64
    p2sf_s SJF-JustBF      102  3060  9315   329   37  114   229  5226 13113  1222  114  110
    p2sf_s SAF-JustBF      574 18841 16357  7915  626  108  2946 12090 13291  9456  109   92
    p2sf_s SAF-EASY        481 18570 16009 10473  222  109  1776 12471 12972  7559 3029   92
    """,
    100,
    {},
)  # fmt: skip


def _by_policy(text: str) -> dict[tuple[str, str, str], float]:
    """Read lines of policy, row and a number for each trace: by our policy, the paper's row and the trace."""
    found = {}
    for line in text.strip().splitlines():
        policy, row, *cells = line.split()
        found.update({(policy, row, trace): float(cell) for trace, cell in zip(TRACES, cells, strict=True)})
    return found


TARGETS: Final = {"easy-sjbf": "bsld", "list-saf": "bsld", "list-laf": "awf_s", "list-reg": "p2sf_s"}
"""The policies of Tables III and IV of Packing, and the metric that each is judged by."""
PREDICTED: Final = {
    "Runtime": "runtime", "Last2": "recent", "CVH": "online", "Hierarchy": "hierarchy", "SP-2%": "survival",
    "SP-3%": "survival:risk=0.03", "SP-4%": "survival:risk=0.04", "timelimit": "limit",
}  # fmt: skip
"""Their rows, and what we call them."""

TABLE_III: Final = _by_policy("""
    easy-sjbf Runtime   -28.2 -41.6  -31.5 -32.9 -63.2 -71.3
    easy-sjbf Last2      -7.5 -19.0  -21.3  -4.1 -58.5 -68.6
    easy-sjbf CVH       -17.4 -41.4   -1.9 108.6 -50.7 -69.8
    easy-sjbf Hierarchy -12.2   4.3  -18.4 -19.8 -42.3 -68.7
    list-saf  Runtime   -53.5 -87.3  -86.2 -91.1 -66.7 -92.5
    list-saf  Last2      17.2 -30.1  -44.4 -75.4  -0.8 -85.9
    list-saf  CVH         0.4 -58.1  -39.8 -17.5 -20.7 -64.6
    list-saf  Hierarchy -13.3 -24.9  -58.0 -79.4   1.2 -77.5
    list-laf  Runtime    -1.3 -17.1   -8.9  -5.2  -0.1  -4.9
    list-laf  Last2       8.2  19.0   17.2   6.1   0.8  15.1
    list-laf  CVH        14.4  25.9   41.4  24.2  -0.1   0.4
    list-laf  Hierarchy   4.4  10.1   18.1  11.3   1.5  15.5
    list-laf  SP-2%      -0.2  -1.0    0.4  -0.8   5.5  -0.4
    list-laf  SP-3%      -0.2  -0.9    1.3  -1.2   3.3  -0.6
    list-laf  SP-4%      -0.2   0.2    1.0  -0.7   2.5   0.8
    list-reg  Runtime    -0.6 -25.4  -19.6  -7.3  -3.3  -7.3
    list-reg  Last2      17.9 439.4    9.5 107.3  15.2  32.2
    list-reg  CVH       355.6 817.4 1837.6 394.5 111.3  43.8
    list-reg  Hierarchy  21.0 402.9    8.3  41.5 111.1  19.7
    list-reg  SP-2%       0.6   0.0    0.0   1.1  -1.2  -0.5
    list-reg  SP-3%       0.0  -0.2    1.3   3.1  -0.7  -0.4
    list-reg  SP-4%       0.0  -3.5    0.7   5.8  -0.5  -0.7
""")
"""Per cent by which a metric changes when an estimate takes the place of the limit."""

TABLE_IV: Final = _by_policy("""
    easy-sjbf Last2      0.33  0.36  0.52  0.56  0.30  0.06
    easy-sjbf CVH       -0.05 -0.22 -0.07  0.04  0.23 -0.07
    easy-sjbf Hierarchy  0.64  0.51  0.64  0.68  0.50  0.05
    easy-sjbf timelimit  0.59 -0.58 -0.34 -0.06 -7.08 -8.02
    list-saf  Last2      0.33  0.36  0.52  0.55  0.30  0.01
    list-saf  CVH       -0.02 -0.22 -0.13 -0.03  0.22 -0.09
    list-saf  Hierarchy  0.64  0.50  0.63  0.68  0.50  0.18
    list-saf  timelimit  0.59 -0.58 -0.34 -0.06 -7.08 -8.02
    list-laf  Last2      0.32  0.35  0.50  0.55  0.29  0.04
    list-laf  CVH       -0.02 -0.20 -0.18 -0.03  0.26 -0.17
    list-laf  Hierarchy  0.64  0.51  0.64  0.69  0.48  0.10
    list-laf  SP-2%      0.60 -0.44 -0.33  0.06 -1.97 -4.63
    list-laf  SP-3%      0.60 -0.41 -0.33  0.07 -1.85 -4.60
    list-laf  SP-4%      0.60 -0.40 -0.32  0.08 -1.73 -4.57
    list-laf  timelimit  0.59 -0.58 -0.34 -0.06 -7.08 -8.02
    list-reg  Last2      0.33  0.35  0.50  0.55  0.28  0.03
    list-reg  CVH       -0.02 -0.22 -0.21 -0.01  0.23 -0.17
    list-reg  Hierarchy  0.64  0.50  0.63  0.68  0.49  0.05
    list-reg  SP-2%      0.60 -0.43 -0.33  0.06 -1.84 -4.68
    list-reg  SP-3%      0.60 -0.40 -0.33  0.07 -1.80 -4.66
    list-reg  SP-4%      0.60 -0.38 -0.32  0.08 -1.74 -4.63
    list-reg  timelimit  0.59 -0.58 -0.34 -0.06 -7.08 -8.02
""")
"""R2 of the estimates."""
