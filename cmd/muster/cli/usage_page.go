package cli

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// usagePage is a page that needs no other file and no script: bars are SVG.
var usagePage = template.Must(template.New("usage").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Usage of {{.Tenant}}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 52em; color: #1b1f24; background: #fff }
h1 { font-size: 1.5em; margin-bottom: 0 } h2 { font-size: 1.1em; margin: 1.6em 0 .3em }
svg { width: 100%; height: auto } text { font-size: 13px; fill: #1b1f24 } .name { text-anchor: end } .quota { fill: #d0d7de }
.current { fill: #0969da } .peak { fill: #bf8700 } .average { fill: #1a7f37 } .cost { fill: #8250df }
</style></head><body>
<h1>Usage of {{.Tenant}}</h1><p>{{.Period}}, since {{.Since}}</p>
{{range .Plots}}<h2>{{.Title}}</h2>
<svg viewBox="0 0 760 {{.Height}}" role="img" aria-label="{{.Title}}">
{{range .Bars}}<text class="name" x="140" y="{{.TextY}}">{{.Name}}</text><rect class="{{.Class}}" x="150" y="{{.Y}}" width="{{.Width}}" height="16" rx="2"/><text x="{{.After}}" y="{{.TextY}}">{{.Text}}</text>
{{end}}</svg>
{{end}}</body></html>
`))

// plot is a set of bars with one scale.
type plot struct {
	Title  string
	Height int
	Bars   []bar
}

// bar is one amount; Width and the places are in the units of the drawing.
type bar struct {
	Name, Class, Text      string
	Y, TextY, Width, After int
	amount                 float64
}

// widest is the width of the longest bar of a plot, and pitch the distance of bars.
const (
	widest = 440
	pitch  = 24
)

// newPlot scales bars by the greatest amount.
func newPlot(title string, bars []bar) plot {
	var most float64
	for _, b := range bars {
		most = max(most, b.amount)
	}
	for i := range bars {
		b := &bars[i]
		b.Y, b.TextY = i*pitch+4, i*pitch+17
		if most > 0 {
			b.Width = int(b.amount / most * widest)
		}
		b.Width = max(b.Width, 1)
		b.After = 158 + b.Width
	}
	return plot{title, len(bars)*pitch + 6, bars}
}

// usagePlots are a plot for each resource, and one of the costs.
func usagePlots(u *api.TenantUsage) []plot {
	var plots []plot
	for _, name := range slices.Sorted(maps.Keys(u.Resources)) {
		r := u.Resources[name]
		var bars []bar
		for _, b := range []bar{
			{Name: "quota", Class: "quota", Text: r.Quota}, {Name: "now", Class: "current", Text: r.CurrentUsage},
			{Name: "peak", Class: "peak", Text: r.PeakUsage}, {Name: "average", Class: "average", Text: r.AvgUsage},
		} {
			if amount, err := resource.ParseAmount(name, b.Text); err == nil {
				b.amount = float64(amount)
				bars = append(bars, b)
			}
		}
		plots = append(plots, newPlot(string(name), bars))
	}
	if u.Cost == nil {
		return plots
	}
	var bars []bar
	for _, name := range slices.Sorted(maps.Keys(u.Cost.Breakdown)) {
		text := u.Cost.Breakdown[name]
		bars = append(bars, bar{Name: name, Class: "cost", Text: text, amount: money(text)})
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(b.amount, a.amount) })
	return append(plots, newPlot("Cost: "+u.Cost.Total, bars))
}

// money is the number of an amount of money, 0 where it has none.
func money(text string) float64 {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return -1
	}, text)
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	return n
}

// writeUsagePage writes the page into a file.
func writeUsagePage(path string, u *api.TenantUsage) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	err = usagePage.Execute(file, struct {
		*api.TenantUsage
		Plots []plot
	}{u, usagePlots(u)})
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("--html %s: %w", path, err)
	}
	return nil
}
