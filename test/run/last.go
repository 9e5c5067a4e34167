package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// last is the last run of one part of make test-long: a row of the table in
// docs/reliability.md, such as
//
//	| sim | 1a2b3c4d | 2026-11-28 | 41m12s | 0 |
//
// The date and duration of a part that never ran are "not run", and its commit is
// the one that made the part.
type last struct {
	part, commit, date string
	duration           time.Duration // 0 if the part never ran
	failures           int
}

const never = "not run"

// row matches a row of the table.
var row = regexp.MustCompile(`^\| ([a-z0-9-]+) \| ([0-9a-f]{8}) \| (\d{4}-\d\d-\d\d|not run) \| (\S+|not run) \| (\d+|not run) \|$`)

// String returns the row.
func (l last) String() string {
	if l.date == never {
		return fmt.Sprintf("| %s | %s | %s | %s | %s |", l.part, l.commit, never, never, never)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d |", l.part, l.commit, l.date, l.duration.Round(time.Second), l.failures)
}

// readLast returns the rows of a document by their parts.
func readLast(text string) (map[string]last, error) {
	all := map[string]last{}
	for _, line := range strings.Split(text, "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		l := last{part: m[1], commit: m[2], date: m[3]}
		if l.date != never {
			var err error
			if l.duration, err = time.ParseDuration(m[4]); err != nil {
				return nil, fmt.Errorf("the row %q: %w", line, err)
			}
			if l.failures, err = strconv.Atoi(m[5]); err != nil {
				return nil, fmt.Errorf("the row %q: %w", line, err)
			}
		}
		all[l.part] = l
	}
	return all, nil
}

// writeInto replaces the part's row in a document.
func (l last) writeInto(text string) (string, error) {
	lines := strings.Split(text, "\n")
	i := slices.IndexFunc(lines, func(line string) bool {
		m := row.FindStringSubmatch(line)
		return m != nil && m[1] == l.part
	})
	if i < 0 {
		return "", fmt.Errorf("%s has no row for the part %s; add %q to the table of make test-long", record, l.part, last{part: l.part, commit: l.commit, date: never})
	}
	lines[i] = l.String()
	return strings.Join(lines, "\n"), nil
}
