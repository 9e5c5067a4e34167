package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutation is one planted mistake: lines of a file, and the lines that take
// their place.
type mutation struct {
	name    string
	file    string // below the module, with slashes
	find    []string
	replace []string
	nth     int      // which of several places, from 1; 0 where there must be one place only
	tests   []string // packages whose tests have to fail
	run     string   // the -run expression; "" for all tests
	// equivalent says why no test can tell the mutation from the code, "" where
	// a test has to.
	equivalent string
	at         string // list and line, for messages
	// splice is a drawn mistake, in place of find and replace.
	splice *splice
}

// parse reads a list. Records are separated by blank lines; a line that begins
// with '#' is a comment:
//
//	mutation: a near NUMA node with exactly the CPUs is passed over
//	file: fit/cpu.go
//	- if have >= want {
//	+ if have > want {
//	tests: ./fit ./agent/ledger
//	run: ^TestAssign
//	nth: 2
//	equivalent: the reason
//
// Lines are compared without the white space around them. "+" alone leaves the
// lines out.
func parse(name, text string) ([]mutation, error) {
	var all []mutation
	var errs []error
	var m *mutation
	for i, line := range strings.Split(text, "\n") {
		at := fmt.Sprintf("%s:%d", name, i+1)
		line = strings.TrimSpace(line)
		if line == "" {
			m = nil
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		if m == nil {
			all = append(all, mutation{at: at})
			m = &all[len(all)-1]
		}
		if err := m.take(line); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	for _, m := range all {
		if m.name == "" || m.file == "" || len(m.find) == 0 || len(m.tests) == 0 {
			errs = append(errs, fmt.Errorf("%s: a mutation needs mutation:, file:, '-' lines and tests:", m.at))
		}
	}
	return all, errors.Join(errs...)
}

// take reads one line of a record.
func (m *mutation) take(line string) error {
	if rest, ok := strings.CutPrefix(line, "-"); ok {
		m.find = append(m.find, strings.TrimSpace(rest))
		return nil
	}
	if rest, ok := strings.CutPrefix(line, "+"); ok {
		if rest = strings.TrimSpace(rest); rest != "" {
			m.replace = append(m.replace, rest)
		}
		return nil
	}
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	var err error
	switch key {
	case "mutation":
		m.name = value
	case "file":
		m.file = value
	case "tests":
		m.tests = strings.Fields(value)
	case "run":
		m.run = value
	case "nth":
		m.nth, err = strconv.Atoi(value)
	case "equivalent":
		m.equivalent = value
	default:
		err = fmt.Errorf("%q is no field of a mutation", line)
	}
	return err
}

// apply returns the file's text with the mutation in it.
func (m mutation) apply(text string) (string, error) {
	if s := m.splice; s != nil {
		return text[:s.from] + s.text + text[s.to:], nil
	}
	lines := strings.Split(text, "\n")
	var places []int
	for i := range lines {
		if i+len(m.find) <= len(lines) && slices.EqualFunc(lines[i:i+len(m.find)], m.find, func(a, b string) bool { return strings.TrimSpace(a) == b }) {
			places = append(places, i)
		}
	}
	at := max(m.nth, 1) - 1
	if at >= len(places) || m.nth == 0 && len(places) != 1 {
		return "", fmt.Errorf("%s: %q is in %s at %d places; want 1, or nth", m.at, m.find[0], m.file, len(places))
	}
	return strings.Join(slices.Replace(lines, places[at], places[at]+len(m.find), m.replace...), "\n"), nil
}

// readLists reads every list of a folder.
func readLists(dir string) ([]mutation, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []mutation
	var errs []error
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list, err := parse(filepath.Base(name), string(text))
		all, errs = append(all, list...), append(errs, err)
	}
	return all, errors.Join(errs...)
}
