package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// block is one fenced block of a document that shows commands.
//
// A comment on the line before the fence says how the block is tested:
//
//	<!-- test: skip REASON -->      no test runs it; REASON says why not
//	<!-- test: by TestName -->      a test elsewhere runs these commands
//	<!-- test: first COMMAND -->    run COMMAND before the block
//	<!-- test: alone -->            end the cluster of the blocks above before the block
//
// Without a comment the block is run as a reader would run it, after the blocks
// above it in the same document.
type block struct {
	line    int    // of the first line inside the fence, from 1
	console bool   // "$ command" with its output; else commands alone
	text    string // the lines inside, each with its line break
	mark    mark
}

// mark is what the comment before a block says. At most one field is set.
type mark struct {
	skip, by, first string
	alone           bool
}

var markLine = regexp.MustCompile(`^<!-- test: (?:(skip|by|first) (.+)|(alone)) -->$`)

// commandBlocks returns the blocks of a Markdown text that show commands: those
// of the languages sh and console.
func commandBlocks(text string) (all []block, err error) {
	var before mark
	var open *block
	shown := false // open shows commands
	for i, line := range strings.SplitAfter(text, "\n") {
		bare := strings.TrimRight(line, "\n")
		switch {
		case open == nil && strings.HasPrefix(bare, "```"):
			language := strings.TrimPrefix(bare, "```")
			open = &block{line: i + 2, console: language == "console", mark: before}
			shown = language == "sh" || language == "console"
			if !shown && before != (mark{}) {
				return nil, fmt.Errorf("line %d: a comment \"test:\" before a block of the language %q, which is not tested", i+1, language)
			}
			before = mark{}
		case open != nil && bare == "```":
			if shown {
				all = append(all, *open)
			}
			open = nil
		case open != nil:
			open.text += line
		case strings.HasPrefix(bare, "<!-- test:"):
			m := markLine.FindStringSubmatch(bare)
			if m == nil {
				return nil, fmt.Errorf("line %d: %q: want <!-- test: skip REASON -->, by TestName, first COMMAND or alone", i+1, bare)
			}
			before = map[string]mark{"skip": {skip: m[2]}, "by": {by: m[2]}, "first": {first: m[2]}, "": {alone: true}}[m[1]]
		case bare != "" && before != (mark{}):
			return nil, fmt.Errorf("line %d: a comment \"test:\" has to stand right before its block", i+1)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block has no end", open.line-1)
	}
	return all, nil
}

// step is one command, and the output that the document shows for it.
type step struct {
	line    int
	command string
	want    string
	checked bool // whether want is compared
}

// steps returns the commands of a block in their order. A console block has a
// step for each "$ " line. Other blocks have one step for each command that
// begins a cluster, and one for all the lines between two of those.
func (b block) steps() (all []step) {
	if b.mark.first != "" {
		all = append(all, step{line: b.line, command: b.mark.first})
	}
	fresh := true
	for i, line := range strings.SplitAfter(strings.TrimSuffix(b.text, "\n"), "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case b.console && isCommand:
			all = append(all, step{line: b.line + i, command: command, checked: true})
		case b.console && len(all) > 0:
			all[len(all)-1].want += line
		case beginsCluster(line) || fresh:
			all = append(all, step{line: b.line + i, command: line})
			fresh = beginsCluster(line)
		default:
			all[len(all)-1].command += line
		}
	}
	return all
}

// beginsCluster reports whether a command runs a cluster until it is stopped.
func beginsCluster(command string) bool {
	return regexp.MustCompile(`^(make run|(bin/)?muster dev)\b`).MatchString(command)
}

// matches reports whether output is what a document shows. "..." stands for any
// text within a line; a comment after two blanks and "#" of a command is not
// part of the output.
func matches(want, output string) bool {
	var pattern strings.Builder
	for i, part := range strings.Split(strings.TrimSpace(want), "...") {
		if i > 0 {
			pattern.WriteString(`[^\n]*`)
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(trimLines(output))
}

// trimLines removes the blanks at the ends of lines, and empty lines at both ends.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func TestBlocksOfADocument(t *testing.T) {
	text := "text\n<!-- test: first muster dev --nodes 2 -->\n```console\n$ muster get nodes\nNAME ...\n$ true\n```\n" +
		"```json\n{}\n```\n```sh\nmake run\nbin/muster get nodes\nbin/muster get jobs\n```\n<!-- test: skip needs two hosts -->\n```sh\nreboot\n```\n"
	blocks, err := commandBlocks(text)
	if err != nil || len(blocks) != 3 {
		t.Fatalf("%d blocks, %v; want 3", len(blocks), err)
	}
	want := []step{
		{line: 4, command: "muster dev --nodes 2"},
		{line: 4, command: "muster get nodes\n", want: "NAME ...\n", checked: true},
		{line: 6, command: "true", checked: true},
	}
	for i, s := range blocks[0].steps() {
		if i >= len(want) || s != want[i] {
			t.Errorf("step %d is %+v", i, s)
		}
	}
	if s := blocks[1].steps(); len(s) != 2 || s[0].command != "make run\n" || s[1].command != "bin/muster get nodes\nbin/muster get jobs" {
		t.Errorf("the second block has the steps %+v", s)
	}
	if blocks[2].mark.skip != "needs two hosts" {
		t.Errorf("the third block has the mark %+v", blocks[2].mark)
	}
	for text, why := range map[string]string{
		"<!-- test: run x -->\n```sh\n```\n":        "an unknown word",
		"<!-- test: skip x -->\ntext\n```sh\n```\n": "a comment away from its block",
		"<!-- test: skip x -->\n```json\n{}\n```\n": "a comment before another language",
		"```sh\nmake\n": "no end",
		"<!-- test: skip -->\n```sh\nreboot\n```\n": "a skip without a reason",
	} {
		if _, err := commandBlocks(text); err == nil {
			t.Errorf("%s is taken", why)
		}
	}
}

func TestOutputOfADocument(t *testing.T) {
	for name, c := range map[string]struct {
		want, output string
		matches      bool
	}{
		"equal":                          {"a\nb\n", "a\nb\n", true},
		"blanks at the ends of lines":    {"a\nb\n", "a  \nb\n\n", true},
		"dots stand for text of a line":  {"a ... z\nb", "a 1 2 z\nb\n", true},
		"dots stand for no line break":   {"a ... z", "a\nz\n", false},
		"another line":                   {"a\n", "a\nb\n", false},
		"characters of a pattern":        {"1 (of 2)*", "1 (of 2)*", true},
		"characters of a pattern differ": {"a.c", "abc", false},
	} {
		if got := matches(c.want, c.output); got != c.matches {
			t.Errorf("%s: %t", name, got)
		}
	}
}
