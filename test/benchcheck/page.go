package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// header is the first line of each table of figures.
var header = []string{"what", "figures", "benchmark", "commit", "date", "machine"}

// others are the first lines of the tables whose figures no benchmark here repeats.
var others = [][]string{{"machine", "hardware and software"}, {"peer", "figures", "source", "repeated here"}}

// row is a line of a table of figures.
type row struct {
	line                  int // of the page, from 0
	section               string
	what                  string
	figures               []figure
	run                   command
	commit, date, machine string
}

// name is the row as reports show it.
func (r row) name() string { return r.section + ": " + r.what }

// isSame reports whether both rows are the same row of the page, of whatever commit.
func (r row) isSame(other row) bool {
	return r.name() == other.name() && r.run.String() == other.run.String()
}

// page is the document, and its rows in their order.
type page struct {
	lines    []string
	rows     []row
	machines []machine
}

// machine is a line of the table of machines.
type machine struct {
	line       int
	name, text string
}

var (
	commitForm  = regexp.MustCompile(`^[0-9a-f]{8}$`)
	dateForm    = regexp.MustCompile(`^20[0-9]{2}-[01][0-9]-[0-3][0-9]$`)
	machineForm = regexp.MustCompile(`^([A-Z])(, load [0-9]+)?$`)
	// measured is a number with a unit of time, size or share: only tables have such.
	measured = regexp.MustCompile(`[0-9] ?(ns|µs|us|ms|s|minutes|KB|KiB|MB|MiB|GB|%|×)([^[:alnum:]]|$)`)
	// exact are the blocks that test/cost prints into the page.
	exactBegin, exactEnd = "<!-- cost: begin", "<!-- cost: end"
)

// parsePage reads docs/benchmarks.md. Each figure stands in a table: a figure in prose
// is an error, and so is a table with another header.
func parsePage(text string) (*page, error) {
	p := &page{lines: strings.Split(text, "\n")}
	var section string
	var table []string // the header of the present table
	fenced, exact := false, false
	for i, line := range p.lines {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("docs/benchmarks.md:%d: %s", i+1, fmt.Sprintf(format, args...))
		}
		cells := cellsOf(line)
		switch {
		case strings.HasPrefix(line, exactBegin), strings.HasPrefix(line, exactEnd):
			exact = strings.HasPrefix(line, exactBegin)
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced, exact:
		case cells == nil:
			table = nil
			if title, found := strings.CutPrefix(line, "#"); found {
				section = strings.TrimLeft(title, "# ")
			} else if found := measured.FindString(line); found != "" {
				return nil, fail("%q: a figure stands in a row with its benchmark, commit, date and machine, not in prose", found)
			}
		case table == nil:
			if table = cells; !slices.Equal(table, header) && !slices.ContainsFunc(others, func(o []string) bool { return slices.Equal(o, table) }) {
				return nil, fail("a table with the columns %s: want %s, or one of %s", strings.Join(table, ", "), strings.Join(header, ", "), others)
			}
		case strings.HasPrefix(cells[0], "---"):
		case len(cells) != len(table):
			return nil, fail("%d columns, want %d: %s", len(cells), len(table), strings.Join(table, ", "))
		case slices.Equal(table, others[0]):
			p.machines = append(p.machines, machine{i, cells[0], cells[1]})
		case slices.Equal(table, header):
			r, err := parseRow(cells)
			if err != nil {
				return nil, fail("%v", err)
			}
			r.line, r.section = i, section
			switch {
			case slices.ContainsFunc(p.rows, r.isSame):
				return nil, fail("a second row %q of %s", r.name(), r.run)
			case !slices.ContainsFunc(p.machines, func(m machine) bool { return m.name == r.machine[:1] }):
				return nil, fail("machine %s: not in the table of machines, which comes first", r.machine[:1])
			}
			p.rows = append(p.rows, r)
		}
	}
	return p, nil
}

// cellsOf returns the cells of a line of a table; nil: the line is none.
func cellsOf(line string) []string {
	inner, found := strings.CutPrefix(line, "|")
	if !found {
		return nil
	}
	cells := strings.Split(strings.TrimSuffix(inner, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func parseRow(cells []string) (r row, err error) {
	r = row{what: cells[0], commit: cells[3], date: cells[4], machine: cells[5]}
	if r.figures, err = parseFigures(cells[1]); err != nil {
		return r, err
	}
	if r.run, err = parseCommand(cells[2]); err != nil {
		return r, err
	}
	switch {
	case r.what == "":
		return r, fmt.Errorf("no text that says what the figures are")
	case !commitForm.MatchString(r.commit):
		return r, fmt.Errorf("commit %q: want eight digits of its hash", r.commit)
	case !dateForm.MatchString(r.date):
		return r, fmt.Errorf("date %q: want year-month-day", r.date)
	case !machineForm.MatchString(r.machine):
		return r, fmt.Errorf("machine %q: want the letter of a machine, with \", load N\" where others used the machine too", r.machine)
	}
	return r, nil
}

// text is the row as a line of the page.
func (r row) text() string {
	return fmt.Sprintf("| %s | %s | `%s` | %s | %s | %s |", r.what, showFigures(r.figures), r.run, r.commit, r.date, r.machine)
}

// put replaces a row's line.
func (p *page) put(r row) { p.lines[r.line] = r.text() }

// machineFor returns the letter of a machine. A machine that the page lacks gets the
// next letter and a line in the table of machines.
func (p *page) machineFor(text string) (string, error) {
	for _, m := range p.machines {
		if m.text == text {
			return m.name, nil
		}
	}
	if len(p.machines) == 0 {
		return "", fmt.Errorf("docs/benchmarks.md has no table with the columns %s", strings.Join(others[0], ", "))
	}
	last := p.machines[len(p.machines)-1]
	next := machine{last.line + 1, string(last.name[0] + 1), text}
	p.machines = append(p.machines, next)
	p.lines = slices.Insert(p.lines, next.line, fmt.Sprintf("| %s | %s |", next.name, next.text))
	for i := range p.rows {
		if p.rows[i].line >= next.line {
			p.rows[i].line++
		}
	}
	return next.name, nil
}

func (p *page) text() string { return strings.Join(p.lines, "\n") }
