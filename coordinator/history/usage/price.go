package usage

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// Bounds of a price list.
const (
	MaxPrices = 10_000
	// MaxPrice is the highest price of an hour, in Money: a million.
	MaxPrice = 1_000_000 * moneyUnit
)

// moneyUnit is the number of parts in a unit of the currency in prices: six digits
// behind the point.
const moneyUnit = 1_000_000

// Money is a price in millionths of the currency.
type Money int64

// Price is the price of one slot from an instant on: Hour for Per base units held for
// an hour. A later price of the same slot and model replaces it.
type Price struct {
	From  time.Time // a full hour, UTC
	Slot  resource.Name
	Model string // "": every model that has no price of its own
	Per   int64  // base units, at least 1
	Hour  Money
}

// Prices is a price list; the zero value has none, and every cost is 0.
type Prices struct {
	Currency string
	// list ascends by slot, model and instant.
	list []Price
}

// NewPrices checks a price list. Two prices of one slot, model and instant are an error,
// and so is whatever lies beyond the bounds.
func NewPrices(currency string, list []Price) (Prices, error) {
	if len(list) > MaxPrices {
		return Prices{}, fmt.Errorf("%d prices, more than %d", len(list), MaxPrices)
	}
	sorted := slices.SortedFunc(slices.Values(list), comparePrices)
	for i, p := range sorted {
		switch {
		case p.Slot == "":
			return Prices{}, fmt.Errorf("price of %s: no slot", p.From.Format(time.DateOnly))
		case !p.From.Equal(p.From.Truncate(Hour)):
			return Prices{}, fmt.Errorf("price of %s from %s: want a full hour (UTC)", p.Slot, p.From.Format(time.RFC3339))
		case resource.IsGPUModel(p.Slot): // its devices are counted as GPU, too
			return Prices{}, fmt.Errorf("price of %s: want the slot %s with a model, as the driver names it", p.Slot, resource.GPU)
		case p.Per < 1:
			return Prices{}, fmt.Errorf("price of %s: per %d, want at least 1", p.Slot, p.Per)
		case p.Hour < 0 || p.Hour > MaxPrice:
			return Prices{}, fmt.Errorf("price of %s: %s an hour is outside 0..%s", p.Slot, p.Hour, Money(MaxPrice))
		case i > 0 && comparePrices(sorted[i-1], p) == 0:
			return Prices{}, fmt.Errorf("price of %s%s from %s: given twice, as %s and %s", p.Slot, ofModel(p.Model), p.From.Format(time.RFC3339), sorted[i-1].Hour, p.Hour)
		}
	}
	return Prices{currency, sorted}, nil
}

func ofModel(model string) string {
	if model == "" {
		return ""
	}
	return fmt.Sprintf(" (model %q)", model)
}

func comparePrices(a, b Price) int {
	return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Model, b.Model), a.From.Compare(b.From))
}

// List are the prices, ascending by slot, model and instant.
func (p Prices) List() []Price { return slices.Clone(p.list) }

// String prints the price with the digits that it has: "2.5".
func (m Money) String() string {
	text := new(big.Rat).SetFrac64(int64(m), moneyUnit).FloatString(6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// ParseMoney reads digits with at most six of them behind the point.
func ParseMoney(text string) (Money, error) {
	value, ok := new(big.Rat), len(text) <= 32 && isDecimal(text)
	if ok {
		value, ok = value.SetString(text)
	}
	if !ok {
		return 0, fmt.Errorf("%q: want digits and a point, such as 2.50", clipped(text))
	}
	value.Mul(value, new(big.Rat).SetInt64(moneyUnit))
	if !value.IsInt() {
		return 0, fmt.Errorf("%q: more than 6 digits behind the point", text)
	}
	if value.Num().Cmp(big.NewInt(MaxPrice)) > 0 {
		return 0, fmt.Errorf("%q: more than %s", text, Money(MaxPrice))
	}
	return Money(value.Num().Int64()), nil
}

// isDecimal reports whether a text is digits with a point among or before them at most.
func isDecimal(text string) bool {
	points, digits := 0, 0
	for _, r := range text {
		switch {
		case r == '.':
			points++
		case r >= '0' && r <= '9':
			digits++
		default:
			return false
		}
	}
	return digits > 0 && points <= 1
}

// clipped shortens a text from outside for a message.
func clipped(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}
