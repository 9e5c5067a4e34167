package usagetest

import (
	"math/big"
	"time"

	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/resource"
)

// MaxCost is the highest cost of a sum, in hundredths of a cent: the limit of
// NUMERIC(12,4). A higher cost stays there.
const MaxCost = 9999_9999_9999

// PriceAt is the price of a slot and model at an instant: the price of the model, else the price
// of every model; false before the first price.
func PriceAt(p usage.Prices, slot resource.Name, model string, at time.Time) (price usage.Price, known bool) {
	for _, row := range p.List() { // ascending by instant
		if row.Slot == slot && row.Model == model && !row.From.After(at) {
			price, known = row, true
		}
	}
	if known || model == "" {
		return price, known
	}
	return PriceAt(p, slot, "", at)
}

// Cost is the price of the allocated amounts of an hour's sum, in hundredths of a cent
// (four digits behind the point), rounded to the nearest. The cost of a longer time is
// the sum of its hours' costs.
func Cost(p usage.Prices, s Sum) int64 {
	price, known := PriceAt(p, s.Slot, s.Model, s.From)
	if !known {
		return 0
	}
	cost := new(big.Int).Mul(s.Allocated, big.NewInt(int64(price.Hour)))
	unit := big.NewInt(usage.Hour.Milliseconds() * 100) // a millionth of the currency, in hundredths of a cent
	return min(MaxCost, saturated(nearest(cost, unit.Mul(unit, big.NewInt(price.Per)))))
}
