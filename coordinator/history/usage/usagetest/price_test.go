package usagetest_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/usage/usagetest"
	"github.com/musterd/muster/resource"
)

// listed is a price list, or the end of the test.
func listed(t interface {
	Helper()
	Fatal(...any)
}, list ...usage.Price,
) usage.Prices {
	t.Helper()
	p, err := usage.NewPrices("USD", list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheNewestPriceOfTheModelCounts(t *testing.T) {
	april := start.AddDate(0, 1, 0)
	p := listed(t,
		usage.Price{From: start, Slot: resource.GPU, Per: 1000, Hour: 2_000_000},
		usage.Price{From: april, Slot: resource.GPU, Per: 1000, Hour: 3_000_000},
		usage.Price{From: april, Slot: resource.GPU, Model: "H100", Per: 1000, Hour: 4_000_000},
	)
	for name, c := range map[string]struct {
		slot  resource.Name
		model string
		at    time.Time
		want  usage.Money
	}{
		"before the first price":            {resource.GPU, "", start.Add(-time.Hour), 0},
		"from its first instant on":         {resource.GPU, "", start, 2_000_000},
		"up to the next":                    {resource.GPU, "A100", april.Add(-1), 2_000_000},
		"a model before it has a price":     {resource.GPU, "H100", april.Add(-time.Hour), 2_000_000},
		"a model with a price":              {resource.GPU, "H100", april.AddDate(1, 0, 0), 4_000_000},
		"another model":                     {resource.GPU, "A100", april, 3_000_000},
		"a slot without a price costs zero": {resource.CPU, "", april, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := usagetest.PriceAt(p, c.slot, c.model, c.at); got.Hour != c.want {
				t.Errorf("price %s, want %s", got.Hour, c.want)
			}
		})
	}
}

func TestCosts(t *testing.T) {
	hour := func(amount int64) usagetest.Sum {
		s := history.Slice{Slot: resource.GPU, From: start, To: start.Add(time.Hour), Allocated: amount}
		return usagetest.Sums([]history.Slice{s}, start, start.Add(time.Hour))[0]
	}
	for name, c := range map[string]struct {
		price  usage.Money
		amount int64
		want   int64
	}{
		"4 GPUs at 2.50 for an hour are 10.0000": {2_500_000, 4000, 10_0000},
		"half of a last digit goes up":           {50, 1000, 1},
		"less than half of it goes away":         {49, 1000, 0},
		"more than the column holds stays there": {usage.MaxPrice, 1 << 50, usagetest.MaxCost},
	} {
		t.Run(name, func(t *testing.T) {
			p := listed(t, usage.Price{From: start, Slot: resource.GPU, Per: 1000, Hour: c.price})
			if got := usagetest.Cost(p, hour(c.amount)); got != c.want {
				t.Errorf("cost %d, want %d", got, c.want)
			}
		})
	}
}

func TestACostIsTheExactQuotientRounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Int64Range(0, int64(usage.MaxPrice)).Draw(t, "price")
		per := rapid.Int64Range(1, 1<<40).Draw(t, "per")
		integral := rapid.Int64().Draw(t, "integral") & (1<<62 - 1)
		p := listed(t, usage.Price{From: start, Slot: resource.CPU, Per: per, Hour: usage.Money(price)})
		got := usagetest.Cost(p, usagetest.Sum{Key: usagetest.Key{Slot: resource.CPU}, From: start, Allocated: big.NewInt(integral)})
		exact := new(big.Rat).SetFrac(big.NewInt(integral), big.NewInt(per))
		exact.Mul(exact, new(big.Rat).SetFrac64(price, 3_600_000*100))
		if exact.Cmp(new(big.Rat).SetInt64(usagetest.MaxCost)) >= 0 {
			exact.SetInt64(usagetest.MaxCost)
		}
		off := exact.Sub(exact, new(big.Rat).SetInt64(got))
		if off.Abs(off).Cmp(big.NewRat(1, 2)) > 0 {
			t.Errorf("cost %d is off by %s", got, off.FloatString(6))
		}
	})
}

func Example() {
	prices, err := usage.NewPrices("USD", []usage.Price{{From: start.AddDate(0, -1, 0), Slot: resource.GPU, Per: 1000, Hour: 2_500_000}})
	if err != nil {
		fmt.Println(err)
		return
	}
	grant := history.Grant{
		Tx: "tx", Namespace: "ml", Tenant: "ml", Committed: start, Ended: start.Add(90 * time.Minute),
		Members: []history.Member{{GPUModel: "H100", Allocated: resource.Vector{resource.GPU: 4000}}},
	}
	slices := usage.Slices(grant, start.Add(24*time.Hour))
	for _, hour := range []time.Time{start, start.Add(time.Hour)} {
		for _, s := range usagetest.Sums(slices, hour, hour.Add(time.Hour)) {
			fmt.Printf("%s %s: peak %s, 95%% of the time up to %s, cost %d.%04d\n", hour.Format("15:04"), s.Slot,
				resource.FormatAmount(s.Slot, s.Max), resource.FormatAmount(s.Slot, s.P95), usagetest.Cost(prices, s)/10_000, usagetest.Cost(prices, s)%10_000)
		}
	}
	// Output:
	// 12:00 nvidia.com/gpu: peak 4, 95% of the time up to 4, cost 10.0000
	// 13:00 nvidia.com/gpu: peak 4, 95% of the time up to 4, cost 5.0000
}
