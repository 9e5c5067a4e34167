package usage_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/resource"
)

func TestPricesThatAreRefused(t *testing.T) {
	good := usage.Price{From: start, Slot: resource.GPU, Per: 1000, Hour: 1}
	change := func(f func(*usage.Price)) []usage.Price {
		p := good
		f(&p)
		return []usage.Price{p}
	}
	for want, list := range map[string][]usage.Price{
		"no slot":                            change(func(p *usage.Price) { p.Slot = "" }),
		"want a full hour":                   change(func(p *usage.Price) { p.From = ms(1) }),
		"per 0, want at least 1":             change(func(p *usage.Price) { p.Per = 0 }),
		"-0.000001 an hour is outside":       change(func(p *usage.Price) { p.Hour = -1 }),
		"1000000.000001 an hour is outside":  change(func(p *usage.Price) { p.Hour = usage.MaxPrice + 1 }),
		"given twice, as 0.000001 and":       {good, good},
		"10001 prices, more than 10000":      make([]usage.Price, usage.MaxPrices+1),
		`nvidia.com/gpu (model "H100") from`: {{From: start, Slot: resource.GPU, Model: "H100", Per: 1}, {From: start, Slot: resource.GPU, Model: "H100", Per: 1}},
	} {
		if _, err := usage.NewPrices("USD", list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestMoneyReadsAsItPrints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := usage.Money(rapid.Int64Range(0, int64(usage.MaxPrice)).Draw(t, "money"))
		if got, err := usage.ParseMoney(want.String()); err != nil || got != want {
			t.Errorf("%s reads as %d, %v; want %d", want, got, err, want)
		}
	})
	for text, want := range map[string]string{
		"":                       "want digits and a point",
		".":                      "want digits and a point",
		"-1":                     "want digits and a point",
		"1e3":                    "want digits and a point",
		"1.2.3":                  "want digits and a point",
		"0.0000001":              "more than 6 digits behind the point",
		"1000000.01":             "more than 1000000",
		"99999999999999":         "more than 1000000",
		strings.Repeat("9", 100): "9999…",
	} {
		if got, err := usage.ParseMoney(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q reads as %d, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseMoney(f *testing.F) {
	for _, text := range []string{"0", "2.50", ".5", "5.", "1000000", "0.000001", "-1", "1e9", "1/3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := usage.ParseMoney(text)
		if err != nil {
			return
		}
		if again, err := usage.ParseMoney(m.String()); err != nil || again != m || m < 0 || m > usage.MaxPrice {
			t.Errorf("%q is %d, printed %s, which reads as %d, %v", text, m, m, again, err)
		}
	})
}
