package warehouse_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/history/warehouse/warehousetest"
)

func decimal() *rapid.Generator[string] { return rapid.StringMatching(`-?[0-9]{1,30}(\.[0-9]{1,9})?`) }

func TestDecimalsOfSQLiteAreExact(t *testing.T) {
	db := warehousetest.Open(t, sqliteDSN(t)).SQL()
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(decimal(), 0, 8).Draw(t, "numbers")
		want, question := new(big.Rat), "SELECT decimal_sum(x) FROM (SELECT NULL AS x"
		args := make([]any, len(numbers))
		for i, n := range numbers {
			term, _ := new(big.Rat).SetString(n)
			want.Add(want, term)
			question += " UNION ALL SELECT ?"
			args[i] = n
		}
		var sum string
		if err := db.QueryRowContext(t.Context(), question+")", args...).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		if got, valid := new(big.Rat).SetString(sum); !valid || got.Cmp(want) != 0 {
			t.Errorf("sum of %q is %s, want %s", numbers, sum, want.RatString())
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := decimal().Draw(t, "a"), decimal().Draw(t, "b")
		digits := rapid.IntRange(0, 12).Draw(t, "digits")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		var product string
		var quotient *string
		if err := db.QueryRowContext(t.Context(), "SELECT decimal_mul(?, ?), decimal_div(?, ?, ?)", a, b, a, b, digits).Scan(&product, &quotient); err != nil {
			t.Fatal(err)
		}
		if got, valid := new(big.Rat).SetString(product); !valid || got.Cmp(new(big.Rat).Mul(x, y)) != 0 {
			t.Errorf("%s times %s is %s", a, b, product)
		}
		if (quotient == nil) != (y.Sign() == 0) {
			t.Fatalf("%s by %s is %v", a, b, quotient)
		}
		if quotient != nil {
			want := new(big.Rat).Quo(x, y)
			if got, valid := new(big.Rat).SetString(*quotient); !valid || got.FloatString(digits) != ratText(want.FloatString(digits)) {
				t.Errorf("%s by %s with %d digits is %s, want %s", a, b, digits, *quotient, want.FloatString(digits))
			}
		}
	})
}

// ratText is a number without the sign of a zero.
func ratText(s string) string {
	r, _ := new(big.Rat).SetString(s)
	digits := 0
	for i := range s {
		if s[i] == '.' {
			digits = len(s) - i - 1
		}
	}
	return r.FloatString(digits)
}

func TestDecimalsRefuseWhatIsNoNumber(t *testing.T) {
	db := warehousetest.Open(t, sqliteDSN(t)).SQL()
	for _, question := range []string{
		"SELECT decimal_sum('1e5')", "SELECT decimal_sum('0x1')", "SELECT decimal_sum('')", "SELECT decimal_sum('.')", "SELECT decimal_sum('--1')", "SELECT decimal_sum(1.5)",
		"SELECT decimal_mul('1', 'a')", "SELECT decimal_div('1', '3', -1)", "SELECT decimal_div('1', '3', 31)", "SELECT decimal_sum(hex(zeroblob(200)))",
	} {
		var text string
		if err := db.QueryRowContext(t.Context(), question).Scan(&text); err == nil {
			t.Errorf("%s: %s, want a refusal", question, text)
		}
	}
	var null *string
	if err := db.QueryRowContext(t.Context(), "SELECT decimal_div('1', '0.00', 3)").Scan(&null); err != nil || null != nil {
		t.Errorf("a division by 0: %v, %v; want NULL", null, err)
	}
}
