package pricefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/usage/pricefile"
	"github.com/musterd/muster/resource"
)

const good = `currency: USD
prices:
  - {from: 2026-01-01, slot: cpu, hour: 0.04}
  - {from: 2026-01-01, slot: memory, per: 1Gi, hour: 0.005}
  - from: 2026-07-01T08:00:00+02:00
    slot: nvidia.com/gpu
    model: NVIDIA H100 80GB HBM3
    hour: "4.10"
`

func TestAPriceList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := pricefile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	january := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := []usage.Price{
		{From: january, Slot: resource.CPU, Per: 1000, Hour: 40_000},
		{From: january, Slot: resource.Memory, Per: 1 << 30, Hour: 5_000},
		{From: time.Date(2026, 7, 1, 6, 0, 0, 0, time.UTC), Slot: resource.GPU, Model: "NVIDIA H100 80GB HBM3", Per: 1000, Hour: 4_100_000},
	}
	if d := cmp.Diff(want, got.List()); d != "" || got.Currency != "USD" {
		t.Errorf("currency %s (-want +got)\n%s", got.Currency, d)
	}
}

func TestErrorsNameLineFieldAndValue(t *testing.T) {
	row := func(fields string) string { return "currency: USD\nprices:\n  - {" + fields + "}\n" }
	for name, c := range map[string]struct{ text, want string }{
		"an empty file":          {"", "line 1: the price list: empty: want currency and prices"},
		"no YAML":                {"currency: [", "did not find"},
		"a list":                 {"- 1", "line 1: the price list: want fields: currency, prices"},
		"an unknown field":       {"currency: USD\ncosts: []\n", `line 2: the price list: no field "costs": want currency, prices`},
		"no currency":            {"prices: []\n", "line 1: currency: lacking"},
		"a wrong currency":       {"currency: dollars\nprices: []\n", `line 1: currency: "dollars": want three capital letters`},
		"no prices":              {"currency: USD\n", "line 1: prices: want a list"},
		"two documents":          {"currency: USD\nprices: []\n---\nprices: []\n", "a second document"},
		"a field twice":          {row("from: 2026-01-01, from: 2026-01-02"), `line 3: prices[0]: the field "from" is given twice`},
		"a price that lacks":     {row("from: 2026-01-01, slot: cpu"), "line 3: prices[0].hour: lacking"},
		"a wrong number":         {row("from: 2026-01-01, slot: cpu, hour: -2"), `line 3: prices[0].hour: "-2": want digits`},
		"too dear":               {row("from: 2026-01-01, slot: cpu, hour: 1000001"), `line 3: prices[0].hour: "1000001": more than 1000000`},
		"too fine":               {row("from: 2026-01-01, slot: cpu, hour: 0.0000001"), `prices[0].hour: "0.0000001": more than 6 digits`},
		"an exponent":            {row("from: 2026-01-01, slot: cpu, hour: 1e3"), "1e3"},
		"a wrong day":            {row("from: 2026-02-30, slot: cpu, hour: 1"), `line 3: prices[0].from: "2026-02-30": want a day`},
		"no full hour":           {row("from: '2026-02-01T00:30:00Z', slot: cpu, hour: 1"), "prices[0].from: \"2026-02-01T00:30:00Z\": want a full hour"},
		"a year far away":        {row("from: 9999-01-01, slot: cpu, hour: 1"), "outside 2000..2200"},
		"per nothing":            {row("from: 2026-01-01, slot: cpu, per: 0, hour: 1"), `prices[0].per: "0": want more than 0`},
		"per a wrong suffix":     {row("from: 2026-01-01, slot: memory, per: 1Gib, hour: 1"), `prices[0].per: memory: quantity "1Gib": unknown suffix`},
		"a model that is a list": {row("from: 2026-01-01, slot: cpu, model: [a], hour: 1"), "line 3: prices[0].model: want one value"},
		"an empty slot":          {row("from: 2026-01-01, slot: '', hour: 1"), "prices[0].slot: 0 bytes: want 1..128"},
		"a price twice": {
			"currency: USD\nprices:\n- {from: 2026-01-01, slot: cpu, hour: 1}\n- {from: 2026-01-01, slot: cpu, hour: 2}\n",
			"line 4: prices[1]: the price of cpu from 2026-01-01T00:00:00Z is given in line 3, too",
		},
		"more than a file may hold": {strings.Repeat("#", pricefile.MaxSize+1), "1048577 bytes, more than 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := pricefile.Decode([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestAFileThatIsAbsentIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent.yaml")
	if _, err := pricefile.Read(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names %s", err, path)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("currency: USD\nprices: []\n"))
	f.Add([]byte("currency: &a USD\nprices: [{from: *a}]\n"))
	f.Add([]byte("prices: [[[["))
	f.Fuzz(func(t *testing.T, data []byte) {
		prices, err := pricefile.Decode(data)
		if err != nil {
			return
		}
		for _, p := range prices.List() {
			if p.Slot == "" || p.Per < 1 || p.Hour < 0 || p.Hour > usage.MaxPrice || !p.From.Equal(p.From.Truncate(time.Hour)) {
				t.Errorf("%q has the price %+v", data, p)
			}
		}
	})
}
