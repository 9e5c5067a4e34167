package warehouse

import (
	"database/sql/driver"
	"fmt"
	"math/big"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// SQLite has no decimal numbers: 64-bit integers overflow at an exabyte-second and
// floats lose digits. Integrals are TEXT there, and these functions count with them
// exactly. NULL is left out of a sum, and makes a product or quotient NULL.
//
//	decimal_sum(x)            the sum of TEXT or INTEGER; "0" of no rows
//	decimal_mul(a, b)         a times b
//	decimal_div(a, b, digits) a by b, rounded half away from 0; NULL where b is 0
//
// Numbers are digits with an optional sign and fraction, of at most maxDecimal bytes.
const maxDecimal = 256

// registerDecimals makes the functions known to the driver, once a process.
var registerDecimals = sync.OnceValue(func() error {
	if err := sqlite.RegisterFunction("decimal_sum", &sqlite.FunctionImpl{NArgs: 1, Deterministic: true,
		MakeAggregate: func(sqlite.FunctionContext) (sqlite.AggregateFunction, error) { return &decimalSum{}, nil }}); err != nil {
		return err
	}
	if err := sqlite.RegisterDeterministicScalarFunction("decimal_mul", 2, decimalMul); err != nil {
		return err
	}
	return sqlite.RegisterDeterministicScalarFunction("decimal_div", 3, decimalDiv)
})

// decimalSum adds with one scale: the number is digits by 10 to the power of scale.
type decimalSum struct {
	digits big.Int
	scale  int
	term   big.Int
}

// Step adds a row.
func (s *decimalSum) Step(_ *sqlite.FunctionContext, args []driver.Value) error {
	return s.add(args[0], false)
}

// WindowInverse takes a row out.
func (s *decimalSum) WindowInverse(_ *sqlite.FunctionContext, args []driver.Value) error {
	return s.add(args[0], true)
}

func (s *decimalSum) add(v driver.Value, negative bool) error {
	if v == nil {
		return nil
	}
	scale, err := parseDecimal(v, &s.term)
	if err != nil {
		return err
	}
	switch {
	case scale < s.scale:
		s.term.Mul(&s.term, powerOfTen(s.scale-scale))
	case scale > s.scale:
		s.digits.Mul(&s.digits, powerOfTen(scale-s.scale))
		s.scale = scale
	}
	if negative {
		s.term.Neg(&s.term)
	}
	s.digits.Add(&s.digits, &s.term)
	return nil
}

// WindowValue is the sum of the rows so far.
func (s *decimalSum) WindowValue(*sqlite.FunctionContext) (driver.Value, error) {
	return formatDecimal(&s.digits, s.scale), nil
}

// Final has nothing to free.
func (s *decimalSum) Final(*sqlite.FunctionContext) {}

func decimalMul(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	if args[0] == nil || args[1] == nil {
		return nil, nil
	}
	var a, b big.Int
	scaleA, err := parseDecimal(args[0], &a)
	if err != nil {
		return nil, err
	}
	scaleB, err := parseDecimal(args[1], &b)
	if err != nil {
		return nil, err
	}
	return formatDecimal(a.Mul(&a, &b), scaleA+scaleB), nil
}

func decimalDiv(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	digits, valid := args[2].(int64)
	if !valid || digits < 0 || digits > 30 {
		return nil, fmt.Errorf("decimal_div: digits %v: want 0..30", args[2])
	}
	if args[0] == nil || args[1] == nil {
		return nil, nil
	}
	var a, b big.Int
	scaleA, err := parseDecimal(args[0], &a)
	if err != nil {
		return nil, err
	}
	scaleB, err := parseDecimal(args[1], &b)
	if err != nil {
		return nil, err
	}
	if b.Sign() == 0 {
		return nil, nil
	}
	a.Mul(&a, powerOfTen(scaleB+int(digits)))
	b.Mul(&b, powerOfTen(scaleA))
	return formatDecimal(roundedQuotient(&a, &b), int(digits)), nil
}

// roundedQuotient is a by b, rounded half away from 0 as PostgreSQL's round does.
func roundedQuotient(a, b *big.Int) *big.Int {
	sign := a.Sign() * b.Sign()
	a.Abs(a).Lsh(a, 1).Add(a, b.Abs(b)).Quo(a, b.Lsh(b, 1)) // (2a + b) / 2b
	if sign < 0 {
		a.Neg(a)
	}
	return a
}

// parseDecimal reads a number into digits and returns the count of them that stand
// behind the point.
func parseDecimal(v driver.Value, digits *big.Int) (scale int, err error) {
	switch v := v.(type) {
	case int64:
		digits.SetInt64(v)
		return 0, nil
	case string:
		if len(v) > maxDecimal {
			return 0, fmt.Errorf("decimal of %d characters: want at most %d", len(v), maxDecimal)
		}
		whole, fraction, _ := strings.Cut(v, ".")
		if strings.Trim(strings.TrimPrefix(whole, "-"), "0123456789") == "" && strings.Trim(fraction, "0123456789") == "" {
			if _, valid := digits.SetString(whole+fraction, 10); valid {
				return len(fraction), nil
			}
		}
		return 0, fmt.Errorf("decimal %q: want digits with an optional sign and fraction", v)
	default:
		return 0, fmt.Errorf("decimal: %T: want TEXT or INTEGER", v)
	}
}

// formatDecimal writes digits with scale of them behind the point, without zeros at
// the end of the fraction.
func formatDecimal(digits *big.Int, scale int) string {
	if scale == 0 {
		return digits.String()
	}
	text := new(big.Int).Abs(digits).String()
	if len(text) <= scale {
		text = strings.Repeat("0", scale+1-len(text)) + text
	}
	point := len(text) - scale
	fraction := strings.TrimRight(text[point:], "0")
	text = text[:point]
	if fraction != "" {
		text += "." + fraction
	}
	if digits.Sign() < 0 {
		text = "-" + text
	}
	return text
}

func powerOfTen(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
