package simulate

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// WritePage writes a report as one HTML page that needs no other file.
func WritePage(w io.Writer, r *Report) error {
	type shown struct {
		List
		Plots []plot
	}
	view := struct {
		*Report
		Shown []shown
	}{Report: r}
	for _, l := range r.Lists {
		view.Shown = append(view.Shown, shown{l, []plot{
			newPlot("All arrivals", &l, 0, 0, float64(r.Inflate)), newPlot("The last third", &l, r.Inflate*2/3, 0, float64(r.Inflate)),
		}})
	}
	return page.Execute(w, view)
}

// plot is a drawing of the curves of one list, in units of the drawing.
type plot struct {
	Title         string
	Width, Height int
	Lines         []line
	Grid          []mark
}

// line is one policy's curve.
type line struct{ Policy, Colour, Points string }

// mark is a line of the grid with its number.
type mark struct {
	X1, Y1, X2, Y2 float64
	Text           string
	TextX, TextY   float64
	Anchor         string
}

// The drawing: its size, and the room for numbers at its left and below.
const (
	plotWidth, plotHeight = 640, 360
	plotLeft, plotBelow   = 44, 30
	plotAbove             = 10
)

// colours of the policies, which people with any sight of colours tell apart (Okabe and Ito).
var colours = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// newPlot draws the curves from a percentage of arrivals on, between the least and the
// greatest value that they have there.
func newPlot(title string, l *List, from int, low, right float64) plot {
	high := low + 1
	if from > 0 {
		low = math.Inf(1)
	}
	for _, o := range l.Policies {
		for _, p := range o.Curve {
			if p.Arrived >= from {
				low, high = min(low, p.Allocated), max(high, p.Allocated)
			}
		}
	}
	low, high = math.Floor(low), math.Ceil(high)
	left := float64(from)
	x := func(v float64) float64 {
		return tenths(plotLeft + (v-left)/max(1, right-left)*(plotWidth-plotLeft-10))
	}
	y := func(v float64) float64 {
		return tenths(plotHeight - plotBelow - (v-low)/max(1, high-low)*(plotHeight-plotBelow-plotAbove))
	}
	p := plot{Title: title, Width: plotWidth, Height: plotHeight}
	for _, v := range ticks(left, right) {
		p.Grid = append(p.Grid, mark{x(v), y(low), x(v), y(high), fmt.Sprintf("%g %%", v), x(v), plotHeight - 10, "middle"})
	}
	for _, v := range ticks(low, high) {
		p.Grid = append(p.Grid, mark{x(left), y(v), x(right), y(v), fmt.Sprintf("%g %%", v), plotLeft - 4, y(v) + 4, "end"})
	}
	for i, o := range l.Policies {
		var points strings.Builder
		for _, at := range o.Curve {
			if at.Arrived >= from {
				fmt.Fprintf(&points, "%g,%g ", x(float64(at.Arrived)), y(at.Allocated))
			}
		}
		p.Lines = append(p.Lines, line{o.Policy, colours[i%len(colours)], points.String()})
	}
	return p
}

// ticks are about eight round numbers between two.
func ticks(from, to float64) []float64 {
	step := 1.0
	for _, s := range []float64{1, 2, 5, 10, 20, 50, 100, 200} {
		if step = s; (to-from)/s <= 8 {
			break
		}
	}
	var list []float64
	for v := math.Ceil(from/step) * step; v <= to; v += step {
		list = append(list, v)
	}
	return list
}

func tenths(v float64) float64 { return math.Round(v*10) / 10 }
