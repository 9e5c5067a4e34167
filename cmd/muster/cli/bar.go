package cli

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// barWidth is the number of cells of a bar, its marks not counted.
const barWidth = 20

// part is a stretch of a bar: its length and its character.
type part struct {
	amount int64
	glyph  string
	colour string
}

// bar draws parts one after the other on barWidth cells, in proportion; a part
// that is not 0 has one cell at least. A part of glyph "" is a mark of no
// width: its colour is the text. A bar of nothing is blank.
func (s style) bar(parts ...part) string {
	cells := shares(parts)
	var b strings.Builder
	drawn := 0
	for i, p := range parts {
		if p.glyph == "" {
			b.WriteString(p.colour)
			continue
		}
		b.WriteString(s.paint(p.colour, strings.Repeat(p.glyph, cells[i])))
		drawn += cells[i]
	}
	return b.String() + strings.Repeat(" ", barWidth-drawn)
}

// shares divides barWidth over the parts by the largest remainder, and gives
// every part above 0 a cell at the cost of the longest. All 0 where the sum is.
func shares(parts []part) []int {
	cells := make([]int, len(parts))
	amounts, total := scaled(parts)
	if total == 0 {
		return cells
	}
	left := barWidth
	remainder := make([]int64, len(parts))
	var some []int // the parts above 0
	for i, amount := range amounts {
		if parts[i].amount <= 0 {
			continue
		}
		some = append(some, i)
		remainder[i] = amount * barWidth % total
		if cells[i] = int(amount * barWidth / total); cells[i] == 0 {
			cells[i], remainder[i] = 1, 0
		}
		left -= cells[i]
	}
	slices.SortStableFunc(some, func(x, y int) int { return cmp.Compare(remainder[y], remainder[x]) })
	for i := 0; left > 0; i, left = i+1, left-1 {
		cells[some[i%len(some)]]++
	}
	for ; left < 0; left++ {
		cells[slices.Index(cells, slices.Max(cells))]--
	}
	return cells
}

// scaled returns the amounts in a unit that keeps products with barWidth within
// int64, and their sum.
func scaled(parts []part) (amounts []int64, total int64) {
	const most = 1 << 50
	unit := int64(1)
	for _, p := range parts {
		unit = max(unit, p.amount/most+1)
	}
	amounts = make([]int64, len(parts))
	for i, p := range parts {
		if p.amount > 0 {
			amounts[i] = max(p.amount/unit, 1)
			total += amounts[i]
		}
	}
	return amounts, total
}

// columns are rows of cells that may hold colours.
type columns struct{ rows [][]string }

func (c *columns) add(cells ...string) { c.rows = append(c.rows, cells) }

// lines aligns the cells, two blanks apart, without blanks at a line's end. A
// row of one cell is a line of its own.
func (c *columns) lines() []string {
	var widths []int
	for _, row := range c.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if len(row) > 1 {
				widths[i] = max(widths[i], width(cell))
			}
		}
	}
	lines := make([]string, 0, len(c.rows))
	for _, row := range c.rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", max(0, widths[i]-width(cell))))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// width is how many cells a text takes, colours none.
func width(s string) int {
	n := 0
	for {
		head, tail, coloured := strings.Cut(s, "\x1b[")
		n += utf8.RuneCountInString(head)
		if !coloured {
			return n
		}
		_, s, _ = strings.Cut(tail, "m")
	}
}

// clip shortens a text to n runes.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
