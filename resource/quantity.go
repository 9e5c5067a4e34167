package resource

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxQuantityLen bounds the text of a quantity before any arithmetic is done.
const maxQuantityLen = 64

// suffixes are Kubernetes' quantity suffixes, as a power of ten or of two.
var suffixes = map[string]struct {
	base, exp int64
}{
	"": {10, 0}, "m": {10, -3}, "k": {10, 3}, "M": {10, 6}, "G": {10, 9}, "T": {10, 12}, "P": {10, 15}, "E": {10, 18},
	"Ki": {2, 10}, "Mi": {2, 20}, "Gi": {2, 30}, "Ti": {2, 40}, "Pi": {2, 50}, "Ei": {2, 60},
}

// ParseQuantity reads a Kubernetes quantity ("8", "1.5", "8000m", "32Gi",
// "1e3") and returns it times scale, rounded up to a whole number as
// Kubernetes does. Negative and overflowing values are errors that show the
// text.
func ParseQuantity(text string, scale int64) (int64, error) {
	if len(text) > maxQuantityLen {
		return 0, fmt.Errorf("quantity %q…: longer than %d characters", text[:16], maxQuantityLen)
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r != '+' && r != '-' && r != '.' && (r < '0' || r > '9') })
	number, suffix := text, ""
	if end >= 0 {
		number, suffix = text[:end], text[end:]
	}
	if number == "" {
		return 0, fmt.Errorf("quantity %q: not a number", text)
	}
	unit, known := suffixes[suffix]
	if !known && (suffix[0] == 'e' || suffix[0] == 'E') {
		exp, err := strconv.ParseInt(suffix[1:], 10, 64)
		if err != nil || exp < -18 || exp > 18 {
			return 0, fmt.Errorf("quantity %q: exponent %q is not a number in -18..18", text, suffix[1:])
		}
		unit.base, unit.exp = 10, exp
		known = true
	}
	if !known {
		return 0, fmt.Errorf("quantity %q: unknown suffix %q (want m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei)", text, suffix)
	}
	if n, err := strconv.ParseUint(number, 10, 63); err == nil && unit.exp >= 0 && scale > 0 {
		if product, ok := timesPower(int64(n), unit.base, unit.exp, scale); ok {
			return product, nil
		}
	}
	value, ok := parseDecimal(number)
	if !ok {
		return 0, fmt.Errorf("quantity %q: not a number", text)
	}
	if value.Sign() < 0 {
		return 0, fmt.Errorf("quantity %q: negative", text)
	}
	factor := new(big.Int).Exp(big.NewInt(unit.base), big.NewInt(abs(unit.exp)), nil)
	if unit.exp < 0 {
		value.Quo(value, new(big.Rat).SetInt(factor))
	} else {
		value.Mul(value, new(big.Rat).SetInt(factor))
	}
	value.Mul(value, new(big.Rat).SetInt64(scale))
	whole := new(big.Int)
	rest := new(big.Int)
	whole.QuoRem(value.Num(), value.Denom(), rest)
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return 0, fmt.Errorf("quantity %q: larger than %d", text, int64(math.MaxInt64))
	}
	return whole.Int64(), nil
}

// timesPower is n times base to the power of exp times scale, none of which is
// negative, or false where that overflows.
func timesPower(n, base, exp, scale int64) (int64, bool) {
	for ; exp >= 0; exp-- {
		by := base
		if exp == 0 {
			by = scale
		}
		if n > math.MaxInt64/by {
			return 0, false
		}
		n *= by
	}
	return n, true
}

// parseDecimal reads digits with an optional sign and fraction, nothing else:
// big.Rat alone would take "1/3" and hexadecimal.
func parseDecimal(s string) (*big.Rat, bool) {
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || strings.Trim(digits, "0123456789.") != "" ||
		strings.Count(digits, ".") > 1 || strings.Trim(digits, ".") == "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

func abs(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

// scaleOf is the number of base units in one of the resource as written.
func scaleOf(name Name) int64 {
	if name == CPU || name == GPU || IsGPUModel(name) {
		return 1000
	}
	return 1
}

// ParseAmount reads a quantity of the named resource into its base unit.
func ParseAmount(name Name, text string) (int64, error) {
	v, err := ParseQuantity(text, scaleOf(name))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// unlimitedText is Unlimited as people read it.
const unlimitedText = "unlimited"

// FormatAmount prints base units the way people write the resource: whole
// numbers where they are whole ("8", "1500m"), memory in the largest exact
// binary unit ("32Gi").
func FormatAmount(name Name, amount int64) string {
	if amount == Unlimited {
		return unlimitedText
	}
	if name == Memory || name == EphemeralStorage || strings.HasPrefix(string(name), hugepagesPrefix) {
		return FormatBytes(Bytes(amount))
	}
	if scaleOf(name) == 1 {
		return strconv.FormatInt(amount, 10)
	}
	if amount%1000 == 0 {
		return strconv.FormatInt(amount/1000, 10)
	}
	return strconv.FormatInt(amount, 10) + "m"
}

// FormatBytes prints the largest binary unit that divides b exactly.
func FormatBytes(b Bytes) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	i := 0
	for b != 0 && b%1024 == 0 && i < len(units)-1 {
		b /= 1024
		i++
	}
	return strconv.FormatInt(int64(b), 10) + units[i]
}
