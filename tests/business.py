"""One believable business, simulated from a seed: a web shop, depots that hold its goods, and a carrier.

Yields plain abstract changes and, when it has run, the rows that must be there in the end. Knows no format and nothing
of inlet, so that it can judge what inlet makes of the same changes.

    shop = Shop(seed=1)
    shop.run(20_000)
    shop.db.log             changes in commit order, the full load first
    shop.db.tables          {table: {key: row}}, the state after them

The money adds up: an order's TOTAL is the sum of its lines, and a paid order's payments sum to TOTAL, except for the
few orders in `shop.underpaid`.
"""

import random
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal

LOAD_AT = datetime(2026, 1, 5, 2, 0, 0)
OPENS_AT = datetime(2026, 1, 5, 3, 0, 0)
CENT = Decimal("0.01")


@dataclass(frozen=True)
class Change:
    """One row change. An update's images may lack columns that were not supplied; `at` is UTC."""

    table: str
    operation: str  # REFRESH, INSERT, UPDATE, DELETE
    before: dict | None
    after: dict | None
    transaction: int  # 1, 2, ... in commit order; 0 is the full load
    counter: int  # 1-based within the transaction
    is_last: bool
    at: datetime


@dataclass
class Database:
    """Tables that keep a log of what was done to them, transaction by transaction."""

    keys: dict[str, tuple[str, ...]]
    splits_key_changes: bool = False  # the source sends a key change as delete and insert
    gives_before_of_update: bool = True
    tables: dict[str, dict[tuple, dict]] = field(init=False)
    log: list[Change] = field(default_factory=list)
    at: datetime = LOAD_AT
    _transaction: int = 0
    _open: list[tuple] = field(default_factory=list)

    def __post_init__(self):
        self.tables = {table: {} for table in self.keys}

    def key_of(self, table: str, row: dict) -> tuple:
        return tuple(row[column] for column in self.keys[table])

    def load(self) -> None:
        """Log what is there as a full load, table by table."""
        for table, rows in self.tables.items():
            self.log += [Change(table, "REFRESH", None, dict(row), 0, 0, False, self.at) for row in rows.values()]
        self.at = OPENS_AT

    def put(self, table: str, row: dict) -> None:
        """A row that was there before the log begins."""
        self.tables[table][self.key_of(table, row)] = row

    def insert(self, table: str, row: dict) -> None:
        key = self.key_of(table, row)
        assert key not in self.tables[table], f"{table} {key} is there already"
        self.tables[table][key] = row
        self._open.append((table, "INSERT", None, dict(row)))

    def delete(self, table: str, key: tuple) -> None:
        self._open.append((table, "DELETE", dict(self.tables[table].pop(key)), None))

    def update(self, table: str, key: tuple, is_partial: bool = False, **values) -> None:
        """Change columns of a row, its key among them. is_partial: only key and changed columns are supplied."""
        old = self.tables[table].pop(key)
        new = old | values
        self.tables[table][self.key_of(table, new)] = new
        if self.splits_key_changes and self.key_of(table, new) != key:
            self._open += [(table, "DELETE", dict(old), None), (table, "INSERT", None, dict(new))]
            return
        supplied = [c for c in new if not is_partial or c in self.keys[table] or c in values]
        before = {c: old[c] for c in supplied} if self.gives_before_of_update else None
        self._open.append((table, "UPDATE", before, {c: new[c] for c in supplied}))

    def commit(self, seconds: float) -> None:
        """Close the transaction, some seconds after the one before."""
        if not self._open:
            return
        self._transaction += 1
        self.at += timedelta(milliseconds=int(seconds * 1000))
        last = len(self._open)
        self.log += [
            Change(*one, self._transaction, n, n == last, self.at) for n, one in enumerate(self._open, start=1)
        ]
        self._open = []


class Business:
    """Runs actions at random, weighted, one transaction each, until there are as many changes as asked for."""

    ACTIONS: dict[str, int] = {}
    db: Database

    def run(self, num_changes: int) -> None:
        self.db.load()
        num_loaded = len(self.db.log)
        names, weights = list(self.ACTIONS), list(self.ACTIONS.values())
        while len(self.db.log) - num_loaded < num_changes:
            getattr(self, self.random.choices(names, weights)[0])()
            self.db.commit(self.random.uniform(0.05, 60))

    def _some(self, table: str, recent: int = 0, **wanted) -> dict | None:
        """A copy of some row that has these values, among those touched last; None when a few tries find none."""
        keys = list(self.db.tables[table])[-recent:]
        for _ in range(12 if keys else 0):
            row = self.db.tables[table][self.random.choice(keys)]
            if all(row[c] == v for c, v in wanted.items()):
                return dict(row)
        return None


# -- the web shop
# ----------------------------------------------------------------------------------------------------------

GIVEN = (
    "Aiko Bruno Chiara Dmitri Emre Fatima Goran Hana Ines Jonas Kofi Lucía Mikkel Noor Olga Pavel Rosa Sven Zoë".split()
)
FAMILY = (
    "Álvarez Brandt Costa Dubois Eriksson Ferrari Grün Haddad Ito Jensen Kowalski Łuczak Mäkinen O'Brien "
    "Peña Şahin".split()
)
CITIES = "Aarhus Berlin Cádiz Dublin Évora Firenze Göteborg Helsinki İzmir Kyōto Łódź Málaga Oulu Praha Zürich".split()
METHODS = ("card", "transfer", "voucher", "invoice")
REASONS = ("too small", "too large", "arrived broken", "not as shown")
NOTES = (
    "prefers delivery in the morning",
    'asked to be called "Dr."',
    "zweite Klingel von oben\nbitte läuten",
    "住所変更あり",
    "likes 🍵, hates ☕",
    "a path C:\\temp\\orders and a tab\there",
)


class Shop(Business):
    """Customers, orders with their lines, payments."""

    ACTIONS = {
        "order": 26,
        "pay": 22,
        "ship": 18,
        "change_quantity": 12,
        "add_line": 6,
        "remove_line": 5,
        "renumber_line": 1,
        "cancel": 4,
        "register": 6,
        "edit_customer": 8,
        "touch_customer": 2,
        "renumber_customer": 1,
        "leave_and_return": 1,
        "refund": 3,
    }

    def __init__(self, seed: int, num_customers: int = 400, num_orders: int = 600):
        self.random = random.Random(f"shop {seed}")
        self.db = Database(
            {
                "SHOP.CUSTOMERS": ("CUSTOMER_ID",),
                "SHOP.ORDERS": ("ORDER_ID",),
                "SHOP.ORDER_LINES": ("ORDER_ID", "LINE_NO"),
                "SHOP.PAYMENTS": ("ORDER_ID", "PAYMENT_NO"),
            }
        )
        self.next_customer, self.next_order, self.underpaid = 1, 10_000_000_001, set()
        self.prices = {code: Decimal(self.random.randrange(150, 20000)) * CENT for code in product_codes("TK")}
        for _ in range(num_customers):
            self.db.put("SHOP.CUSTOMERS", self._new_customer(self._next_customer()))
        for _ in range(num_orders):
            order, lines = self._new_order()
            self.db.put("SHOP.ORDERS", order)
            for line in lines:
                self.db.put("SHOP.ORDER_LINES", line)

    def _next_customer(self) -> int:
        self.next_customer += 1
        return self.next_customer - 1

    def _new_customer(self, number: int) -> dict:
        r = self.random
        name = f"{r.choice(GIVEN)} {r.choice(FAMILY)}"
        return {
            "CUSTOMER_ID": number,
            "NAME": name,
            "EMAIL": r.choice([f"c{number}@example.org", None]),
            "CITY": r.choice(CITIES),
            "BIRTH_DATE": r.choice([date(1940, 1, 1) + timedelta(days=r.randrange(24000)), None]),
            "CREDIT_LIMIT": Decimal(r.randrange(0, 500)) * 10 + Decimal("0.00"),
            "NOTE": r.choice([None, None, r.choice(NOTES)]),
            "REGISTERED_AT": self.db.at.replace(microsecond=0),
        }

    def _new_line(self, order_id: int, line_no: int) -> dict:
        code, quantity = self.random.choice(list(self.prices)), self.random.randint(1, 9)
        return {
            "ORDER_ID": order_id,
            "LINE_NO": line_no,
            "PRODUCT_CODE": code,
            "QUANTITY": quantity,
            "UNIT_PRICE": self.prices[code],
            "AMOUNT": self.prices[code] * quantity,
        }

    def _new_order(self) -> tuple[dict, list[dict]]:
        order_id = self.next_order
        self.next_order += 1
        lines = [self._new_line(order_id, n) for n in range(1, self.random.randint(1, 5) + 1)]
        order = {
            "ORDER_ID": order_id,
            "CUSTOMER_ID": self._some("SHOP.CUSTOMERS")["CUSTOMER_ID"],
            "ORDER_DATE": self.db.at.date(),
            "STATUS": "open",
            "TOTAL": sum(line["AMOUNT"] for line in lines),
            "REMARK": self.random.choice([None, None, "gift", "お急ぎ便"]),
            "UPDATED_AT": self.db.at,
        }
        return order, lines

    def _lines(self, order_id: int) -> list[dict]:
        rows = self.db.tables["SHOP.ORDER_LINES"]
        return [rows[order_id, n] for n in range(1, 30) if (order_id, n) in rows]

    def _edit_order(self, order_id: int, **values) -> None:
        """Orders come with the columns that changed, one time in three: the others are not supplied."""
        is_partial = self.random.random() < 0.33
        self.db.update("SHOP.ORDERS", (order_id,), is_partial, UPDATED_AT=self.db.at, **values)

    def _retotal(self, order_id: int) -> None:
        self._edit_order(order_id, TOTAL=sum((line["AMOUNT"] for line in self._lines(order_id)), Decimal("0.00")))

    def order(self):
        order, lines = self._new_order()
        self.db.insert("SHOP.ORDERS", order)
        for line in lines:
            self.db.insert("SHOP.ORDER_LINES", line)

    def pay(self):
        if not (order := self._some("SHOP.ORDERS", 400, STATUS="open")):
            return
        due, number = order["TOTAL"], order["ORDER_ID"]
        if self.random.random() < 0.01 and due > 1:
            due -= 1
            self.underpaid.add(number)
        first = (due / 2).quantize(CENT) if self.random.random() < 0.15 else due
        for payment_no, amount in enumerate([a for a in (first, due - first) if a or due == 0][:2], start=1):
            self.db.insert(
                "SHOP.PAYMENTS",
                {
                    "ORDER_ID": number,
                    "PAYMENT_NO": payment_no,
                    "METHOD": self.random.choice(METHODS),
                    "AMOUNT": amount,
                    "IS_REFUNDED": False,
                    "REFERENCE": self.random.choice([None, f"R{self.random.randrange(10**12):012d}"]),
                    "PAID_AT": self.db.at,
                },
            )
        self._edit_order(number, STATUS="paid")

    def ship(self):
        if order := self._some("SHOP.ORDERS", 400, STATUS="paid"):
            self._edit_order(order["ORDER_ID"], STATUS="shipped", REMARK=None)

    def change_quantity(self):
        if order := self._some("SHOP.ORDERS", 300, STATUS="open"):
            if lines := self._lines(order["ORDER_ID"]):
                line, quantity = self.random.choice(lines), self.random.randint(1, 12)
                self.db.update(
                    "SHOP.ORDER_LINES",
                    (line["ORDER_ID"], line["LINE_NO"]),
                    QUANTITY=quantity,
                    AMOUNT=line["UNIT_PRICE"] * quantity,
                )
                self._retotal(order["ORDER_ID"])

    def add_line(self):
        if order := self._some("SHOP.ORDERS", 300, STATUS="open"):
            line_no = max((line["LINE_NO"] for line in self._lines(order["ORDER_ID"])), default=0) + 1
            if line_no < 30:
                self.db.insert("SHOP.ORDER_LINES", self._new_line(order["ORDER_ID"], line_no))
                self._retotal(order["ORDER_ID"])

    def remove_line(self):
        if order := self._some("SHOP.ORDERS", 300, STATUS="open"):
            if len(lines := self._lines(order["ORDER_ID"])) > 1:
                self.db.delete("SHOP.ORDER_LINES", (order["ORDER_ID"], self.random.choice(lines)["LINE_NO"]))
                self._retotal(order["ORDER_ID"])

    def renumber_line(self):
        """The key changes: one UPDATE whose before has another key."""
        if (order := self._some("SHOP.ORDERS", 300, STATUS="open")) and (lines := self._lines(order["ORDER_ID"])):
            if (to := lines[-1]["LINE_NO"] + 1) < 30:
                self.db.update(
                    "SHOP.ORDER_LINES", (order["ORDER_ID"], self.random.choice(lines)["LINE_NO"]), LINE_NO=to
                )

    def cancel(self):
        if order := self._some("SHOP.ORDERS", 300, STATUS="open"):
            for line in self._lines(order["ORDER_ID"]):
                self.db.delete("SHOP.ORDER_LINES", (line["ORDER_ID"], line["LINE_NO"]))
            self.db.delete("SHOP.ORDERS", (order["ORDER_ID"],))

    def refund(self):
        if payment := self._some("SHOP.PAYMENTS", 200, IS_REFUNDED=False):
            self.db.update("SHOP.PAYMENTS", (payment["ORDER_ID"], payment["PAYMENT_NO"]), IS_REFUNDED=True)
            self._edit_order(payment["ORDER_ID"], STATUS="refunded")

    def register(self):
        self.db.insert("SHOP.CUSTOMERS", self._new_customer(self._next_customer()))

    def edit_customer(self):
        customer = self._some("SHOP.CUSTOMERS")
        column = self.random.choice(["EMAIL", "CITY", "CREDIT_LIMIT", "NOTE", "BIRTH_DATE"])
        value = self._new_customer(customer["CUSTOMER_ID"])[column]
        if column == "NOTE":
            value = self.random.choice([None, *NOTES, "long story, " * 300])
        self.db.update("SHOP.CUSTOMERS", (customer["CUSTOMER_ID"],), self.random.random() < 0.3, **{column: value})

    def touch_customer(self):
        """An update that changes nothing."""
        self.db.update("SHOP.CUSTOMERS", (self._some("SHOP.CUSTOMERS")["CUSTOMER_ID"],))

    def renumber_customer(self):
        """A customer gets another key, sometimes with the other columns not supplied; the orders follow in the same
        transaction.
        """
        old, new = self._some("SHOP.CUSTOMERS")["CUSTOMER_ID"], self._next_customer()
        self.db.update("SHOP.CUSTOMERS", (old,), self.random.random() < 0.5, CUSTOMER_ID=new)
        for order_id in [k[0] for k, row in self.db.tables["SHOP.ORDERS"].items() if row["CUSTOMER_ID"] == old]:
            self._edit_order(order_id, CUSTOMER_ID=new)

    def leave_and_return(self):
        """Delete and insert of one key in one transaction."""
        customer = self._some("SHOP.CUSTOMERS")
        self.db.delete("SHOP.CUSTOMERS", (customer["CUSTOMER_ID"],))
        self.db.insert("SHOP.CUSTOMERS", customer | {"NOTE": None, "REGISTERED_AT": self.db.at.replace(microsecond=0)})


# -- a depot
# ---------------------------------------------------------------------------------------------------------------

PLACES = "京都 大阪 東京 青森 山形 長野 静岡 宮崎 高知 福井".split()  # two characters each, so NCHAR needs no padding
GOODS = "緑茶 玄米 味噌 小豆 海苔 昆布 大豆 黒糖 梅干 白米".split()
PACKS = "大袋 小袋 大缶 小缶 木箱".split()
KANA = "ﾘﾖｸﾁﾔ ｹﾞﾝﾏｲ ﾐｿ ｱｽﾞｷ ﾉﾘ ｺﾝﾌﾞ ﾀﾞｲｽﾞ ｺｸﾄｳ ｳﾒﾎﾞｼ ﾊｸﾏｲ".split()


def product_codes(prefix: str, num: int = 250) -> list[str]:
    return [f"{prefix}{n:06d}" for n in range(1, num + 1)]


class Depot(Business):
    """Products, warehouses, and what lies where. The source sends no before-images and splits key changes."""

    ACTIONS = {
        "sell": 40,
        "receive": 20,
        "move": 14,
        "count": 8,
        "reprice": 10,
        "launch": 4,
        "discontinue": 2,
        "recode": 1,
        "enlarge": 1,
    }

    def __init__(self, seed: int, prefix: str, has_nulls: bool):
        self.random = random.Random(f"depot {prefix} {seed}")
        self.prefix, self.has_nulls = prefix, has_nulls
        self.db = Database(
            {
                "DEPOT.PRODUCTS": ("PRODUCT_CODE",),
                "DEPOT.WAREHOUSES": ("WAREHOUSE_ID",),
                "DEPOT.STOCK": ("PRODUCT_CODE", "WAREHOUSE_ID"),
            },
            splits_key_changes=True,
            gives_before_of_update=False,
        )
        self.next_product = 1
        for n in range(1, 5):
            self.db.put(
                "DEPOT.WAREHOUSES",
                {
                    "WAREHOUSE_ID": f"{prefix}{n:02d}",
                    "NAME": f"第{'一二三四'[n - 1]}倉庫",
                    "ADDRESS": f"ﾐﾅﾄﾏﾁ {n}-{n + 3}",
                    "CAPACITY": 1000 * n,
                    "OPENED": date(1990 + n, 4, 1),
                },
            )
        for _ in product_codes(prefix):
            product, stock = self._new_product()
            self.db.put("DEPOT.PRODUCTS", product)
            for row in stock:
                self.db.put("DEPOT.STOCK", row)

    def _new_product(self) -> tuple[dict, list[dict]]:
        r, code, good = self.random, f"{self.prefix}{self.next_product:06d}", self.random.randrange(len(GOODS))
        self.next_product += 1
        product = {
            "PRODUCT_CODE": code,
            "NAME": r.choice(PLACES) + GOODS[good] + r.choice(PACKS),
            "KANA": KANA[good],
            "PRICE": Decimal(r.randrange(150, 20000)) * CENT,
            "WEIGHT": Decimal(r.randrange(50, 30000)) * Decimal("0.001"),
            "CATEGORY": good + 1,
            "LAUNCHED": date(2015, 1, 1) + timedelta(days=r.randrange(4000)),
            "REVISED_AT": self._moment(0.3),
        }
        return product, [
            self._new_stock(code, w) for (w,) in list(self.db.tables["DEPOT.WAREHOUSES"])[: r.randint(1, 3)]
        ]

    def _moment(self, share_of_nulls: float) -> datetime | None:
        return None if self.has_nulls and self.random.random() < share_of_nulls else self.db.at.replace(microsecond=0)

    def _new_stock(self, code: str, warehouse: str) -> dict:
        r = self.random
        return {
            "PRODUCT_CODE": code,
            "WAREHOUSE_ID": warehouse,
            "QUANTITY": r.randrange(0, 400),
            "SHELF": f"{r.choice('ABCDEF')}-{r.randrange(1, 100)}",
            "COUNTED_AT": self._moment(0.5),
        }

    def _change_stock(self, stock: dict, by: int) -> None:
        self.db.update("DEPOT.STOCK", (stock["PRODUCT_CODE"], stock["WAREHOUSE_ID"]), QUANTITY=stock["QUANTITY"] + by)

    def sell(self):
        for _ in range(self.random.randint(1, 4)):
            if (stock := self._some("DEPOT.STOCK")) and stock["QUANTITY"]:
                self._change_stock(stock, -self.random.randint(1, min(9, stock["QUANTITY"])))

    def receive(self):
        if stock := self._some("DEPOT.STOCK"):
            self._change_stock(stock, self.random.randint(10, 80))

    def move(self):
        """Goods go from one warehouse to another: two rows, one transaction."""
        if (stock := self._some("DEPOT.STOCK")) and stock["QUANTITY"]:
            code, num = stock["PRODUCT_CODE"], self.random.randint(1, stock["QUANTITY"])
            to = self.db.tables["DEPOT.STOCK"].get((code, self._some("DEPOT.WAREHOUSES")["WAREHOUSE_ID"]))
            if to and to != stock:
                self._change_stock(stock, -num)
                self._change_stock(to, num)

    def count(self):
        if stock := self._some("DEPOT.STOCK"):
            self.db.update(
                "DEPOT.STOCK",
                (stock["PRODUCT_CODE"], stock["WAREHOUSE_ID"]),
                COUNTED_AT=self._moment(0.1),
                QUANTITY=max(0, stock["QUANTITY"] + self.random.randint(-2, 1)),
            )

    def reprice(self):
        product = self._some("DEPOT.PRODUCTS")
        price = max(CENT, (product["PRICE"] * Decimal(self.random.randrange(85, 120)) / 100).quantize(CENT))
        self.db.update(
            "DEPOT.PRODUCTS",
            (product["PRODUCT_CODE"],),
            PRICE=min(price, Decimal("9999999.99")),
            REVISED_AT=self._moment(0.1),
        )

    def launch(self):
        product, stock = self._new_product()
        self.db.insert("DEPOT.PRODUCTS", product)
        for row in stock:
            self.db.insert("DEPOT.STOCK", row)

    def discontinue(self):
        code = self._some("DEPOT.PRODUCTS")["PRODUCT_CODE"]
        for key in [k for k in self.db.tables["DEPOT.STOCK"] if k[0] == code]:
            self.db.delete("DEPOT.STOCK", key)
        self.db.delete("DEPOT.PRODUCTS", (code,))

    def recode(self):
        """A product gets another key; the source sends delete and insert, for its stock too."""
        old, new = self._some("DEPOT.PRODUCTS")["PRODUCT_CODE"], f"{self.prefix}{self.next_product:06d}"
        self.next_product += 1
        self.db.update("DEPOT.PRODUCTS", (old,), PRODUCT_CODE=new)
        for code, warehouse in [k for k in self.db.tables["DEPOT.STOCK"] if k[0] == old]:
            self.db.update("DEPOT.STOCK", (code, warehouse), PRODUCT_CODE=new)

    def enlarge(self):
        warehouse = self._some("DEPOT.WAREHOUSES")
        self.db.update("DEPOT.WAREHOUSES", (warehouse["WAREHOUSE_ID"],), CAPACITY=warehouse["CAPACITY"] + 50)


class Warehouses(Business):
    """A depot of which the warehouses alone are captured. Nothing is there before the log begins, and of updates the
    source sends the row after them.
    """

    ACTIONS = {"open": 2, "enlarge": 12, "rename": 2, "close": 1}

    def __init__(self, seed: int, prefix: str):
        self.random = random.Random(f"warehouses {prefix} {seed}")
        self.prefix, self.next_warehouse = prefix, 1
        self.db = Database({"DEPOT.WAREHOUSES": ("WAREHOUSE_ID",)}, gives_before_of_update=False)

    def open(self):
        for _ in range(self.random.randint(1, 2)):
            n, self.next_warehouse = self.next_warehouse, self.next_warehouse + 1
            row = {"WAREHOUSE_ID": f"{self.prefix}{n:02d}", "NAME": "新倉庫　", "ADDRESS": f"ﾐﾅﾄﾏﾁ {n}-{n + 3}"}
            self.db.insert("DEPOT.WAREHOUSES", row | {"CAPACITY": 100 * n, "OPENED": self.db.at.date()})

    def enlarge(self):
        if warehouse := self._some("DEPOT.WAREHOUSES"):
            key = (warehouse["WAREHOUSE_ID"],)
            self.db.update("DEPOT.WAREHOUSES", key, CAPACITY=warehouse["CAPACITY"] + 50)

    def rename(self):
        if warehouse := self._some("DEPOT.WAREHOUSES"):
            key = (warehouse["WAREHOUSE_ID"],)
            self.db.update("DEPOT.WAREHOUSES", key, NAME=f"第{self.random.choice('一二三四五六')}倉庫")

    def close(self):
        if len(self.db.tables["DEPOT.WAREHOUSES"]) > 2:
            self.db.delete("DEPOT.WAREHOUSES", (self._some("DEPOT.WAREHOUSES")["WAREHOUSE_ID"],))


# -- what comes back
# -----------------------------------------------------------------------------------------------------------


class Returns(Business):
    """Returned goods of the shop's orders: some are there before the log begins. A return may get another number."""

    ACTIONS = {"announce": 30, "arrive": 26, "refund": 20, "remark": 8, "renumber": 2, "withdraw": 4}

    def __init__(self, seed: int):
        self.random = random.Random(f"returns {seed}")
        self.db = Database({"SHOP.RETURNS": ("RETURN_ID",)})
        self.next_return = 1
        for _ in range(60):
            row = self._row(LOAD_AT - timedelta(minutes=self.random.randrange(9000)))
            self.db.put("SHOP.RETURNS", row)

    def _row(self, at: datetime) -> dict:
        n, self.next_return = self.next_return, self.next_return + 1
        return {
            "RETURN_ID": n,
            "ORDER_ID": self.random.randint(1, 2400),
            "STATE": "announced",
            "REASON": self.random.choice((None, *REASONS)),
            "REFUND": None,
            "UPDATED_AT": at,
        }

    def announce(self):
        for _ in range(self.random.randint(1, 2)):
            self.db.insert("SHOP.RETURNS", self._row(self.db.at))

    def arrive(self):
        self._update({"STATE": "arrived"}, STATE="announced")

    def refund(self):
        amount = Decimal(self.random.randrange(100, 30000)) * CENT
        self._update({"STATE": "refunded", "REFUND": amount}, STATE="arrived")

    def remark(self):
        self._update({"REASON": self.random.choice((None, *REASONS, *NOTES))})

    def renumber(self):
        n, self.next_return = self.next_return, self.next_return + 1
        self._update({"RETURN_ID": n})

    def withdraw(self):
        if found := self._some("SHOP.RETURNS", STATE="announced"):
            self.db.delete("SHOP.RETURNS", (found["RETURN_ID"],))

    def _update(self, values: dict, **wanted) -> None:
        if found := self._some("SHOP.RETURNS", **wanted):
            self.db.update("SHOP.RETURNS", (found["RETURN_ID"],), UPDATED_AT=self.db.at, **values)


# -- the carrier
# -----------------------------------------------------------------------------------------------------------


class Carrier(Business):
    """Parcels on their way. Nothing is there before the log begins; of most updates the source sends the key and what
    changed.
    """

    ACTIONS = {"accept": 30, "scan": 60, "hand_over": 24, "weigh": 4, "relabel": 3, "lose": 2}
    SERVICES = ("standard", "express", "locker")

    def __init__(self, seed: int):
        self.random = random.Random(f"carrier {seed}")
        self.db = Database({"CARRIER.PARCELS": ("PARCEL_ID",)}, gives_before_of_update=False)
        self.next_parcel = 70_001

    def _next_parcel(self) -> int:
        self.next_parcel += self.random.randint(1, 3)
        return self.next_parcel

    def accept(self):
        r = self.random
        for _ in range(r.randint(1, 4)):  # a sack of parcels is one transaction
            self.db.insert(
                "CARRIER.PARCELS",
                {
                    "PARCEL_ID": self._next_parcel(),
                    "ORDER_ID": r.randint(1, 2400),
                    "SERVICE": r.choice(self.SERVICES),
                    "STATUS": "accepted",
                    "CITY": r.choice(CITIES),
                    "WEIGHT": None,
                    "UPDATED_AT": self.db.at,
                },
            )

    def scan(self):
        self._update({"STATUS": "on its way", "CITY": self.random.choice(CITIES)}, STATUS="accepted")

    def hand_over(self):
        self._update({"STATUS": "delivered", "CITY": None}, STATUS="on its way")

    def weigh(self):
        self._update({"WEIGHT": Decimal(self.random.randrange(50, 30000)) * Decimal("0.001")})

    def lose(self):
        if parcel := self._some("CARRIER.PARCELS", STATUS="on its way"):
            self.db.delete("CARRIER.PARCELS", (parcel["PARCEL_ID"],))

    def relabel(self):
        """A parcel gets another number."""
        if parcel := self._some("CARRIER.PARCELS"):
            self.db.gives_before_of_update = True
            self.db.update("CARRIER.PARCELS", (parcel["PARCEL_ID"],), True, PARCEL_ID=self._next_parcel())
            self.db.gives_before_of_update = False

    def _update(self, values: dict, **wanted) -> None:
        if parcel := self._some("CARRIER.PARCELS", **wanted):
            self.db.update("CARRIER.PARCELS", (parcel["PARCEL_ID"],), True, UPDATED_AT=self.db.at, **values)
