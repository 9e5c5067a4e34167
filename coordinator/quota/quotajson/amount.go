package quotajson

import (
	"encoding/json"
	"math/big"
	"strings"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// Units says what a plain number in a document counts.
type Units func(resource.Name) int64

// BaseUnits takes every number as it is.
func BaseUnits(resource.Name) int64 { return 1 }

// Natural takes numbers as people write them: "2" of cpu or nvidia.com/gpu is
// 2000 thousandths, of everything else it is 2.
func Natural(name resource.Name) int64 {
	return name.Scale()
}

// unlimited is written for quota.Unlimited.
const unlimited = "unlimited"

// suffixes are those of Kubernetes' quantities.
var suffixes = map[string]struct {
	base, exp int64
}{
	"": {10, 0}, "m": {10, -3}, "k": {10, 3}, "M": {10, 6}, "G": {10, 9}, "T": {10, 12}, "P": {10, 15}, "E": {10, 18},
	"Ki": {2, 10}, "Mi": {2, 20}, "Gi": {2, 30}, "Ti": {2, 40}, "Pi": {2, 50}, "Ei": {2, 60},
}

// amount reads a number, or a string that holds a quantity such as "32Gi" or
// "8000m", in base units. It must come out whole, not negative and within
// int64; nothing is rounded.
func (v *value) amount(name resource.Name, units Units) (int64, error) {
	var text string
	switch x := v.scalar.(type) {
	case string:
		text = x
	case json.Number:
		text = x.String()
	default:
		return 0, v.fail("want an amount, found %s", v.is())
	}
	if text == unlimited {
		return quota.Unlimited, nil
	}
	end := len(strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	suffix, known := suffixes[text[end:]]
	if !known {
		return 0, v.fail("%s: unknown unit %q (want m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei)", v.is(), clip(text[end:]))
	}
	number, ok := decimal(text[:end])
	if !ok {
		return 0, v.fail("%s: not an amount", v.is())
	}
	factor := new(big.Int).Exp(big.NewInt(suffix.base), big.NewInt(max(suffix.exp, -suffix.exp)), nil)
	scale := new(big.Rat).SetInt(factor)
	if suffix.exp < 0 {
		scale.Inv(scale)
	}
	number.Mul(number, scale)
	number.Mul(number, new(big.Rat).SetInt64(units(name)))
	switch {
	case number.Sign() < 0:
		return 0, v.fail("%s: negative", v.is())
	case !number.IsInt():
		return 0, v.fail("%s: a fraction of the base unit", v.is())
	case !number.Num().IsInt64():
		return 0, v.fail("%s: larger than %d", v.is(), quota.Unlimited)
	}
	return number.Num().Int64(), nil
}

// decimal reads digits with at most one sign and one point, nothing else.
func decimal(s string) (*big.Rat, bool) {
	digits := strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	if len(s) > 64 || len(s)-len(digits) > 1 || strings.Trim(digits, "0123456789.") != "" || strings.Trim(digits, ".") == "" || strings.Count(digits, ".") > 1 {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// vector reads an object of amounts; null is none.
func (v *value) vector(units Units) (resource.Vector, error) {
	if v.null() {
		return nil, nil
	}
	amounts := resource.Vector{}
	err := v.fields(func(key string, member *value) error {
		if key == "" {
			return member.fail("a resource without a name")
		}
		a, err := member.amount(resource.Name(key), units)
		amounts[resource.Name(key)] = a
		return err
	})
	return amounts, err
}
